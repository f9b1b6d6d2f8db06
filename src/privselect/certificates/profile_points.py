"""The curve of a certificate: delta at about fifty epsilons, each an upper bound."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from scipy.special import ndtri

from privselect.certificates.number_models import Point
from privselect.selection import Selection
from privselect.selection.safe_search import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.certificates.number_models import Total
    from privselect.mechanisms import Mechanism

_STEPS, _MOST_POINTS = 46, 80
_DEEPEST = 1e-12  # delta at which the curve ends, or a thousandth of the certified one where that is less
_STEEP = 3.0  # a fall by so many steps is looked at again, with shorter ones
_FINEST = 1e-3  # unless they are this short already, relative to the certified epsilon


def upper_curve(mechanism: Mechanism, total: Total) -> tuple[Point, ...]:
    """From epsilon = 0 down to a small delta, with the certified point among them.

    Each delta is proved at its own epsilon, or at a smaller one: delta falls as epsilon grows.
    """
    found = _descent(upper_delta(mechanism), min(_DEEPEST, 1e-3 * total.delta), max(total.upper, 1e-3))
    found[total.upper] = min(total.delta, found.get(total.upper, 1.0))
    points, least = [], 1.0
    for epsilon in sorted(found):
        least = min(least, found[epsilon])
        points.append(Point(epsilon=epsilon, delta=least))
    return tuple(points)


def upper_delta(mechanism: Mechanism) -> Callable[[float], float]:
    """An upper bound on delta at one epsilon >= 0 after the other."""
    return mechanism.upper_curve() if isinstance(mechanism, Selection) else lambda epsilon: float(mechanism.delta_at(epsilon).upper)


def _descent(upper: Callable[[float], float], floor: float, scale: float) -> dict[float, float]:
    """Epsilons spaced so that the normal quantile of delta falls about evenly: log delta does, and finer where delta is large."""
    epsilon, value, step = 0.0, upper(0.0), 0.05 * scale
    found = {epsilon: value}
    wanted = max(_depth(floor) - _depth(value), 0.1) / _STEPS
    while value > floor and epsilon < LARGEST_EPSILON and len(found) < _MOST_POINTS:
        ahead = min(epsilon + step, LARGEST_EPSILON)
        there = found.setdefault(ahead, upper(ahead))
        if there == value < 1.0:
            break  # only what leaks outright is left
        fall = _depth(max(there, 0.1 * floor)) - _depth(value)
        steep = fall > _STEEP * wanted and step > _FINEST * scale
        step *= min(max(wanted / max(fall, 1e-9), 0.2), 2.0)
        if not steep:
            epsilon, value = ahead, there
    return found


def _depth(delta: float) -> float:
    return -float(ndtri(min(delta, 1.0 - 1e-15))) if delta > 0.0 else math.inf
