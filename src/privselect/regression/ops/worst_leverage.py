"""Hockey-stick divergences of a posterior sample for the worst row: the maximum over all leverages up to the largest.

At a fixed ``nu = sqrt(signal/leverage)`` the distributions of V with leverage h are N(nu, 1) tilted by ``exp(-h V^2/2)``. This family has
a monotone likelihood ratio, so both divergences increase with h. At a fixed leverage they increase with the signal. Hence for every h in
[low, high] and one signal rho, neither exceeds its value at leverage ``high`` and signal ``rho high/low``. This corner bounds the cell,
although no row attains it. In h itself, at a fixed signal, the divergences are **not** monotone above about h = 0.1.
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

MIN_CELL_WIDTH = 2.0**-13  # relative to h: narrower cells are not split
_GEOMETRIC_UNTIL = 0.5  # of the largest leverage: smaller cells grow with the square of h
_CLOSE = 1e-4  # a cell whose corner is this close to an attained value is not split
_UP = 1.0 + 1e-12
_TINY = 1e-290  # leverages below this soon lose digits


@dataclass(frozen=True, slots=True)
class DeltaBounds:
    """Both deltas at some epsilons >= 0: ``uppers`` hold for every leverage, ``lowers`` are attained by one of them."""

    uppers: tuple[Floats, Floats]
    lowers: tuple[Floats, Floats]


def worst_deltas(leverage: float, signal: float, epsilon: Floats, smallest: float) -> DeltaBounds:
    """Return bounds on both deltas, with over without the row and without over with; those below ``smallest`` are raised to it."""
    found = [_maximum(direction, leverage, signal, epsilon, smallest) for direction in (with_over_without, without_over_with)]
    return DeltaBounds((found[0][0], found[1][0]), (found[0][1], found[1][1]))


def is_under_limits(leverage: float, signal: float, epsilon: Floats, limits: Floats) -> bool:
    """Return whether both deltas are proved to be at most ``limits`` for every leverage up to the largest."""
    return all(_is_under(direction, leverage, signal, epsilon, limits) for direction in (without_over_with, with_over_without))


def is_under_limits_at(leverage: float, signal: float, epsilon: Floats, limits: Floats) -> bool:
    """Return whether both deltas are at most ``limits`` at one leverage.

    This is necessary for :func:`is_under_limits`, and nearly sufficient for a small leverage.
    """
    return all(bool(np.all(d(leverage, signal, epsilon, side=1) <= limits)) for d in (without_over_with, with_over_without))


def _is_under(direction: Direction, leverage: float, signal: float, epsilon: Floats, limits: Floats) -> bool:
    low, high = _cells(leverage, signal, float(limits.min()), float(epsilon.min()))
    if low[-1] < _TINY:
        return False  # for a limit this small the remaining leverages are not representable
    while len(low):
        above = ~(_corner_deltas(direction, low, high, signal, epsilon) <= limits).all(axis=1)
        low, high = low[above], high[above]
        if (low > high * (1.0 - MIN_CELL_WIDTH)).any():
            return False
        low, high = _split(low, high)
    return True


def _maximum(direction: Direction, leverage: float, signal: float, epsilon: Floats, smallest: float) -> tuple[Floats, Floats]:
    """Return upper and lower bounds on the maximum over leverages.

    Each epsilon has its own worst leverage, so each splits its own cells. ``index`` is the epsilon of a cell.
    """
    first_low, first_high = _cells(leverage, signal, smallest)
    smallest = max(smallest, _delta_bound_below(float(first_low[-1]), signal))
    low, high = (np.tile(edges, len(epsilon)) for edges in (first_low, first_high))
    index = np.repeat(np.arange(len(epsilon)), len(first_low))
    upper, lower = np.full(epsilon.shape, smallest), np.zeros(epsilon.shape)
    attained = upper.copy()  # rounded up: splitting a cell cannot bring its bound below this
    while len(index):
        corners = direction(high, signal * _UP * high / low, epsilon[index], side=1)
        np.maximum.at(lower, index, direction(high, signal, epsilon[index], side=-1))
        np.maximum.at(attained, index, direction(high, signal, epsilon[index], side=1))
        loose = corners > attained[index] * (1.0 + _CLOSE)
        wide = low <= high * (1.0 - MIN_CELL_WIDTH)
        np.maximum.at(upper, index[~(loose & wide)], corners[~(loose & wide)])
        index = np.tile(index[loose & wide], 2)
        low, high = _split(low[loose & wide], high[loose & wide])
    return upper, np.minimum(lower, upper)


def _corner_deltas(direction: Direction, low: Floats, high: Floats, signal: float, epsilon: Floats) -> Floats:
    return np.asarray(direction(high[:, None], (signal * _UP * high / low)[:, None], epsilon, side=1))


def _cells(leverage: float, signal: float, smallest: float, epsilon: float = 0.0) -> tuple[Floats, Floats]:
    """Return the lower and upper edges of cells of h, from ``leverage`` down to where delta is at most ``smallest`` from ``epsilon`` on.

    Cells are narrow near the largest leverage, which is the worst one if h is small, and wider further down. Only signal times leverage
    counts at a small leverage, and at the corners of the wide cells this product is that of the largest leverage.
    """
    edges, width = [leverage], MIN_CELL_WIDTH
    while edges[-1] > _GEOMETRIC_UNTIL * leverage:
        edges.append(edges[-1] * (1.0 - width))
        width = min(2.0 * width, 0.1)
    while _delta_bound_below(edges[-1], signal, epsilon) > smallest and edges[-1] >= _TINY:
        edges.append(edges[-1] * max(edges[-1] / leverage, 1e-9))
    found = np.array(edges)
    return found[1:], found[:-1]


def _split(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    middle = np.sqrt(low) * np.sqrt(high)
    return np.concatenate([low, middle]), np.concatenate([middle, high])


def _delta_bound_below(leverage: float, signal: float, epsilon: float = 0.0) -> float:
    """Return a bound on both deltas from ``epsilon`` on, for all leverages up to this: Pinsker's on the total variation distance.

    The divergence of the two normal distributions, ``(h - log(1+h))/2 + rho h/(2(1+h)) <= h^2/4 + rho h/2``, increases with h. Delta
    underflows if epsilon exceeds the loss at 40 deviations: in both orders the loss at z deviations is at most
    ``rho h/2 + sqrt(rho h) z + h max(z, 1)^2/2``.
    """
    if epsilon > (0.5 * signal * leverage + 40.0 * np.sqrt(signal * leverage) + 800.0 * leverage) * _UP:
        return 0.0
    return float(np.sqrt(0.125 * leverage * leverage + 0.25 * signal * leverage) * _UP)
