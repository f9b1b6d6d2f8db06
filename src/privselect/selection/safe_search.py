"""Searches that end on the safe side: a poor search loosens a bound, it never breaks one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LARGEST_EPSILON = 700.0  # e^709 overflows: a guarantee up there is none
_LOG_ROUNDING = 4e-12  # twice what two neighbouring values of log phi' can be off
_MOST_PIECES, _ROUNDS = 300_000, 40


def solve_epsilon(delta_of_epsilon: Callable[[float], float], delta: float, *, tolerance: float = 1e-10) -> float:
    """The smallest epsilon >= 0 found with ``delta_of_epsilon(epsilon) <= delta``; infinite where none is below 700.

    The answer is always a point at which the inequality was seen to hold. For a nonincreasing function it is within the
    relative ``tolerance`` of the smallest one.
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
    budget = high - low  # how wide the bracket may be by now: halved each round, as bisection would do
    while high - low > tolerance * high:
        middle = 0.5 * (low + high)
        guess = low + (high - low) * above / (above - below) if math.isfinite(above - below) else middle
        # Past the guess by a little towards the middle, so that the root is caught between two near points.
        step = min(0.1 * (high - low) ** 2 / budget + 0.25 * tolerance * high, abs(middle - guess))
        guess += math.copysign(step, middle - guess)
        slack = max(2.0 * budget - 0.5 * (high - low), 0.0)
        guess = min(max(guess, middle - slack), middle + slack)
        if not low < guess < high:
            guess = middle
        if not low < guess < high:
            break  # neighbouring floats
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


def least(function: Callable[[Floats], Floats], points: Floats, *, rounds: int = 10) -> float:
    """The argument of the least value found: the best of ``points``, then of ever finer grids around the best so far."""
    best, smallest = float(points[0]), math.inf
    for _ in range(rounds):
        values = np.asarray(function(points))
        place = int(np.argmin(values))
        if values[place] < smallest:
            best, smallest = float(points[place]), float(values[place])
        points = np.linspace(points[max(place - 1, 0)], points[min(place + 1, len(points) - 1)], 33)
    return best


def greatest_along(
    log_weight: Callable[[Floats], Floats], path: tuple[Floats, Floats], *, gain: float = 1.0, cost: float = 1.0, tolerance: float = 1e-6
) -> float:
    r"""An upper bound on ``gain L(u) - cost L(v)`` along the polygon ``path`` of vertices (u, v), both ascending from 0 to 1.

    L is ``log phi'(1-u)`` for some law of K, and gain >= cost >= 0. Pieces of the polygon are bounded one by one, and cut finer
    until the bounds are ``tolerance`` from a value attained: see :func:`_piece_bounds`.

    On a piece that ends in (1, 1) with v >= u the greatest value is at its start: there ``1-v = c (1-u)`` with c <= 1, and L is a
    convex increasing function of ``log(1-u)``, as the logarithm of any power series without negative coefficients.
    """
    u, v = path
    if len(u) > 1 and u[-1] >= 1.0 and v[-1] >= 1.0 and v[-2] >= u[-2]:
        u, v = u[:-1], v[:-1]
    top, bottom = log_weight(u), log_weight(v)
    for remaining in range(_ROUNDS, -1, -1):
        values = _difference(gain, top, cost, bottom)
        bounds = _piece_bounds(_Side(u, top, gain), _Side(v, bottom, cost), values)
        attained = values.max()
        loose = np.flatnonzero(bounds > attained + tolerance)
        if len(loose) == 0 or np.isposinf(attained) or len(u) > _MOST_PIECES or remaining == 0:
            break
        places = np.repeat(loose + 1, 3)
        share = np.tile([0.25, 0.5, 0.75], len(loose))
        new_u = u[places - 1] + share * (u[places] - u[places - 1])
        new_v = v[places - 1] + share * (v[places] - v[places - 1])
        u, v = np.insert(u, places, new_u), np.insert(v, places, new_v)
        top, bottom = np.insert(top, places, log_weight(new_u)), np.insert(bottom, places, log_weight(new_v))
    return float(max(attained, bounds.max(initial=-np.inf)))


def _difference(gain: float, top: Floats, cost: float, bottom: Floats) -> Floats:
    """``gain top - cost bottom`` in the extended reals; minus infinity where phi' vanishes on top, whatever is below."""
    with np.errstate(invalid="ignore"):
        value = gain * top - cost * bottom
    return np.where(np.isneginf(top), -np.inf, value)


class _Side:
    """One of the two terms at the vertices: places, ``factor * L``, and what convexity says of its fall inside each piece."""

    def __init__(self, places: Floats, log_weights: Floats, factor: float) -> None:
        self.places, self.factor = places, factor
        self.at = factor * log_weights
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step, left = np.diff(places), 1.0 - places
            fall, run = self.at[:-1] - self.at[1:], np.log1p(step / left[1:])
            noise = factor * _LOG_ROUNDING * (1.0 + np.abs(log_weights[1:]))
            # L is convex in log(1-u): its slope inside a piece is at most the last chord before, at least the next chord after.
            steepest = _last_known((fall + noise) / run, np.inf)
            flattest = _last_known(((fall - noise) / run)[::-1], 0.0)[::-1]
            most = np.where(step > 0.0, steepest * step / left[1:], 0.0)
            least = np.where(step > 0.0, np.maximum(flattest, 0.0) * step / left[:-1], 0.0)
        # The rate of fall inside a piece, per length of the piece, is between these two.
        self.most, self.least = np.where(np.isnan(most), np.inf, most), np.where(np.isnan(least), 0.0, least)


def _last_known(slopes: Floats, first: float) -> Floats:
    """For each entry the one before it, skipping those without a value (pieces of no length)."""
    known = np.where(np.isfinite(slopes), np.arange(1, len(slopes) + 1), 0)
    before = np.concatenate([[0], np.maximum.accumulate(known)])[: len(slopes)]
    return np.asarray(np.concatenate([[first], slopes])[before])


def _piece_bounds(top: _Side, bottom: _Side, values: Floats) -> Floats:
    """For each piece an upper bound on top minus bottom inside it: the least of four.

    Both terms fall along a piece, so no value is above top at its start minus bottom at its end. Nor above the value at the start plus
    the fastest that bottom falls ahead of top; nor above the value at the end plus the fastest that top falls ahead of bottom: these
    two are of second order in the piece where it matters. And where v <= u, ``cost (L(u) - L(v)) <= 0``.
    """
    crude = _difference(1.0, top.at[:-1], 1.0, bottom.at[1:])
    with np.errstate(invalid="ignore"):
        from_start = values[:-1] + np.maximum(bottom.most - top.least, 0.0)
        from_end = values[1:] + np.maximum(top.most - bottom.least, 0.0)
        excess = (1.0 - bottom.factor / top.factor) * top.at[:-1]
    from_end = np.where(np.isneginf(values[1:]), np.inf, from_end)
    behind = bottom.places <= top.places
    alone = np.where(behind[:-1] & behind[1:], excess, np.inf)
    # fmin: a piece that starts where phi' vanishes has no value, and no bound but minus infinity.
    return np.asarray(np.fmin(np.fmin(crude, from_start), np.fmin(from_end, alone)))
