"""Laws of K as curves P(K >= k): the data first, the drawing after it."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.looks import BLACK, BLUE, GREEN, VERMILION, frame, styled
from privselect.pictures import check_picture, save_picture

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    from privselect.counts.base import Count
    from privselect.planning.design import Design

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
    k = np.arange(math.ceil(_BEYOND * design.goal.cap) + 1)
    laws = {"designed": design.count, **{name: law.count for name, law in design.named.items() if law is not None}}
    return {"k": [float(one) for one in k], **{name: _tail(law, k) for name, law in laws.items()}}


def draw(design: Design, path: str | Path) -> None:
    """Draw :func:`law_curves` into a .png, .pdf or .svg file, which appears whole or not at all."""
    file = check_picture(path)
    save_picture(_figure(design, law_curves(design)), file)


def _tail(law: Count, k: np.ndarray[Any, np.dtype[np.int64]]) -> list[float]:
    below = np.concatenate([[0.0], np.cumsum(np.exp(law.log_pmf(k[:-1])))])
    return [float(one) for one in np.clip(1.0 - below, 0.0, 1.0)]


def _figure(design: Design, curves: Curves) -> Figure:
    """One panel, the legend beside it. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    chances = {"designed": design.chance, **{name: law.chance for name, law in design.named.items() if law is not None}}
    for name, (label, style) in _STYLES.items():
        if name in curves:
            shown = f"{label}: {math.floor(chances[name] * 1e4) / 1e4:.4f}"
            axes.step(curves["k"], curves[name], where="pre", label=shown, **styled(style))
    axes.set_xlabel("number of trials, k")
    axes.set_ylabel("P(K ≥ k)")
    axes.set_xlim(0.0, curves["k"][-1])
    axes.set_ylim(0.0, 1.02)
    frame(axes)
    figure.suptitle(_title(design), fontsize=9, x=0.01, ha="left")
    heading = f"chance of a trial\nin the best {design.goal.tau:.3g}"
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2, title=heading, title_fontsize=9)
    return figure


def _title(design: Design) -> str:
    goal = design.goal
    budget = "" if goal.mean is None else f", E K ≤ {float(goal.mean):g}"
    lines = textwrap.wrap(str(design.mechanism), width=100, max_lines=3)
    return "\n".join([*lines, f"({goal.epsilon:g}, {goal.delta:g})-DP, K ≤ {goal.cap}{budget}"])
