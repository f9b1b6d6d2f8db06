"""Bounds on selections as curves over delta or over the mean of K."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect.selection.compare import BOUNDS
from privselect.selection.comparison_curves import epsilons_at, staged_bounds
from privselect.selection.selection import Selection
from privselect.selection.two_stages import stages_of
from research.figures.picture import Curve, Point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.comparison_curves import Bound

DELTA = 1e-6  # for every figure that is not over delta
DELTAS = (*(float(f"{digit}e-{power}") for power in range(10, 2, -1) for digit in (1, 3)), 1e-2)


def bounds_named(*names: str) -> dict[str, Bound]:
    """Return these bounds of :func:`privselect.compare`."""
    return {name: BOUNDS[name] for name in names}


def over_deltas(selection: Selection, bounds: Mapping[str, Bound]) -> tuple[Curve, ...]:
    """Return epsilon at each of :data:`DELTAS` by these bounds and the exact bounds, and of one trial alone."""
    return selection_curves([(delta, selection, delta) for delta in DELTAS], bounds)


def over_means(trial: Mechanism, law: Callable[[float], Count], means: Iterable[float], bounds: Mapping[str, Bound]) -> tuple[Curve, ...]:
    """Return epsilon at ``DELTA`` for each mean of K, by these bounds and the exact bounds."""
    return selection_curves([(mean, Selection(trial, law(mean)), DELTA) for mean in means], bounds)


def selection_curves(asked: Sequence[tuple[float, Selection, float]], bounds: Mapping[str, Bound]) -> tuple[Curve, ...]:
    """Return epsilon by these bounds, by the exact bounds and of one trial alone, for each place, selection and delta."""
    found = []
    for place, selection, delta in asked:
        stages = stages_of(selection)
        found.append((place, selection, epsilons_at(stages, delta, staged_bounds(stages, bounds))))
    names = [name for name in found[0][2] if name != "final"]
    return tuple(curve(name, ((_bounded(name, selection), place, values[name]) for place, selection, values in found)) for name in names)


def curve(bound: str, points: Iterable[tuple[Mechanism, float, Any]], name: str = "") -> Curve:
    """Return the curve of one bound, without the points at which it gives no number."""
    return Curve(
        bound, tuple(Point(str(bounded), float(place), float(value)) for bounded, place, value in points if value is not None), name
    )


def _bounded(name: str, selection: Selection) -> Mechanism:
    return selection.mechanism if name == "base" else selection
