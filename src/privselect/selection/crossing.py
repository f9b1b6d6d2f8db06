"""Where a costly, nonincreasing bound crosses delta: few evaluations, and an answer on the asked side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.selection.search import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

_CLOSE = 4e-4  # in log delta: an epsilon whose delta is this near the asked one is good enough
_STEPS = 60


@dataclass(frozen=True, slots=True)
class Crossing:
    """Secant steps on ``log(bound)``, kept inside a bracket; the answer is a point that was evaluated, or an end of the bracket.

    ``slope`` is a first guess of -d log(bound)/d epsilon.
    """

    bound: Callable[[float], float]
    delta: float
    slope: float

    def from_above(self, guess: float, low: float, high: float) -> float:
        """An epsilon with bound <= delta, near the least one; ``high`` is known to be one (infinite: none is known)."""
        if math.isinf(high):
            low, high = self._bracketed(low)
        return high if math.isinf(high) else self._narrowed(guess, low, high, side=-1)[1]

    def from_below(self, guess: float, high: float) -> float:
        """An epsilon with bound >= delta, near the greatest one, or 0; ``high`` is known to lie beyond."""
        return self._narrowed(guess, 0.0, high, side=1)[0]

    def _excess(self, epsilon: float) -> float:
        value = self.bound(epsilon)
        return math.log(value / self.delta) if value > 0.0 else -math.inf

    def _bracketed(self, low: float) -> tuple[float, float]:
        high = max(2.0 * low, 1.0)
        while self._excess(high) > 0.0:
            if high >= LARGEST_EPSILON:
                return high, math.inf
            low, high = high, min(2.0 * high, LARGEST_EPSILON)
        return low, high

    def _narrowed(self, point: float, low: float, high: float, *, side: int) -> tuple[float, float]:
        slope, before, aim = self.slope, (math.nan, math.nan), side * _CLOSE / 3.0
        width = 2.0 * (high - low)
        for step in range(_STEPS):
            if high - low <= 1e-8 * high or high < 1e-10:
                break
            if step % 3 == 2:
                point, width = (0.5 * (low + high) if high - low > 0.5 * width else point), high - low
            point = point if low < point < high else 0.5 * (low + high)
            if low == 0.0 and point < 1e-3 * high and not math.isnan(before[0]):
                point = 0.0  # large deltas: is any epsilon needed at all?
            value = self._excess(point)
            low, high = (point, high) if value > 0.0 else (low, point)
            if value * side >= 0.0 and abs(value) <= _CLOSE:
                break
            if math.isfinite(before[1]) and before[1] != value:
                slope = max((before[1] - value) / (point - before[0]), 1e-3)
            before = (point, value)
            point += (value - aim) / slope
        return low, high
