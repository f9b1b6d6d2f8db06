"""What a certified curve leaves to somebody who wants to tell whether a record is in the data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.certificates.number_models import Point

_ROUNDING = 1e-12  # of a few operations on numbers up to 1, many times over


def most_found(curve: Sequence[Point], false_alarms: float) -> float:
    """The greatest share of present records that any test finds which accuses at most ``false_alarms`` of the absent ones.

    A test is an event T, with chance t where the record is present and f where it is absent. (epsilon, delta)-DP in the one order of
    the two data sets gives ``t <= e^epsilon f + delta``; in the other, for what is not in T, ``1 - f <= e^epsilon (1 - t) + delta``.
    Both grow with f, and the least over all points of the curve holds.
    """
    found = 1.0
    for point in curve:
        epsilon, delta = point.epsilon, point.delta
        # The second is written so that it does not overflow.
        found = min(found, math.exp(epsilon) * false_alarms + delta, 1.0 - math.exp(-epsilon) * (1.0 - false_alarms - delta))
    return min(found + _ROUNDING, 1.0)


def most_guessed(curve: Sequence[Point]) -> float:
    """The greatest chance of telling which of two data sets it was, both as likely beforehand: ``(1 + t - f) / 2``.

    The two bounds of :func:`most_found`, added, say ``(e^epsilon + 1) (t - f) <= e^epsilon - 1 + 2 delta`` at every point of the curve.
    """
    apart = min(math.tanh(0.5 * point.epsilon) + 2.0 * point.delta / (math.exp(point.epsilon) + 1.0) for point in curve)
    return min(0.5 + 0.5 * apart + _ROUNDING, 1.0)
