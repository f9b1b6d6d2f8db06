"""Searches whose result is always an evaluated point on the safe side.

A poor search can loosen a bound; it can never make one wrong.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LARGEST_EPSILON = 700.0  # e^709 overflows, and such guarantees are useless

_NARROW = 1e-5  # relative width of a bracket that needs no further steps
_CLIFF_POWER = 2.0  # first guess: the bound falls like this power of the distance to the edge
_STEPS = 60


def smallest_epsilon_where(holds: Callable[[float], bool], *, largest: float, close: float) -> float:
    """Return the smallest epsilon >= 0 found at which ``holds`` is true, by doubling and bisection.

    ``holds`` must stay true for larger epsilons. The result was evaluated and satisfies ``holds``. A point within the relative
    distance ``close`` of it does not. The result is infinite if no epsilon up to ``largest`` satisfies ``holds``.
    """
    if holds(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while not holds(high):
        low, high = high, 2.0 * high
        if high > largest:
            return math.inf
    while (middle := 0.5 * (low + high)) not in {low, high} and high - low > close * high:
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def smallest_integer_where(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Return the smallest integer in (low, high] at which ``holds`` is true, by bisection.

    ``holds`` must stay true for larger integers. It is not evaluated at ``low``, where it must be false, nor at ``high``, where it
    must be true.
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def solve_epsilon(delta_of_epsilon: Callable[[float], float], delta: float, *, tolerance: float = 1e-10) -> float:
    """Return the smallest epsilon >= 0 found with ``delta_of_epsilon(epsilon) <= delta``, or infinity if none is below 700.

    The inequality was evaluated at the result. For a nonincreasing function the result is within the relative ``tolerance`` of
    the smallest such epsilon.
    """

    def excess(epsilon: float) -> float:
        value = float(delta_of_epsilon(epsilon))
        return math.log(value / delta) if value > 0.0 else -math.inf

    at_zero = excess(0.0)
    if at_zero <= 0.0:
        return 0.0
    low, high, above, below = _bracket(excess, at_zero)
    if math.isinf(high):
        return math.inf
    budget = high - low  # bisection would have this width after the same number of rounds
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        guess = low + (high - low) * above / (above - below) if math.isfinite(above - below) else middle
        # Step slightly past the guess, towards the middle: the root is then enclosed by two near points.
        step = min(0.1 * (high - low) ** 2 / budget + 0.25 * tolerance * high, abs(middle - guess))
        guess += math.copysign(step, middle - guess)
        slack = max(2.0 * budget - 0.5 * (high - low), 0.0)
        guess = min(max(guess, middle - slack), middle + slack)
        if not low < guess < high:
            guess = middle
        if not low < guess < high:
            break  # low and high are neighbouring floats
        value = excess(guess)
        if value <= 0.0:
            high, below = guess, value
        else:
            low, above = guess, value
        budget *= 0.5
    return high


def _bracket(excess: Callable[[float], float], at_zero: float) -> tuple[float, float, float, float]:
    low, high, above = 0.0, 1.0, at_zero
    while True:
        below = excess(high)
        if below <= 0.0:
            return low, high, above, below
        if high >= LARGEST_EPSILON:
            return high, math.inf, below, -math.inf
        low, high, above = high, min(2.0 * high, LARGEST_EPSILON), below


def grid_argmin(function: Callable[[Floats], Floats], points: Floats, *, rounds: int = 10) -> float:
    """Return the argument of the smallest value found: first among ``points``, then on finer grids around the best one."""
    best, smallest = float(points[0]), math.inf
    for _ in range(rounds):
        values = np.asarray(function(points))
        index = int(np.argmin(values))
        if values[index] < smallest:
            best, smallest = float(points[index]), float(values[index])
        points = np.linspace(points[max(index - 1, 0)], points[min(index + 1, len(points) - 1)], 33)
    return best


@dataclass(frozen=True, slots=True)
class BracketedSecant:
    """Find where an expensive, nonincreasing bound crosses delta, with few evaluations.

    Secant steps on ``log(bound)`` are kept inside a bracket. The result is an evaluated point or an end of the bracket.
    ``slope`` is a first guess of -d log(bound)/d epsilon. The search stops at an epsilon where ``log(bound)`` is within
    ``close`` of ``log(delta)``.
    """

    bound: Callable[[float], float]
    delta: float
    slope: float
    close: float

    def from_above(self, guess: float, low: float, high: float) -> float:
        """Return an epsilon with bound <= delta, close to the smallest one; ``high`` must be such an epsilon."""
        return self._narrow(guess, low, high, side=-1)[1]

    def from_below(self, guess: float, high: float) -> float:
        """Return an epsilon with bound >= delta, close to the largest one, or 0; ``high`` must lie above all of them."""
        return self._narrow(guess, 0.0, high, side=1)[0]

    def _excess(self, epsilon: float) -> float:
        value = self.bound(epsilon)
        return math.log(value / self.delta) if value > 0.0 else -math.inf

    def _narrow(self, point: float, low: float, high: float, *, side: int) -> tuple[float, float]:
        slope, before, aim = self.slope, (math.nan, math.nan), side * self.close / 3.0
        width, axis = 2.0 * (high - low), _LinearAxis()
        for step in range(_STEPS):
            if high - low <= _NARROW * high or high < 1e-10:
                break
            if step % 3 == 2:
                point, width = (0.5 * (low + high) if high - low > 0.5 * width else point), high - low
            if point >= high and axis.edge == math.inf:
                # The step went past a safe point: if the bound drops abruptly there, the answer is next to the edge.
                axis, slope, point = _CliffAxis(high), _CLIFF_POWER, high * (1.0 - 0.9 * _NARROW)
            point = point if low < point < high else 0.5 * (low + high)
            if low == 0.0 and point < 1e-3 * high and not math.isnan(before[0]):
                point = 0.0  # for a large delta, epsilon 0 may be enough
            value = self._excess(point)
            low, high = (point, high) if value > 0.0 else (low, point)
            if value * side >= 0.0 and abs(value) <= self.close:
                break
            run = axis.coordinate(point) - axis.coordinate(before[0])
            if run != 0.0 and math.isfinite(run) and math.isfinite(before[1]) and before[1] != value:
                slope = max((before[1] - value) / run, 1e-3)
            before = (point, value)
            point = axis.epsilon(axis.coordinate(point) + (value - aim) / slope)
        return low, high


class _LinearAxis:
    """Epsilon as the coordinate of secant steps."""

    edge = math.inf

    def coordinate(self, epsilon: float) -> float:
        return epsilon

    def epsilon(self, coordinate: float) -> float:
        return coordinate


@dataclass(frozen=True, slots=True)
class _CliffAxis(_LinearAxis):
    """``-log(edge - epsilon)`` as the coordinate: the logarithm of a power of ``edge - epsilon`` is linear in it."""

    edge: float

    def coordinate(self, epsilon: float) -> float:
        return -math.log(self.edge - epsilon) if epsilon < self.edge else math.inf

    def epsilon(self, coordinate: float) -> float:
        return self.edge - math.exp(-coordinate) if coordinate > -700.0 else -math.inf
