"""Plot the bounds over the number of trials or over delta."""

from __future__ import annotations

import math
import textwrap
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.plotting import BOUND_STYLES, SKY, check_plot_file, line_style, save_plot, style_axes
from privselect.selection.comparison_curves import check_axis, comparison_curves
from privselect.selection.two_stages import stages_of
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privselect.mechanisms import Mechanism
    from privselect.selection.comparison_curves import Curves
    from privselect.selection.two_stages import Stages

_STYLES = BOUND_STYLES | {"final": ("final training alone", SKY)}


def save_comparison_plot(mechanism: Mechanism, *, delta: float, path: str | Path, over: str | None = None) -> None:
    """Draw :func:`comparison_curves` into a .png, .pdf or .svg file, written atomically."""
    file, stages = check_plot_file(path), stages_of(mechanism)
    axis = check_axis(stages, over)
    curves = comparison_curves(stages, delta=delta, over=axis)
    trials = stages.visible if stages.count is None else stages.count.expected()
    marked = delta if axis == "delta" or trials is None else float(trials)
    save_plot(_make_figure(curves, axis, "\n".join(_title(stages, delta, axis)), marked), file)


def _make_figure(curves: Curves, over: str, title: str, marked: float) -> Figure:
    """Draw one panel with a legend to its right, without touching pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    positions = [float(position) for position in curves[over] if position is not None]
    height = _axis_height(curves)
    for name, (label, style) in _STYLES.items():
        values = _with_gaps(curves["exact_upper" if name == "exact" else name])
        if np.isfinite(values).any():
            visible = np.nanmin(values) < height
            axes.plot(positions, values, label=label if visible else f"{label} (above)", **line_style(style))
    lower = _with_gaps(curves["exact_lower"])
    if np.isfinite(lower).any():
        axes.fill_between(positions, lower, _with_gaps(curves["exact_upper"]), color="#000000", alpha=0.25, linewidth=0.0)
    axes.axvline(marked, color="#CCCCCC", linewidth=1.0, zorder=0)
    _label_axes(axes, over)
    axes.set_xlim(positions[0], positions[-1])
    axes.set_ylim(0.0, height)
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2)
    return figure


def _label_axes(axes: Axes, over: str) -> None:
    axes.set_xscale("log")
    if over == "mean":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("expected number of trials" if over == "mean" else r"$\delta$")
    axes.set_ylabel(r"$\varepsilon$")
    style_axes(axes)


def _axis_height(curves: Curves) -> float:
    """Return a height that shows every bound derived from the profile; bounds far above them leave through the top."""
    names = ("base", "final", "exact_upper", "ratio", "paper", "renyi")
    shown = [value for name in names for value in curves[name] if value is not None]
    return 1.2 * max(shown, default=1.0) or 1.0


def _with_gaps(curve: list[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.nan if value is None else value for value in curve])


def _title(stages: Stages, delta: float, over: str) -> Iterator[str]:
    trial = str(stages.mechanism) if stages.final is None else f"search trial: {stages.mechanism}"
    yield from textwrap.wrap(trial, width=100, max_lines=3)
    if stages.final is not None:
        yield from textwrap.wrap(f"then {stages.final}", width=100, max_lines=2)
    if over == "mean":
        trials = "visible search" if stages.count is None else f"{stages.count.text_name} K"
        yield f"{trials}, delta = {write_value(delta)}"
    elif stages.count is not None or stages.visible is not None:
        yield from textwrap.wrap(f"{stages.visible} visible trials" if stages.count is None else str(stages.count), width=100, max_lines=2)
