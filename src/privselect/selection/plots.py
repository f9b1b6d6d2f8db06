"""Curves of the bounds over the mean of K or over delta: their data, and their plot."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plotting import BOUND_STYLES, check_plot_file, line_style, save_plot, style_axes
from privselect._util.rounding import finite_or_none
from privselect._util.validation import OPEN_UNIT, check_number, integer_range
from privselect.counts import Binomial, Fixed, Poisson
from privselect.counts.base import LARGEST_COUNT
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError, ParameterError
from privselect.pairs.compose import ACCURACY
from privselect.selection.compare import BOUNDS
from privselect.selection.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism

    Bound = Callable[[Mechanism, Count, float], float]
    Curves = dict[str, list[float | None]]

AXES = ("mean", "delta")
_POINTS = 13
_SMALLEST_DELTA = 1e-15
_FAR_ABOVE = 3.0  # composition is computed until it exceeds every other bound by this factor

_PLOTTED = {name: bound for name, bound in BOUNDS.items() if name in BOUND_STYLES}  # not pointwise, which coincides with exact


def comparison_curves(  # noqa: PLR0913 - the last two are for interactive use
    mechanism: Mechanism,
    *,
    delta: float,
    over: str,
    points: int = _POINTS,
    accuracy: float = ACCURACY,
    bounds: Mapping[str, Bound] = _PLOTTED,
) -> Curves:
    """Compute epsilon of a selection by every bound along one axis: equally long lists, with None if a bound is infinite or missing.

    ``over="mean"`` keeps the family of the law of K and varies E K at this delta; ``over="delta"`` varies delta. The keys are the
    axis (``mean`` or ``delta``), ``base``, ``exact_lower``, ``exact_upper`` and the names of the other bounds except pointwise, which
    coincides with exact. Over the mean, composition stops where it is far above every other bound. Without a law of K, only ``base``
    has values. ``accuracy`` applies to the exact bound and the base. ``bounds`` are the other bounds to compute.
    """
    at = check_number("delta", delta, OPEN_UNIT)
    size = int(check_number("points", points, integer_range(2, 1000)))
    base, count = _split(mechanism)
    counts: Sequence[Count | None]
    if check_axis(mechanism, over) == "mean":
        counts = counts_along_mean(count, size)
        deltas, positions = [at] * len(counts), [each.expected() for each in counts if each is not None]
    else:
        deltas = positions = deltas_around(at, size)
        counts = [count] * size
    curves: Curves = {over: list(positions), "base": [], "exact_lower": [], "exact_upper": [], **{name: [] for name in bounds}}
    for each_count, each_delta in zip(counts, deltas, strict=True):
        skipped = {"composition"} if over == "mean" and _composition_is_far_above(curves) else set()
        computed = {name: bound for name, bound in bounds.items() if name not in skipped}
        if each_count is None:
            found = {"base": finite_or_none(base.epsilon_fast(each_delta, accuracy=accuracy).upper)}
        else:
            found = bounds_at_delta(Selection(base, each_count), each_delta, computed, accuracy)
        for name in curves.keys() - {over}:
            curves[name].append(found.get(name))
    return curves


def bounds_at_delta(selection: Selection, delta: float, bounds: Mapping[str, Bound], accuracy: float = ACCURACY) -> dict[str, float | None]:
    """Return epsilon at delta by ``base``, ``exact_lower``, ``exact_upper`` and each of ``bounds``, or None if infinite or missing."""
    base, count = selection.mechanism, selection.count
    exact = selection.epsilon_fast(delta, accuracy=accuracy)
    found = {"base": base.epsilon_fast(delta, accuracy=accuracy).upper, "exact_lower": exact.lower, "exact_upper": exact.upper}
    for name, bound in bounds.items():
        try:
            found[name] = bound(base, count, delta)
        except NotCoveredError:
            found[name] = None
    return {name: finite_or_none(value) for name, value in found.items()}


def save_comparison_plot(mechanism: Mechanism, *, delta: float, path: str | Path, over: str | None = None) -> None:
    """Draw :func:`comparison_curves` into a .png, .pdf or .svg file, written atomically."""
    file, axis = check_plot_file(path), check_axis(mechanism, over)
    base, count = _split(mechanism)
    curves = comparison_curves(mechanism, delta=delta, over=axis)
    marked = delta if axis == "delta" or count is None else count.expected()
    save_plot(_make_figure(curves, axis, _title(base, count, delta, axis), marked), file)


def check_axis(mechanism: Mechanism, over: str | None) -> str:
    """Return the axis to plot over: by default the mean if the law of K has a variable mean, else delta."""
    count = _split(mechanism)[1]
    varies = has_variable_mean(count)
    if over is None:
        return "mean" if varies else "delta"
    if over not in AXES:
        raise ParameterError(f"`over` must be one of {', '.join(AXES)}, got {over!r}")
    if over == "mean" and not varies:
        reason = "no law of K is given" if count is None else f"a {count.text_name} law of K has no mean to vary"
        raise ParameterError(f"`over` must be delta, got 'mean': {reason}")
    return over


def has_variable_mean(count: Count | None) -> bool:
    """Return whether a law of K belongs to a family with a mean that can be varied."""
    return isinstance(count, (TruncatedNegativeBinomial, Poisson, Binomial, Fixed))


def _split(mechanism: Mechanism) -> tuple[Mechanism, Count | None]:
    return (mechanism.mechanism, mechanism.count) if isinstance(mechanism, Selection) else (mechanism, None)


# -- data ------------------------------------------------------------------------------------------------------------------


def deltas_around(delta: float, size: int) -> list[float]:
    """Return deltas from about four decades below to four decades above the given one, which is included."""
    low, high = max(delta * 1e-4, _SMALLEST_DELTA), min(delta * 1e4, 0.1)
    low, high = min(low, delta), max(high, delta)
    deltas = np.geomspace(low, high, size)
    deltas[np.argmin(np.abs(np.log(deltas / delta)))] = delta
    return [float(each) for each in deltas]


def counts_along_mean(count: Count | None, size: int) -> list[Count]:
    """Return laws of K of the same family with means from about 1 to ten times the given mean, including the given one."""
    if isinstance(count, Binomial):
        return [dataclasses.replace(count, n=n) for n in integers_around(count.n, size)]
    if isinstance(count, Fixed):
        return [dataclasses.replace(count, k=k, cap=None) for k in integers_around(count.k, size)]
    if isinstance(count, Poisson):
        return [dataclasses.replace(count, mean=mean) for mean in _means_around(min(1.0, 0.1 * count.mean), count.mean, size)]
    return _negative_binomials_along_mean(count, size)


def _negative_binomials_along_mean(count: Any, size: int) -> list[Count]:
    # A law of K given by gamma has a mean too, which defines the others.
    middle = float(count.mean or dataclasses.replace(count, cap=None).expected())
    counts: list[Count] = []
    for mean in _means_around(1.0, middle, size):
        try:
            counts.append(dataclasses.replace(count, mean=mean, gamma=None))
        except ParameterError:  # near eta = -1, or far above its cap, the mean cannot reach ten times the given one
            break
    return counts


def _means_around(low: float, middle: float, size: int) -> list[float]:
    """Return means from ``low`` to ten times ``middle``, equally spaced in the logarithm and including ``middle``."""
    means = np.geomspace(low, min(10.0 * middle, float(LARGEST_COUNT)), size)
    means[np.argmin(np.abs(np.log(means / middle)))] = middle
    means[0] = low
    return sorted({float(mean) for mean in means})


def integers_around(middle: int, size: int) -> list[int]:
    """Return integers around ``middle``, about equally spaced in the logarithm."""
    return sorted({round(mean) for mean in _means_around(1.0, float(middle), size)})


def _composition_is_far_above(curves: Curves) -> bool:
    """Return whether composition was last far above every other bound; with more runs it only grows."""
    composition = curves.get("composition")
    if not composition:
        return False
    last = len(composition) - 1
    others = [curve[last] for name, curve in curves.items() if name in {"exact_upper", "ratio", "paper", "renyi", "liu_talwar"}]
    return composition[-1] is None or composition[-1] > _FAR_ABOVE * max([value for value in others if value is not None], default=math.inf)


# -- drawing ---------------------------------------------------------------------------------------------------------------


def _make_figure(curves: Curves, over: str, title: str, marked: float) -> Figure:
    """Draw one panel with a legend to its right, without touching pyplot's global state."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    positions = [float(position) for position in curves[over] if position is not None]
    height = _axis_height(curves)
    for name, (label, style) in BOUND_STYLES.items():
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
    axes.set_xlabel("expected number of trials, E K" if over == "mean" else r"$\delta$")
    axes.set_ylabel(r"$\varepsilon$")
    style_axes(axes)


def _axis_height(curves: Curves) -> float:
    """Return a height that shows every bound derived from the profile; bounds far above them leave through the top."""
    shown = [value for name in ("base", "exact_upper", "ratio", "paper", "renyi") for value in curves[name] if value is not None]
    return 1.2 * max(shown, default=1.0) or 1.0


def _with_gaps(curve: list[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.nan if value is None else value for value in curve])


def _title(mechanism: Mechanism, count: Count | None, delta: float, over: str) -> str:
    lines = textwrap.wrap(str(mechanism), width=100, max_lines=3)
    if over == "mean":
        lines.append(f"{getattr(count, 'text_name', '')} K, delta = {write_value(delta)}")
    elif count is not None:
        lines += textwrap.wrap(str(count), width=100, max_lines=2)
    return "\n".join(lines)
