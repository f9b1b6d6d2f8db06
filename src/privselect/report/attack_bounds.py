"""Bounds on membership tests that follow from a certified privacy curve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.certificates.model import ProfilePoint

_ROUNDING = 1e-12  # far above the error of a few operations on numbers up to 1


def max_detection_rate(curve: Sequence[ProfilePoint], false_alarm_rate: float) -> float:
    """Return the largest detection rate of any test with this false alarm rate.

    A test is an event T with probability t if the record is present and f if it is absent. (epsilon, delta)-DP in one order of the two
    data sets gives ``t <= e^epsilon f + delta``. In the other order, the complement of T gives ``1 - f <= e^epsilon (1 - t) + delta``.
    Both bounds on t grow with f, and the smallest bound over all points of the curve holds.
    """
    bound = 1.0
    for point in curve:
        epsilon, delta = point.epsilon, point.delta
        # The second bound is written in a form that does not overflow.
        bound = min(bound, math.exp(epsilon) * false_alarm_rate + delta, 1.0 - math.exp(-epsilon) * (1.0 - false_alarm_rate - delta))
    return min(bound + _ROUNDING, 1.0)


def max_guess_probability(curve: Sequence[ProfilePoint]) -> float:
    """Return the largest probability ``(1 + t - f) / 2`` of guessing the data set if both data sets are equally likely beforehand.

    The sum of the two bounds of :func:`max_detection_rate` is ``(e^epsilon + 1) (t - f) <= e^epsilon - 1 + 2 delta`` at every point of
    the curve.
    """
    advantage = min(math.tanh(0.5 * point.epsilon) + 2.0 * point.delta / (math.exp(point.epsilon) + 1.0) for point in curve)
    return min(0.5 + 0.5 * advantage + _ROUNDING, 1.0)
