"""The bounds as curves, over the mean of K or over delta: the data first, the drawing after it."""

from __future__ import annotations

import dataclasses
import io
import math
import os
import secrets
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privselect.counts import Binomial, Fixed, Poisson
from privselect.counts.base import LARGEST
from privselect.counts.truncated import Truncated
from privselect.errors import MissingExtraError, NotCoveredError, ParameterError
from privselect.parameters import OPEN_UNIT, check_number, whole
from privselect.selection.compare import BOUNDS
from privselect.selection.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism

    Curves = dict[str, list[float | None]]

AXES = ("mean", "delta")
PICTURES = (".png", ".pdf", ".svg")
_POINTS = 13
_SMALLEST_DELTA = 1e-15
_FAR = 3.0  # composition is followed until it is this many times above every other bound

# Colours that also differ to the colour-blind (Okabe and Ito); pointwise is left out, it lies on the exact curve.
_STYLES = {
    "exact": ("exact", {"color": "#000000", "linewidth": 2.2}),
    "ratio": ("ratio", {"color": "#0072B2", "linestyle": (0, (6, 1.5))}),
    "paper": ("privacy profiles (paper)", {"color": "#009E73", "linestyle": (0, (4, 1.5, 1, 1.5))}),
    "renyi": ("Rényi", {"color": "#D55E00", "linestyle": (0, (2, 1.2))}),
    "liu_talwar": ("Liu and Talwar", {"color": "#CC79A7", "linestyle": (0, (1, 1))}),
    "composition": ("all runs released (composition)", {"color": "#999999", "linestyle": (0, (8, 2, 1, 2, 1, 2))}),
    "base": ("one trial alone", {"color": "#999999", "linewidth": 1.2}),
}


def comparison_curves(mechanism: Mechanism, count: Count | None, *, delta: float, over: str, points: int = _POINTS) -> Curves:
    """Epsilon by every bound along one axis: plain lists of equal length, None where a bound does not apply or is infinite.

    ``over="mean"`` keeps the family of the law of K and runs over E K at this delta, ``over="delta"`` runs over delta. The keys are
    ``over``'s own name (the places), ``base``, ``exact_lower``, ``exact_upper`` and the names of the other bounds. Composition ends
    where it is far above every other bound.
    """
    at = check_number("delta", delta, OPEN_UNIT)
    size = int(check_number("points", points, whole(2, 1000)))
    if over not in AXES:
        raise ParameterError(f"`over` must be one of {', '.join(AXES)}, got {over!r}")
    names = [name for name in _STYLES if name in BOUNDS]
    if over == "mean":
        laws: Sequence[Count | None] = _laws(count, size)
        deltas = [at] * len(laws)
        places = [law.expected() for law in laws if law is not None]
    else:
        deltas = _deltas(at, size)
        laws, places = [count] * size, deltas
    curves: Curves = {over: list(places), "base": [], "exact_lower": [], "exact_upper": [], **{name: [] for name in names}}
    for law, one in zip(laws, deltas, strict=True):
        curves["base"].append(_finite(mechanism.epsilon_at(one).upper))
        interval = None if law is None else Selection(mechanism, law).epsilon_at(one)
        curves["exact_lower"].append(None if interval is None or interval.lower is None else _finite(interval.lower))
        curves["exact_upper"].append(None if interval is None else _finite(interval.upper))
        for name in names:
            skip = law is None or (name == "composition" and over == "mean" and _left_behind(curves))
            curves[name].append(None if skip else _bound(name, mechanism, law, one))  # type: ignore[arg-type]
    return curves


def draw(mechanism: Mechanism, count: Count | None, *, delta: float, path: str | Path, over: str | None = None) -> None:
    """Draw :func:`comparison_curves` into a .png, .pdf or .svg file, which appears whole or not at all."""
    file = check_picture(path)
    axis = over or default_axis(count)
    curves = comparison_curves(mechanism, count, delta=delta, over=axis)
    figure = _figure(curves, axis, _title(mechanism, count, delta, axis), delta if axis == "delta" or count is None else count.expected())
    picture = io.BytesIO()
    kind = file.suffix.lower().removeprefix(".")
    # No date in the file: the same numbers give the same picture.
    figure.savefig(picture, format=kind, metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {}))
    _write_whole(file, picture.getvalue())


def check_picture(path: str | Path) -> Path:
    """``path`` as a file that can be drawn, or one clear sentence: to be asked before the work begins."""
    file = Path(path)
    if file.suffix.lower() not in PICTURES:
        raise ParameterError(f"`plot` must end in {', '.join(PICTURES)}, got {str(path)!r}")
    if file.is_dir() or not file.parent.is_dir():
        raise ParameterError(f"`plot` must be a file in a folder that exists, got {str(path)!r}")
    if find_spec("matplotlib") is None:
        raise MissingExtraError("a plot needs matplotlib; install it with: pip install 'privselect[plot]'")
    return file


def default_axis(count: Count | None) -> str:
    """The mean of K where the law has one to vary, delta otherwise."""
    return "mean" if isinstance(count, (Truncated, Poisson, Binomial, Fixed)) else "delta"


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
    if count is None:
        raise NotCoveredError("`over` must be delta where no law of K is given, got 'mean'")
    if isinstance(count, Binomial):
        return [dataclasses.replace(count, n=n) for n in _whole_places(count.n, size)]
    if isinstance(count, Fixed):
        return [dataclasses.replace(count, k=k, cap=None) for k in _whole_places(count.k, size)]
    if isinstance(count, Poisson):
        means, changes = _places(min(1.0, 0.1 * count.mean), count.mean, size), {}
    elif isinstance(count, Truncated):
        # Named by its mean: a law given by gamma has one too.
        means, changes = _places(1.0, float(count.mean or dataclasses.replace(count, cap=None).expected()), size), {"gamma": None}
    else:
        raise NotCoveredError(f"`over` must be delta for {count.text_name} K, which has no mean to vary, got 'mean'")
    return [dataclasses.replace(count, mean=mean, **changes) for mean in means]


def _places(low: float, middle: float, size: int) -> list[float]:
    """``low`` to ten times ``middle``, in equal steps of the logarithm, ``middle`` among them."""
    places = np.geomspace(low, min(10.0 * middle, float(LARGEST)), size)
    places[np.argmin(np.abs(np.log(places / middle)))] = middle
    places[0] = low
    return sorted({float(place) for place in places})


def _whole_places(middle: int, size: int) -> list[int]:
    return sorted({round(place) for place in _places(1.0, float(middle), size)})


def _bound(name: str, mechanism: Mechanism, count: Count, delta: float) -> float | None:
    try:
        return _finite(BOUNDS[name](mechanism, count, delta))
    except NotCoveredError:
        return None


def _left_behind(curves: Curves) -> bool:
    """Whether composition was last seen far above every other bound; with more runs it only grows."""
    seen = curves["composition"]
    if not seen:
        return False
    others = [curve[len(seen) - 1] for name, curve in curves.items() if name in {"exact_upper", "ratio", "paper", "renyi", "liu_talwar"}]
    return seen[-1] is None or seen[-1] > _FAR * max([value for value in others if value is not None], default=math.inf)


def _finite(value: object) -> float | None:
    number = float(value)  # type: ignore[arg-type]
    return number if math.isfinite(number) else None


# -- drawing ---------------------------------------------------------------------------------------------------------------


def _figure(curves: Curves, over: str, title: str, asked: float) -> Figure:
    """One panel, the legend beside it. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    places = [float(place) for place in curves[over] if place is not None]
    height = _height(curves)
    for name, (label, style) in _STYLES.items():
        values = _with_gaps(curves["exact_upper" if name == "exact" else name])
        if np.isfinite(values).any():
            seen = np.nanmin(values) < height
            axes.plot(places, values, label=label if seen else f"{label}: above", **{"linewidth": 1.6, **style})  # type: ignore[arg-type]
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
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#EEEEEE", linewidth=0.8)
    axes.set_axisbelow(True)


def _height(curves: Curves) -> float:
    """Room for every bound that follows the profile; what is far above them leaves through the top."""
    kept = [value for name in ("base", "exact_upper", "ratio", "paper", "renyi") for value in curves[name] if value is not None]
    return 1.2 * max(kept, default=1.0) or 1.0


def _with_gaps(curve: list[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.nan if value is None else value for value in curve])


def _title(mechanism: Mechanism, count: Count | None, delta: float, over: str) -> str:
    lines = textwrap.wrap(str(mechanism), width=100, max_lines=3)
    if over == "mean":
        lines.append(f"{getattr(count, 'text_name', '')} K, delta = {delta:g}")
    elif count is not None:
        lines += textwrap.wrap(str(count), width=100, max_lines=2)
    return "\n".join(lines)


def _write_whole(path: Path, content: bytes) -> None:
    """Beside the file first, then under its name: a failure leaves nothing half-written."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, path)  # noqa: PTH105 -- over an existing file too, on every system
    finally:
        part.unlink(missing_ok=True)
