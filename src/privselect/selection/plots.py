"""The bounds as curves, over the mean of K or over delta: the data first, the drawing after it."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plot_files import check_plot_file, save_plot
from privselect._util.plot_style import BOUND_STYLES as LOOKS
from privselect._util.plot_style import style_axes, line_style
from privselect._util.validation import OPEN_UNIT, check_number, integer_range
from privselect.counts import Binomial, Fixed, Poisson
from privselect.counts.base import LARGEST_COUNT
from privselect.counts.truncated_negative_binomial import Truncated
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
_FAR = 3.0  # composition is followed until it is this many times above every other bound

_SHOWN = {name: bound for name, bound in BOUNDS.items() if name in LOOKS}  # not pointwise, which lies on the exact curve


def comparison_curves(  # noqa: PLR0913 - the last two only for those in a hurry
    mechanism: Mechanism,
    *,
    delta: float,
    over: str,
    points: int = _POINTS,
    accuracy: float = ACCURACY,
    bounds: Mapping[str, Bound] = _SHOWN,
) -> Curves:
    """Epsilon of a selection by every bound along one axis: lists of one length, None where a bound does not apply or is infinite.

    ``over="mean"`` keeps the family of the law of K and runs over E K at this delta, ``over="delta"`` runs over delta. The keys are
    ``over``'s own name (the places), ``base``, ``exact_lower``, ``exact_upper`` and the names of the other bounds but pointwise, which
    lies on the exact one. Over the mean, composition ends where it is far above every other bound. A mechanism alone has only its base.
    The exact price and the base are computed with the care that ``accuracy`` asks for; ``bounds`` are the others to look at.
    """
    at = check_number("delta", delta, OPEN_UNIT)
    size = int(check_number("points", points, integer_range(2, 1000)))
    base, count = _parts(mechanism)
    laws: Sequence[Count | None]
    if check_axis(mechanism, over) == "mean":
        laws = _laws(count, size)
        deltas, places = [at] * len(laws), [law.expected() for law in laws if law is not None]
    else:
        deltas = places = _deltas(at, size)
        laws = [count] * size
    curves: Curves = {over: list(places), "base": [], "exact_lower": [], "exact_upper": [], **{name: [] for name in bounds}}
    for law, one in zip(laws, deltas, strict=True):
        skipped = {"composition"} if over == "mean" and _left_behind(curves) else set()
        wanted = {name: bound for name, bound in bounds.items() if name not in skipped}
        if law is None:
            found = {"base": _finite(base.epsilon_about(one, accuracy=accuracy).upper)}
        else:
            found = bounds_at(Selection(base, law), one, wanted, accuracy)
        for name in curves.keys() - {over}:
            curves[name].append(found.get(name))
    return curves


def bounds_at(selection: Selection, delta: float, bounds: Mapping[str, Bound], accuracy: float = ACCURACY) -> dict[str, float | None]:
    """Epsilon at delta: ``base``, ``exact_lower``, ``exact_upper`` and each of these; None where a bound does not apply or is infinite."""
    base, count = selection.mechanism, selection.count
    exact = selection.epsilon_about(delta, accuracy=accuracy)
    found = {"base": base.epsilon_about(delta, accuracy=accuracy).upper, "exact_lower": exact.lower, "exact_upper": exact.upper}
    for name, bound in bounds.items():
        try:
            found[name] = bound(base, count, delta)
        except NotCoveredError:
            found[name] = None
    return {name: _finite(value) for name, value in found.items()}


def draw(mechanism: Mechanism, *, delta: float, path: str | Path, over: str | None = None) -> None:
    """Draw :func:`comparison_curves` into a .png, .pdf or .svg file, which appears whole or not at all."""
    file, axis = check_plot_file(path), check_axis(mechanism, over)
    base, count = _parts(mechanism)
    curves = comparison_curves(mechanism, delta=delta, over=axis)
    asked = delta if axis == "delta" or count is None else count.expected()
    save_plot(_figure(curves, axis, _title(base, count, delta, axis), asked), file)


def check_axis(mechanism: Mechanism, over: str | None) -> str:
    """The axis asked for, by default the mean where the law of K has one to vary and delta otherwise; or one clear sentence."""
    count = _parts(mechanism)[1]
    varies = has_mean(count)
    if over is None:
        return "mean" if varies else "delta"
    if over not in AXES:
        raise ParameterError(f"`over` must be one of {', '.join(AXES)}, got {over!r}")
    if over == "mean" and not varies:
        reason = "no law of K is given" if count is None else f"a law given as {count.text_name} has no mean to vary"
        raise ParameterError(f"`over` must be delta where {reason}, got 'mean'")
    return over


def has_mean(count: Count | None) -> bool:
    """Whether a law of K belongs to a family that can be followed along its mean."""
    return isinstance(count, (Truncated, Poisson, Binomial, Fixed))


def _parts(mechanism: Mechanism) -> tuple[Mechanism, Count | None]:
    return (mechanism.mechanism, mechanism.count) if isinstance(mechanism, Selection) else (mechanism, None)


# -- data ------------------------------------------------------------------------------------------------------------------


def _deltas(delta: float, size: int) -> list[float]:
    """About four decades to each side, the asked delta among them."""
    low, high = max(delta * 1e-4, _SMALLEST_DELTA), min(delta * 1e4, 0.1)
    low, high = min(low, delta), max(high, delta)
    places = np.geomspace(low, high, size)
    places[np.argmin(np.abs(np.log(places / delta)))] = delta
    return [float(place) for place in places]


def _laws(count: Count | None, size: int) -> list[Count]:
    """Laws of the same family, from hardly any trial to ten times the asked mean, the asked law among them."""
    if isinstance(count, Binomial):
        return [dataclasses.replace(count, n=n) for n in _whole_places(count.n, size)]
    if isinstance(count, Fixed):
        return [dataclasses.replace(count, k=k, cap=None) for k in _whole_places(count.k, size)]
    if isinstance(count, Poisson):
        return [dataclasses.replace(count, mean=mean) for mean in _places(min(1.0, 0.1 * count.mean), count.mean, size)]
    return _truncated_laws(count, size)


def _truncated_laws(count: Any, size: int) -> list[Count]:
    # A law given by gamma has a mean too, and mean is what the other laws are named by.
    middle = float(count.mean or dataclasses.replace(count, cap=None).expected())
    laws: list[Count] = []
    for mean in _places(1.0, middle, size):
        try:
            laws.append(dataclasses.replace(count, mean=mean, gamma=None))
        except ParameterError:  # near eta = -1, or far above its cap, a law stops before ten times its mean
            break
    return laws


def _places(low: float, middle: float, size: int) -> list[float]:
    """``low`` to ten times ``middle``, in equal steps of the logarithm, ``middle`` among them."""
    places = np.geomspace(low, min(10.0 * middle, float(LARGEST_COUNT)), size)
    places[np.argmin(np.abs(np.log(places / middle)))] = middle
    places[0] = low
    return sorted({float(place) for place in places})


def _whole_places(middle: int, size: int) -> list[int]:
    return sorted({round(place) for place in _places(1.0, float(middle), size)})


def _left_behind(curves: Curves) -> bool:
    """Whether composition was last seen far above every other bound; with more runs it only grows."""
    seen = curves.get("composition")
    if not seen:
        return False
    others = [curve[len(seen) - 1] for name, curve in curves.items() if name in {"exact_upper", "ratio", "paper", "renyi", "liu_talwar"}]
    return seen[-1] is None or seen[-1] > _FAR * max([value for value in others if value is not None], default=math.inf)


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


# -- drawing ---------------------------------------------------------------------------------------------------------------


def _figure(curves: Curves, over: str, title: str, asked: float) -> Figure:
    """One panel, the legend beside it. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    places = [float(place) for place in curves[over] if place is not None]
    height = _height(curves)
    for name, (label, look) in LOOKS.items():
        values = _with_gaps(curves["exact_upper" if name == "exact" else name])
        if np.isfinite(values).any():
            seen = np.nanmin(values) < height
            axes.plot(places, values, label=label if seen else f"{label} (above)", **line_style(look))
    lower = _with_gaps(curves["exact_lower"])
    if np.isfinite(lower).any():
        axes.fill_between(places, lower, _with_gaps(curves["exact_upper"]), color="#000000", alpha=0.25, linewidth=0.0)
    axes.axvline(asked, color="#CCCCCC", linewidth=1.0, zorder=0)
    _dress(axes, over)
    axes.set_xlim(places[0], places[-1])
    axes.set_ylim(0.0, height)
    figure.suptitle(title, fontsize=9, x=0.01, ha="left")
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2)
    return figure


def _dress(axes: Axes, over: str) -> None:
    axes.set_xscale("log")
    if over == "mean":
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("expected number of trials, E K" if over == "mean" else r"$\delta$")
    axes.set_ylabel(r"$\varepsilon$")
    style_axes(axes)


def _height(curves: Curves) -> float:
    """Room for every bound that follows the profile; what is far above them leaves through the top."""
    kept = [value for name in ("base", "exact_upper", "ratio", "paper", "renyi") for value in curves[name] if value is not None]
    return 1.2 * max(kept, default=1.0) or 1.0


def _with_gaps(curve: list[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.nan if value is None else value for value in curve])


def _title(mechanism: Mechanism, count: Count | None, delta: float, over: str) -> str:
    lines = textwrap.wrap(str(mechanism), width=100, max_lines=3)
    if over == "mean":
        lines.append(f"{getattr(count, 'text_name', '')} K, delta = {write_value(delta)}")
    elif count is not None:
        lines += textwrap.wrap(str(count), width=100, max_lines=2)
    return "\n".join(lines)
