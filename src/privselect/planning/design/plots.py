"""Laws of K as curves P(K >= k): the data first, the drawing after it."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

from privselect._util.plot_files import check_plot_file, save_plot
from privselect._util.plot_style import BLACK, BLUE, GREEN, VERMILION, style_axes, line_style
from privselect.planning.success_probability import at_least

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from privselect.planning.design.design import Design

    Curves = dict[str, list[float]]

_BEYOND = 1.25  # a law without a cap is followed this far past the cap

_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "designed": ("designed", BLACK),
    "geometric": ("geometric", BLUE),
    "negative_binomial": ("negative binomial, capped", GREEN),
    "binomial": ("binomial", VERMILION),
}


def law_curves(design: Design) -> Curves:
    """``P(K >= k)`` of the designed law and of those named ones that there are: lists of one length, with ``k`` itself."""
    last = math.ceil(_BEYOND * design.goal.cap)
    laws = {"designed": design.count, **{name: law.count for name, law in design.named.items() if law is not None}}
    return {"k": [float(k) for k in range(last + 1)], **{name: at_least(law, last) for name, law in laws.items()}}


def draw(design: Design, path: str | Path) -> None:
    """Draw :func:`law_curves` into a .png, .pdf or .svg file, which appears whole or not at all."""
    file = check_plot_file(path)
    save_plot(_figure(design, law_curves(design)), file)


def _figure(design: Design, curves: Curves) -> Figure:
    """One panel, the legend beside it. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    chances = {"designed": design.chance, **{name: law.chance for name, law in design.named.items() if law is not None}}
    for name, (label, style) in _STYLES.items():
        if name in curves:
            shown = f"{label}: {math.floor(chances[name] * 1e4) / 1e4:.4f}"
            axes.step(curves["k"], curves[name], where="pre", label=shown, **line_style(style))
    axes.set_xlabel("number of trials, k")
    axes.set_ylabel("P(K ≥ k)")
    axes.set_xlim(0.0, curves["k"][-1])
    axes.set_ylim(0.0, 1.02)
    style_axes(axes)
    figure.suptitle(_title(design), fontsize=9, x=0.01, ha="left")
    heading = f"chance of a trial\nin the best {design.goal.tau:.3g}"
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2, title=heading, title_fontsize=9)
    return figure


def _title(design: Design) -> str:
    goal = design.goal
    budget = "" if goal.mean is None else f", E K ≤ {float(goal.mean):g}"
    lines = textwrap.wrap(str(design.mechanism), width=100, max_lines=3)
    return "\n".join([*lines, f"({goal.epsilon:g}, {goal.delta:g})-DP, K ≤ {goal.cap}{budget}"])
