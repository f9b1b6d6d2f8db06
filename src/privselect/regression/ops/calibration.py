"""Calibration of a posterior sample: the largest signal whose privacy profile stays below a target."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.gaussian import gaussian_delta, gaussian_delta_upper
from privselect.regression.ops.worst_leverage import MIN_CELL_WIDTH, is_under_limits, is_under_limits_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism

    Floats = NDArray[np.float64]

_KNOTS = 200
_GRID = 1000  # leverages are rounded up to this many values per factor of e
_STEPS = 22  # of a bisection over the span: to 5e-6, in the log
_SPAN = math.log(1e5)
_SMALLEST_MU = 1e-9  # smaller mu are not searched
_TOLERANCE = 1e-6  # of mu
_LARGEST_EPSILON = 700.0  # e to this is a float


def largest_signal(leverage: float, mu: float, delta: float) -> float:
    """Return the largest signal found for which the posterior sample leaks no more than ``gdp(mu, delta)``; 0 if none does.

    Claim: for every row of at most this leverage and signal, both deltas are at most ``T(e) = delta + (1 - delta) G_mu(e)`` at every
    real e, with G the profile of N(mu, 1) against N(0, 1).

    Proof: T is its own reverse, so e >= 0 is enough. In ``a = e^e`` a hockey-stick divergence is convex, so it lies below its own chords
    between knots. At the knots it is below T by more than T's chords are above T. Beyond the last knot it decreases, and T is at least
    delta.

    Holds when no row exceeds the leverage or the signal. Label: **Under a target**.
    """
    # With delta 0 no Gaussian tail is heavy enough.
    return _largest_signal_under_target(_rounded_up(leverage), mu, delta) if delta > 0.0 else 0.0


def signal_for_dp(leverage: float, epsilon: float, delta: float) -> float:
    """Return the largest signal found for which the posterior sample alone is (epsilon, delta)-DP; 0 if none is."""
    return _largest_signal(leverage, np.array([epsilon]), np.array([delta]), _approximate_mu(epsilon, delta) ** 2 / leverage)


def largest_mu(make: Callable[[float], Mechanism], epsilon: float, delta: float) -> float:
    """Return the largest mu found for which the mechanism ``make(mu)`` is (epsilon, delta)-DP by its own accountant.

    ``make(mu)`` must leak about as much as a Gaussian of that mu.
    """
    return largest_feasible(lambda mu: bool(make(mu).epsilon_at(delta).upper <= epsilon), _approximate_mu(epsilon, delta))


def largest_feasible(is_feasible: Callable[[float], bool], start: float) -> float:
    """Return the largest feasible positive number found, given that smaller ones are feasible too; 0 if none above 1e-9 is."""
    low = high = start
    while not is_feasible(low):
        high, low = low, 0.9 * low
        if low < _SMALLEST_MU:
            return 0.0
    while high == low or is_feasible(high):
        low, high = high, 1.1 * high
    while high > low * (1.0 + _TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_feasible(middle) else (low, middle)
    return low


@lru_cache(maxsize=2**14)
def _largest_signal_under_target(leverage: float, mu: float, delta: float) -> float:
    epsilon, limits = _target_knots(mu, delta)
    return _largest_signal(leverage, epsilon, limits, mu * mu / leverage)


def _largest_signal(leverage: float, epsilon: Floats, limits: Floats, start: float) -> float:
    """Bisect over the signal, first at the largest leverage alone, which decides if it is small."""
    low, high = math.log(start) - _SPAN, math.log(start) + _SPAN
    if not is_under_limits_at(leverage, math.exp(low), epsilon, limits):
        return 0.0
    low = _bisect_log(lambda signal: is_under_limits_at(leverage, signal, epsilon, limits), low, high, _STEPS)
    near = low - 4.0 * MIN_CELL_WIDTH
    if is_under_limits(leverage, math.exp(near), epsilon, limits):
        return math.exp(near)
    lowest = math.log(start) - _SPAN
    if not is_under_limits(leverage, math.exp(lowest), epsilon, limits):
        return 0.0
    return math.exp(_bisect_log(lambda signal: is_under_limits(leverage, signal, epsilon, limits), lowest, near, _STEPS - 4))


def _bisect_log(is_feasible: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    """Return the log of a feasible number after bisecting between two logs."""
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if is_feasible(math.exp(middle)) else (low, middle)
    return low


@lru_cache(maxsize=256)
def _target_knots(mu: float, delta: float) -> tuple[Floats, Floats]:
    """Return knots, and at each knot T minus the amount by which T's chords to the neighbouring knots exceed T."""
    # At the last knot the Gaussian part is negligible compared with delta.
    last = min(mu * (0.5 * mu + math.sqrt(2.0 * (math.log(1e4) - math.log(delta)))), _LARGEST_EPSILON)
    epsilon = np.linspace(0.0, last, _KNOTS)
    value, slope = delta + (1.0 - delta) * gaussian_delta(mu, epsilon), -(1.0 - delta) * ndtr(-epsilon / mu - 0.5 * mu)
    width = np.diff(np.exp(epsilon))
    chord = np.diff(value) / width
    # A convex curve lies above its tangents at both knots: the chord exceeds the curve by at most its distance from where they meet.
    sag = np.maximum((slope[1:] - chord) * (chord - slope[:-1]) / np.maximum(slope[1:] - slope[:-1], 1e-300), 0.0) * width
    # For a small mu the profile is a small difference: its rounding affects the value at a knot, at its neighbour, and the chord.
    rounding = 4.0 * (gaussian_delta_upper(mu, epsilon) - gaussian_delta(mu, epsilon)) + 1e-13 * value
    rounding[1:] = np.maximum(rounding[1:], rounding[:-1])  # it decreases with the value
    lowered = value - np.maximum(np.append(sag, 0.0), np.append(0.0, sag)) * (1.0 + 1e-6) - rounding
    lowered[-1] = min(lowered[-1], delta)
    return epsilon, lowered


def _rounded_up(leverage: float) -> float:
    """Round a leverage up to a grid, so nearly equal leverages share cached results."""
    return math.exp((math.floor(math.log(leverage) * _GRID) + 1.0) / _GRID) * (1.0 + 1e-12)


def _approximate_mu(epsilon: float, delta: float) -> float:
    """Return about the mu at which a Gaussian is (epsilon, delta)-DP; never 0, however small the epsilon."""
    quantile = math.sqrt(-2.0 * math.log(delta))
    # At epsilon 0, delta is about 0.4 mu.
    return max(2.0 * epsilon / (math.sqrt(quantile * quantile + 2.0 * epsilon) + quantile), 2.0 * delta, _SMALLEST_MU)
