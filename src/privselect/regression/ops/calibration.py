"""How precise a posterior sample may be: the largest signal whose hockey sticks stay under a target."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.gaussian import gaussian_delta, gaussian_delta_above
from privselect.regression.ops.worst_leverage import NARROW, is_under_at, stays_under

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism

    Floats = NDArray[np.float64]

_KNOTS = 200
_GRID = 1000  # leverages are rounded up to so many to a factor of e
_STEPS = 22  # of a bisection over the span: to 5e-6, in the log
_SPAN = math.log(1e5)
_LEAST_MU = 1e-9  # below it none is looked for
_TOLERANCE = 1e-6  # of mu
_LARGEST = 700.0  # epsilon: e to this is a float


def largest_signal(leverage: float, mu: float, delta: float) -> float:
    """The largest signal found for which the posterior sample leaks no more than ``gdp(mu, delta)``; 0 where none does.

    Claim: for every row of at most this leverage and signal, both hockey sticks lie below ``T(e) = delta + (1 - delta) G_mu(e)`` at every
    real e, with G the profile of N(mu, 1) against N(0, 1).

    Proof: T is its own reverse, so e >= 0 is enough. In ``a = e^e`` a hockey stick is convex, so it lies below its own chords between
    knots; at the knots it is below T by more than T's chords are above T. Beyond the last knot it falls, and T is at least delta.

    Holds when no row exceeds the leverage or the signal. Label: **Under a target**.
    """
    return _under_target(_rounded_up(leverage), mu, delta) if delta > 0.0 else 0.0  # without a leak, no Gaussian's tail is long enough


def signal_for(leverage: float, epsilon: float, delta: float) -> float:
    """The largest signal found for which the posterior sample alone is (epsilon, delta)-DP; 0 where none is."""
    return _largest(leverage, np.array([epsilon]), np.array([delta]), _rough_mu(epsilon, delta) ** 2 / leverage)


def largest_mu(make: Callable[[float], Mechanism], epsilon: float, delta: float) -> float:
    """The largest mu found for which the mechanism that ``make`` makes of it is (epsilon, delta)-DP, as its own accountant says.

    ``make`` is asked for mechanisms that leak about as much as a Gaussian of that mu.
    """
    return largest_that(lambda mu: bool(make(mu).epsilon_at(delta).upper <= epsilon), _rough_mu(epsilon, delta))


def largest_that(fits: Callable[[float], bool], start: float) -> float:
    """The largest positive number found that fits, where smaller ones fit too; 0 where none above 1e-9 does."""
    low = high = start
    while not fits(low):
        high, low = low, 0.9 * low
        if low < _LEAST_MU:
            return 0.0
    while high == low or fits(high):
        low, high = high, 1.1 * high
    while high > low * (1.0 + _TOLERANCE):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@lru_cache(maxsize=2**14)
def _under_target(leverage: float, mu: float, delta: float) -> float:
    epsilon, limits = _target(mu, delta)
    return _largest(leverage, epsilon, limits, mu * mu / leverage)


def _largest(leverage: float, epsilon: Floats, limits: Floats, start: float) -> float:
    """By bisection; first at the largest leverage alone, which decides where it is small."""
    low, high = math.log(start) - _SPAN, math.log(start) + _SPAN
    if not is_under_at(leverage, math.exp(low), epsilon, limits):
        return 0.0
    low = _bisected(lambda signal: is_under_at(leverage, signal, epsilon, limits), low, high, _STEPS)
    near = low - 4.0 * NARROW
    if stays_under(leverage, math.exp(near), epsilon, limits):
        return math.exp(near)
    lowest = math.log(start) - _SPAN
    if not stays_under(leverage, math.exp(lowest), epsilon, limits):
        return 0.0
    return math.exp(_bisected(lambda signal: stays_under(leverage, signal, epsilon, limits), lowest, near, _STEPS - 4))


def _bisected(fits: Callable[[float], bool], low: float, high: float, steps: int) -> float:
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if fits(math.exp(middle)) else (low, middle)
    return low


@lru_cache(maxsize=256)
def _target(mu: float, delta: float) -> tuple[Floats, Floats]:
    """Knots, and at each T less what T's chords to the neighbours are above T."""
    # Where the Gaussian's part is next to nothing beside the leak.
    end = min(mu * (0.5 * mu + math.sqrt(2.0 * (math.log(1e4) - math.log(delta)))), _LARGEST)
    epsilon = np.linspace(0.0, end, _KNOTS)
    value, slope = delta + (1.0 - delta) * gaussian_delta(mu, epsilon), -(1.0 - delta) * ndtr(-epsilon / mu - 0.5 * mu)
    width = np.diff(np.exp(epsilon))
    chord = np.diff(value) / width
    # A convex curve lies above its tangents at both ends: its chord is above it by at most their distance where they meet.
    sag = np.maximum((slope[1:] - chord) * (chord - slope[:-1]) / np.maximum(slope[1:] - slope[:-1], 1e-300), 0.0) * width
    # Of a small mu the profile is a small difference: its rounding counts in the value at a knot, in its neighbour's and in the chord.
    rounding = 4.0 * (gaussian_delta_above(mu, epsilon) - gaussian_delta(mu, epsilon)) + 1e-13 * value
    rounding[1:] = np.maximum(rounding[1:], rounding[:-1])  # it falls with the value
    lowered = value - np.maximum(np.append(sag, 0.0), np.append(0.0, sag)) * (1.0 + 1e-6) - rounding
    lowered[-1] = min(lowered[-1], delta)
    return epsilon, lowered


def _rounded_up(leverage: float) -> float:
    """On a grid, so that leverages which nearly agree share their work."""
    return math.exp((math.floor(math.log(leverage) * _GRID) + 1.0) / _GRID) * (1.0 + 1e-12)


def _rough_mu(epsilon: float, delta: float) -> float:
    """About the mu at which a Gaussian is (epsilon, delta)-DP; never 0, however small the epsilon."""
    reach = math.sqrt(-2.0 * math.log(delta))
    # At epsilon 0, delta is about 0.4 mu.
    return max(2.0 * epsilon / (math.sqrt(reach * reach + 2.0 * epsilon) + reach), 2.0 * delta, _LEAST_MU)
