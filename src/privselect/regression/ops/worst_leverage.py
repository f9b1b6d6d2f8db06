"""The worst row: hockey sticks of a posterior sample, greatest over every leverage up to a largest one.

At a fixed ``nu = sqrt(signal/leverage)`` the laws of V with leverage h are N(nu, 1) tilted by ``exp(-h V^2/2)``: a family with a
monotone likelihood ratio, so both hockey sticks rise with h. At a fixed leverage they rise with the signal. Hence for every h between
``low`` and ``high``, at one signal rho, neither is above its value at leverage ``high`` and signal ``rho high/low``: cells of h are bounded
outward by one corner, which no row attains. In h itself, at a fixed signal, the hockey sticks are **not** monotone above about 0.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.regression.ops.ops_profile import with_over_without, without_over_with

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Direction = Callable[..., Floats]

NARROW = 2.0**-13  # a share of h: cells this narrow are not divided any more
_FIRST = 0.5  # of the largest leverage: below it cells grow with the square
_CLOSE = 1e-4  # a corner this near to what is attained is not looked at more closely
_UP = 1.0 + 1e-12
_TINY = 1e-290  # of a leverage: below this a float soon loses digits


@dataclass(frozen=True, slots=True)
class Worst:
    """Both hockey sticks at some epsilons >= 0: ``uppers`` hold for every leverage, ``lowers`` are attained by one of them."""

    uppers: tuple[Floats, Floats]
    lowers: tuple[Floats, Floats]


def worst_deltas(leverage: float, signal: float, epsilon: Floats, least: float) -> Worst:
    """With over without the row, and without over with it; values below ``least`` are not told apart."""
    found = [_greatest(direction, leverage, signal, epsilon, least) for direction in (with_over_without, without_over_with)]
    return Worst((found[0][0], found[1][0]), (found[0][1], found[1][1]))


def stays_under(leverage: float, signal: float, epsilon: Floats, limits: Floats) -> bool:
    """Whether both hockey sticks are proved to be at most ``limits``, for every leverage up to the largest."""
    return all(_is_under(direction, leverage, signal, epsilon, limits) for direction in (without_over_with, with_over_without))


def is_under_at(leverage: float, signal: float, epsilon: Floats, limits: Floats) -> bool:
    """The same at one leverage: what :func:`stays_under` needs, and nearly enough where the leverage is small."""
    return all(bool(np.all(d(leverage, signal, epsilon, side=1) <= limits)) for d in (without_over_with, with_over_without))


def _is_under(direction: Direction, leverage: float, signal: float, epsilon: Floats, limits: Floats) -> bool:
    low, high = _cells(leverage, signal, float(limits.min()), float(epsilon.min()))
    if low[-1] < _TINY:
        return False  # for a limit this small the leverages that are left are no floats
    while len(low):
        above = ~(_corners(direction, low, high, signal, epsilon) <= limits).all(axis=1)
        low, high = low[above], high[above]
        if (low > high * (1.0 - NARROW)).any():
            return False
        low, high = _divided(low, high)
    return True


def _greatest(direction: Direction, leverage: float, signal: float, epsilon: Floats, least: float) -> tuple[Floats, Floats]:
    """Each epsilon has its own worst leverage, so each divides its own cells: ``place`` says whose a cell is."""
    first_low, first_high = _cells(leverage, signal, least)
    least = max(least, _told_by_all_below(float(first_low[-1]), signal))
    low, high = (np.tile(ends, len(epsilon)) for ends in (first_low, first_high))
    place = np.repeat(np.arange(len(epsilon)), len(first_low))
    upper, lower = np.full(epsilon.shape, least), np.zeros(epsilon.shape)
    reached = upper.copy()  # what is attained, rounded up: no narrower cell is bounded by less
    while len(place):
        corners = direction(high, signal * _UP * high / low, epsilon[place], side=1)
        np.maximum.at(lower, place, direction(high, signal, epsilon[place], side=-1))
        np.maximum.at(reached, place, direction(high, signal, epsilon[place], side=1))
        unsure = corners > reached[place] * (1.0 + _CLOSE)
        wide = low <= high * (1.0 - NARROW)
        np.maximum.at(upper, place[~(unsure & wide)], corners[~(unsure & wide)])
        place = np.tile(place[unsure & wide], 2)
        low, high = _divided(low[unsure & wide], high[unsure & wide])
    return upper, np.minimum(lower, upper)


def _corners(direction: Direction, low: Floats, high: Floats, signal: float, epsilon: Floats) -> Floats:
    return np.asarray(direction(high[:, None], (signal * _UP * high / low)[:, None], epsilon, side=1))


def _cells(leverage: float, signal: float, least: float, epsilon: float = 0.0) -> tuple[Floats, Floats]:
    """Cells of h from ``leverage`` down to where what is left is told by at most ``least`` from ``epsilon`` on: their ends.

    They are narrow near the largest leverage, which is the worst one where h is small, and wider further down: at the corner of the
    wide ones signal times leverage, which is what counts for a small leverage, is that of the largest.
    """
    ends, width = [leverage], NARROW
    while ends[-1] > _FIRST * leverage:
        ends.append(ends[-1] * (1.0 - width))
        width = min(2.0 * width, 0.1)
    while _told_by_all_below(ends[-1], signal, epsilon) > least and ends[-1] >= _TINY:
        ends.append(ends[-1] * max(ends[-1] / leverage, 1e-9))
    found = np.array(ends)
    return found[1:], found[:-1]


def _divided(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    middle = np.sqrt(low) * np.sqrt(high)
    return np.concatenate([low, middle]), np.concatenate([middle, high])


def _told_by_all_below(leverage: float, signal: float, epsilon: float = 0.0) -> float:
    """A bound on both hockey sticks from ``epsilon`` on, for all leverages up to this: Pinsker's on the total variation distance.

    The divergence of the two normal laws, ``(h - log(1+h))/2 + rho h/(2(1+h)) <= h^2/4 + rho h/2``, rises with h. And nothing is left, for
    a float, where epsilon is beyond the loss 40 deviations out: in both orders z deviations out it is at most
    ``rho h/2 + sqrt(rho h) z + h max(z, 1)^2/2``.
    """
    if epsilon > (0.5 * signal * leverage + 40.0 * np.sqrt(signal * leverage) + 800.0 * leverage) * _UP:
        return 0.0
    return float(np.sqrt(0.125 * leverage * leverage + 0.25 * signal * leverage) * _UP)
