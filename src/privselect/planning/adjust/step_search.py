"""Find the number of steps at which an expensive, increasing function reaches a level."""

from __future__ import annotations

import math
from bisect import insort
from typing import TYPE_CHECKING

from privselect.mechanisms.base import MAX_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_DELTA_SLOPE = 15.0  # approximate slope of log delta against the log of the steps
LOG_EPSILON_SLOPE = 0.6  # approximate slope of log epsilon
_LONGEST_STEP = 2.0  # in logs, of an extrapolation
_OVERSHOOT, _SMALLEST_OVERSHOOT = 0.25, 1e-3  # past an extrapolated crossing, to bracket it; relative to the step, and at least


class StepSearch:
    """Values of a function of the number of steps, from 1 to ``MAX_RUNS``, with a cache.

    ``first`` is the first number of steps to try, and ``slope`` the approximate slope against the log of the steps.

    The function should increase; small fluctuations, as of bounds on delta, are allowed. :meth:`bracket` then still returns two
    numbers of steps on either side of the level, but not necessarily the largest such pair.
    """

    def __init__(self, value: Callable[[int], float], first: float, slope: float) -> None:
        self._value, self._slope = value, slope
        self._first = round(min(max(first, 1.0), float(MAX_RUNS)))
        self._points: list[tuple[int, float]] = []  # ascending

    def value_at(self, steps: int) -> float:
        """Return the value at a number of steps."""
        for known, value in self._points:
            if known == steps:
                return value
        value = self._value(steps)
        insort(self._points, (steps, value))
        return value

    def bracket(self, level: float, *, close: float = 0.0) -> tuple[int, int]:
        """Return (low, high) with ``value(low) <= level < value(high)``: neighbours, or within the relative distance ``close``.

        ``low`` is 0 if one step exceeds the level, and ``high`` is above ``MAX_RUNS`` if no number of steps exceeds it.
        """
        low, high = self._known_bracket(level)
        rounds, halved = 0, math.inf
        while high - low > max(1.0, close * low):
            # Bisect if three rounds have not halved the bracket.
            rounds += 1
            bisect = rounds % 3 == 0 and low > 0 and high <= MAX_RUNS and high - low > halved
            halved = 0.5 * (high - low) if rounds % 3 == 0 else halved
            guess = round(math.sqrt(low * high)) if bisect else self._guess(level, low, high, rounds)
            guess = min(max(guess, low + 1), high - 1)
            if self.value_at(guess) <= level:
                low = guess
            else:
                high = guess
        return low, high

    def interpolate(self, level: float, *, close: float) -> int:
        """Return about the largest number of steps, at least 1, with a value of at most ``level``, by interpolation in a bracket."""
        low, high = self.bracket(level, close=close)
        if low == 0 or high > MAX_RUNS:
            return max(low, 1)
        return min(max(math.floor(self._interpolate(level, low, high)), low), high - 1)

    def _known_bracket(self, level: float) -> tuple[int, int]:
        low = 0
        for steps, value in self._points:
            if value > level:
                return low, steps
            low = steps
        return low, MAX_RUNS + 1

    def _guess(self, level: float, low: int, high: int, rounds: int) -> int:
        if low == 0 and high > MAX_RUNS:
            return self._first
        if low == 0:
            return math.floor(self._extrapolate(level, high, self._points[:2], rounds))
        if high > MAX_RUNS:
            return math.ceil(self._extrapolate(level, low, self._points[-2:], rounds))
        guess, middle = self._interpolate(level, low, high), math.sqrt(low * high)
        # Step slightly past the crossing, towards the far end: the crossing is then between two near points.
        past = max(0.1 * math.log(high / low) ** 2 * guess, 0.6)
        return round(min(guess + past, max(middle, guess)) if guess < middle else max(guess - past, min(middle, guess)))

    def _extrapolate(self, level: float, steps: int, last: list[tuple[int, float]], rounds: int) -> float:
        """Return a point slightly past the level, by linear extrapolation of the last two values in the log of the steps."""
        missing, slope = level - self.value_at(steps), self._slope
        if len(last) == 2 and math.isfinite(last[1][1] - last[0][1]):
            slope = max((last[1][1] - last[0][1]) / math.log(last[1][0] / last[0][0]), 0.01 * self._slope)
        move = missing / slope
        # Overshoot more in each round, because the slope of a flat function says nothing.
        move += math.copysign(_OVERSHOOT * abs(move) + _SMALLEST_OVERSHOOT * 2.0**rounds, missing)
        return steps * math.exp(min(max(move, -_LONGEST_STEP), _LONGEST_STEP))

    def _interpolate(self, level: float, low: int, high: int) -> float:
        below, above = self.value_at(low), self.value_at(high)
        if not math.isfinite(above - below):
            return math.sqrt(low * high)
        return low * math.exp((level - below) / (above - below) * math.log(high / low))
