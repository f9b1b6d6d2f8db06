"""The chance that the greatest of some noises is ahead of the greatest of rivals: from both sides, or roughly."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.noisy_max.additive import Additive

    Floats = NDArray[np.float64]
    Groups = tuple[int, int]  # how many noises in S, and how many rivals

_FAR = 32.0  # e^-32 of the greatest of the rivals is left out on either side
_HALVINGS = 40
_FINE = 2048  # cells in a gap
_MOST_CELLS = 2**19
_ROUGH_CELLS = 1024


def at_least_and_at_most(noise: Additive, groups: Groups, offset: float, gap: int) -> tuple[float, float]:
    """``(p, q)`` with ``P(M_s + gap > M_n + offset) >= p`` and ``P(M_s > M_n + offset) <= q``.

    Claim: with cells ``y_0 < y_1 < ...`` of M_n, the greatest of the rivals, and G the tail of M_s, ``sum P(M_n in cell j) G(y_(j+1) + x)``
    lies below ``P(M_s > M_n + x)``, and the same with G(y_j + x), and what M_n has outside all cells, above it: G falls.
    A cell of width h costs at most what a gap smaller by h would, so with 2048 of them in a gap about 5e-4 of epsilon is lost.

    Rounding: as G falls, ``sum (H_(j+1) - H_j) G_(j+1) = sum H_j (G_j - G_(j+1)) + H_K G_K - H_0 G_0`` with H the law of M_n, where
    all terms but the last are positive. So a relative error of H is one of the sum, though cells are small differences; H is
    ``exp(n log F)`` with ``n log F >= -32``, and has at most 64 times the relative error of the noise's tail, beside n times its absolute one.
    """
    size, rivals = groups
    low, high = span(noise, rivals)
    cells = int(min(_FINE * (high - low) / gap, _MOST_CELLS)) + 1
    edges = np.linspace(low, high, cells + 1)
    log_law = rivals * _log_below(noise, edges)
    law = np.maximum.accumulate(np.exp(log_law))
    masses = np.diff(law)
    error = 100.0 * noise.relative + 2.0 * rivals * noise.absolute + (cells + 200) * 2.0**-53
    stray = 2.0 * size * noise.absolute
    if error > 0.1:
        return 0.0, 1.0
    moved = masses @ greatest_above(noise, size, edges[1:] + (offset - gap))
    beyond = -np.expm1(log_law[-1])
    still = greatest_above(noise, size, edges + offset)
    put = masses @ still[:-1] + law[0] + beyond * still[-1]
    at_least = float(moved * (1.0 - error) - error * law[0] - stray)
    return max(at_least, 0.0), min(float(put * (1.0 + error) + stray), 1.0)


def roughly(noise: Additive, groups: Groups, offsets: Floats, gap: int) -> tuple[Floats, Floats]:
    """About ``P(M_s + gap > M_n + x)`` and ``P(M_s > M_n + x)`` for evenly spaced x, by midpoints: good enough to search with."""
    size, rivals = groups
    low, high = span(noise, rivals)
    step = offsets[1] - offsets[0]
    stride = max(int(np.ceil(step * _ROUGH_CELLS / (high - low))), 1)
    width = step / stride
    cells = int(np.ceil((high - low) / width))
    edges = low + width * np.arange(cells + 1)
    masses = np.diff(np.exp(rivals * _log_below(noise, edges)))
    places = low + offsets[0] + width * (0.5 + np.arange(cells + stride * (len(offsets) - 1)))

    def chances(shift: int) -> Floats:
        tails = greatest_above(noise, size, places - shift)
        return np.asarray(np.lib.stride_tricks.sliding_window_view(tails, cells)[::stride] @ masses)

    return chances(gap), chances(0)


@lru_cache(maxsize=1024)
def span(noise: Additive, count: int) -> tuple[float, float]:
    """Between these the greatest of ``count`` noises lies, but for about e^-32 on either side."""
    return _crossing(noise, -_FAR / count), _crossing(noise, -np.exp(-_FAR) / count)


def greatest_above(noise: Additive, count: int, x: Floats) -> Floats:
    """``P(M_count > x)``."""
    return np.asarray(-np.expm1(count * _log_below(noise, x)))


def _log_below(noise: Additive, x: Floats) -> Floats:
    """``log P(noise <= x)``, from the smaller of the two tails."""
    above = noise.survival(x)
    logs = np.log1p(-np.minimum(above, 0.5))
    left = above > 0.5
    with np.errstate(divide="ignore"):
        logs[left] = np.log(noise.below(x[left]))
    return np.asarray(logs)


def _crossing(noise: Additive, level: float) -> float:
    """About where the logarithm of the noise's law crosses ``level``: any place would do for the bounds."""

    def is_past(x: float) -> bool:
        return float(_log_below(noise, np.array([x]))[0]) >= level

    reach = 1.0
    while reach < 1e300 and not (is_past(reach) and not is_past(-reach)):
        reach *= 2.0
    low, high = -reach, reach
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if is_past(middle) else (middle, high)
    return high
