"""Where a costly, nonincreasing bound crosses delta: few evaluations, and an answer on the asked side."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NARROW = 1e-5  # relative width of a bracket that needs no more
_CLIFF_POWER = 2.0  # of the distance to the edge, as a first guess
_STEPS = 60


@dataclass(frozen=True, slots=True)
class Crossing:
    """Secant steps on ``log(bound)``, kept inside a bracket; the answer is a point that was evaluated, or an end of the bracket.

    ``slope`` is a first guess of -d log(bound)/d epsilon; an epsilon whose bound is within ``close`` of delta, in its logarithm, is
    good enough.
    """

    bound: Callable[[float], float]
    delta: float
    slope: float
    close: float

    def from_above(self, guess: float, low: float, high: float) -> float:
        """An epsilon with bound <= delta, near the least one; ``high`` is known to be one."""
        return self._narrowed(guess, low, high, side=-1)[1]

    def from_below(self, guess: float, high: float) -> float:
        """An epsilon with bound >= delta, near the greatest one, or 0; ``high`` is known to lie beyond."""
        return self._narrowed(guess, 0.0, high, side=1)[0]

    def _excess(self, epsilon: float) -> float:
        value = self.bound(epsilon)
        return math.log(value / self.delta) if value > 0.0 else -math.inf

    def _narrowed(self, point: float, low: float, high: float, *, side: int) -> tuple[float, float]:
        slope, before, aim = self.slope, (math.nan, math.nan), side * self.close / 3.0
        width, axis = 2.0 * (high - low), _Plain()
        for step in range(_STEPS):
            if high - low <= _NARROW * high or high < 1e-10:
                break
            if step % 3 == 2:
                point, width = (0.5 * (low + high) if high - low > 0.5 * width else point), high - low
            if point >= high and axis.edge == math.inf:
                # Beyond what is known to be safe: where the bound falls off a cliff, the answer is next to its edge.
                axis, slope, point = _Cliff(high), _CLIFF_POWER, high * (1.0 - 0.9 * _NARROW)
            point = point if low < point < high else 0.5 * (low + high)
            if low == 0.0 and point < 1e-3 * high and not math.isnan(before[0]):
                point = 0.0  # large deltas: is any epsilon needed at all?
            value = self._excess(point)
            low, high = (point, high) if value > 0.0 else (low, point)
            if value * side >= 0.0 and abs(value) <= self.close:
                break
            run = axis.place(point) - axis.place(before[0])
            if run != 0.0 and math.isfinite(run) and math.isfinite(before[1]) and before[1] != value:
                slope = max((before[1] - value) / run, 1e-3)
            before = (point, value)
            point = axis.point(axis.place(point) + (value - aim) / slope)
        return low, high


class _Plain:
    """Epsilon itself."""

    edge = math.inf

    def place(self, epsilon: float) -> float:
        return epsilon

    def point(self, place: float) -> float:
        return place


@dataclass(frozen=True, slots=True)
class _Cliff(_Plain):
    """``-log(edge - epsilon)``: along it the logarithm of a power of the distance to the edge is a line."""

    edge: float

    def place(self, epsilon: float) -> float:
        return -math.log(self.edge - epsilon) if epsilon < self.edge else math.inf

    def point(self, place: float) -> float:
        return self.edge - math.exp(-place) if place > -700.0 else -math.inf
