"""How many steps: levels of a function that rises with the number of steps and is dear to evaluate."""

from __future__ import annotations

import math
from bisect import insort
from typing import TYPE_CHECKING

from privselect.mechanisms.base import MAX_RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

LOG_DELTA_SLOPE = 15.0  # about the slope of log delta
LOG_EPSILON_SLOPE = 0.6  # and of log epsilon
_LEAP = 2.0  # the farthest from one guess to the next, in logs, where nothing is known on the far side
_PAST, _LEAST_PAST = 0.25, 1e-3  # how far past an extrapolated crossing to look, of the way and at least: to have it between two values


class StepSearch:
    """Values at numbers of steps from 1 to ``MAX_RUNS``, each found once.

    ``first`` is where to look first, and ``slope`` about the slope against the log of the steps.

    The function is taken to rise, but need not quite: bounds on delta waver in their last digits. :meth:`around` still ends between
    two numbers of steps on either side of the level; which one, where there are several, is left open.
    """

    def __init__(self, value: Callable[[int], float], first: float, slope: float) -> None:
        self._value, self._slope = value, slope
        self._first = round(min(max(first, 1.0), float(MAX_RUNS)))
        self._points: list[tuple[int, float]] = []  # ascending

    def at(self, steps: int) -> float:
        """The value there."""
        for known, value in self._points:
            if known == steps:
                return value
        value = self._value(steps)
        insort(self._points, (steps, value))
        return value

    def around(self, level: float, *, close: float = 0.0) -> tuple[int, int]:
        """(low, high) with ``value(low) <= level < value(high)``: neighbours, or no further apart than ``close``, relative.

        ``low`` is 0 where one step is too much already, and ``high`` is past ``MAX_RUNS`` where those are not.
        """
        low, high = self._known(level)
        rounds, halved = 0, math.inf
        while high - low > max(1.0, close * low):
            # Every third round the bracket must have been halved, or is.
            rounds += 1
            bisect = rounds % 3 == 0 and low > 0 and high <= MAX_RUNS and high - low > halved
            halved = 0.5 * (high - low) if rounds % 3 == 0 else halved
            guess = round(math.sqrt(low * high)) if bisect else self._guess(level, low, high, rounds)
            guess = min(max(guess, low + 1), high - 1)
            if self.at(guess) <= level:
                low = guess
            else:
                high = guess
        return low, high

    def near(self, level: float, *, close: float) -> int:
        """About the greatest number of steps whose value is at most ``level``, between values found ``close`` to it; at least 1."""
        low, high = self.around(level, close=close)
        if low == 0 or high > MAX_RUNS:
            return max(low, 1)
        return min(max(math.floor(self._between(level, low, high)), low), high - 1)

    def _known(self, level: float) -> tuple[int, int]:
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
            return math.floor(self._beyond(level, high, self._points[:2], rounds))
        if high > MAX_RUNS:
            return math.ceil(self._beyond(level, low, self._points[-2:], rounds))
        guess, middle = self._between(level, low, high), math.sqrt(low * high)
        # Past the crossing by a little towards the far end, so that it is caught between two near points.
        past = max(0.1 * math.log(high / low) ** 2 * guess, 0.6)
        return round(min(guess + past, max(middle, guess)) if guess < middle else max(guess - past, min(middle, guess)))

    def _beyond(self, level: float, steps: int, last: list[tuple[int, float]], rounds: int) -> float:
        """A little past where the level is met, if the function goes on from its last two values as a line in the log of the steps."""
        missing, slope = level - self.at(steps), self._slope
        if len(last) == 2 and math.isfinite(last[1][1] - last[0][1]):
            slope = max((last[1][1] - last[0][1]) / math.log(last[1][0] / last[0][0]), 0.01 * self._slope)
        move = missing / slope
        # Further each time: where the function is flat, its slope tells nothing.
        move += math.copysign(_PAST * abs(move) + _LEAST_PAST * 2.0**rounds, missing)
        return steps * math.exp(min(max(move, -_LEAP), _LEAP))

    def _between(self, level: float, low: int, high: int) -> float:
        below, above = self.at(low), self.at(high)
        if not math.isfinite(above - below):
            return math.sqrt(low * high)
        return low * math.exp((level - below) / (above - below) * math.log(high / low))
