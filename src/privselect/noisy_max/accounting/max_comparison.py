"""The chance that the greatest of some noises is ahead of the greatest of others, by many offsets at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.noisy_max.accounting.noise_accounting import Additive

    Floats = NDArray[np.float64]
    Groups = tuple[int, int]  # how many noises in S, and how many rivals

_FAR = 32.0  # e^-32 of the greatest of the rivals is left out on either side
_ROUNDS, _PARTS = 8, 32  # of a search, each round a closer look at one part
_FARTHEST = 1e15  # far more than any gap that can be told in the noise
_FINE = 1024  # cells in a gap
_MOST_CELLS = 2**19
_ROUGH_CELLS = 1024


@dataclass(frozen=True, slots=True)
class Offsets:
    """``first``, ``first + step``, ...: how far the rivals are ahead."""

    first: float
    step: float
    count: int

    def values(self) -> Floats:
        """All of them."""
        return _evenly(self.first, self.step, self.count)


def at_least_and_at_most(noise: Additive, groups: Groups, offsets: Offsets, gap: float) -> tuple[Floats, Floats]:
    """For each offset x, ``(p, q)`` with ``P(M_s + gap > M_n + x) >= p`` and ``P(M_s > M_n + x) <= q``.

    Claim: with cells ``y_0 < y_1 < ...`` of M_n, the greatest of the rivals, and G the tail of M_s, ``sum P(M_n in cell j) G(y_(j+1) + x)``
    lies below ``P(M_s > M_n + x)``, and the same with G(y_j + x), and what M_n has outside all cells, above it: G falls.
    A cell of width h costs at most what a gap smaller by h would, so with 1024 of them in a gap about 1e-3 of epsilon is lost.

    Rounding: as G falls, ``sum (H_(j+1) - H_j) G_(j+1) = sum H_j (G_j - G_(j+1)) + H_K G_K - H_0 G_0`` with H the law of M_n, where
    all terms but the last are positive. So a relative error of H is one of the sum, though cells are small differences; H is
    ``exp(n log F)`` with ``n log F >= -32``: at most 64 times the relative error of the noise's tail, and n times its absolute one.
    """
    size, rivals = groups
    low, high = span(noise, rivals)
    stride, cells = _cells(offsets.step, high - low, max(gap / _FINE, (high - low) / _MOST_CELLS))
    width = offsets.step / stride
    log_law = rivals * log_below(noise, _evenly(low, width, cells + 1))
    law = np.maximum.accumulate(np.exp(log_law))
    masses = np.diff(law)
    error = 100.0 * noise.relative + 2.0 * rivals * noise.absolute + (cells + 200) * 2.0**-53
    stray = 2.0 * size * noise.absolute
    if error + stray > 0.1:
        return np.zeros(offsets.count), np.ones(offsets.count)
    windows = Windows(low + offsets.first, width, cells + 1, stride, offsets.count)
    inner = np.array([masses @ tails[1:] for tails in windows.of(lambda x: greatest_above(noise, size, x - gap))])
    outer = [masses @ tails[:-1] - np.expm1(log_law[-1]) * tails[-1] for tails in windows.of(lambda x: greatest_above(noise, size, x))]
    at_most = (np.array(outer) + law[0]) * (1.0 + error) + stray
    return np.maximum(inner * (1.0 - error) - error * law[0] - stray, 0.0), np.minimum(at_most, 1.0)


def roughly(noise: Additive, groups: Groups, offsets: Offsets, gap: float) -> tuple[Floats, Floats]:
    """About ``P(M_s + gap > M_n + x)`` and ``P(M_s > M_n + x)`` for each offset x, by midpoints: good enough to search with."""
    size, rivals = groups
    low, high = span(noise, rivals)
    stride, cells = _cells(offsets.step, high - low, (high - low) / _ROUGH_CELLS)
    width = offsets.step / stride
    masses = np.diff(np.exp(rivals * log_below(noise, _evenly(low, width, cells + 1))))
    windows = Windows(low + offsets.first + 0.5 * width, width, cells, stride, offsets.count)

    def chances(shift: float) -> Floats:
        return np.array([masses @ tails for tails in windows.of(lambda x: greatest_above(noise, size, x - shift))])

    return chances(gap), chances(0.0)


@dataclass(frozen=True, slots=True)
class Windows:
    """``count`` stretches of ``length`` places each, ``width`` apart, each stretch ``stride`` places after the one before."""

    first: float
    width: float
    length: int
    stride: int
    count: int

    def of(self, function: Callable[[Floats], Floats]) -> Iterator[Floats]:
        """The function on each stretch; where they overlap, it is asked once."""
        if self.stride > self.length:
            for i in range(self.count):
                yield function(_evenly(self.first + i * self.stride * self.width, self.width, self.length))
            return
        values = function(_evenly(self.first, self.width, self.length + self.stride * (self.count - 1)))
        for start in range(0, self.stride * self.count, self.stride):
            yield values[start : start + self.length]


def _evenly(first: float, step: float, count: int) -> Floats:
    return np.asarray(first + step * np.arange(count, dtype=np.float64))


def _cells(step: float, length: float, widest: float) -> tuple[int, int]:
    """How many cells in a step, and how many in all, none of them wider than ``widest``."""
    stride = max(int(np.ceil(step / widest)), 1)
    return stride, int(np.ceil(length * stride / step))


@lru_cache(maxsize=1024)
def span(noise: Additive, count: int) -> tuple[float, float]:
    """Between these the greatest of ``count`` noises lies, but for about e^-32 on either side."""
    return _crossing(noise, -_FAR / count), _crossing(noise, -np.exp(-_FAR) / count)


def can_tell(noise: Additive, gap: float) -> bool:
    """Whether cells much smaller than the gap are few enough."""
    low, high = span(noise, 1)
    return 0.0 < high - low < 0.5 * _MOST_CELLS * gap


def greatest_above(noise: Additive, count: int, x: Floats) -> Floats:
    """``P(M_count > x)``."""
    return np.asarray(-np.expm1(count * log_below(noise, x)))


def log_below(noise: Additive, x: Floats) -> Floats:
    """``log P(noise <= x)``, from the smaller of the two tails."""
    above = noise.survival(x)
    logs = np.log1p(-np.minimum(above, 0.5))
    left = above > 0.5
    with np.errstate(divide="ignore"):
        logs[left] = np.log(noise.below(x[left]))
    return np.asarray(logs)


def _crossing(noise: Additive, level: float) -> float:
    """About where the logarithm of the noise's law crosses ``level``: any place would do for the bounds."""

    def first_past(places: Floats) -> int:
        return int(np.searchsorted(log_below(noise, places), level))

    reach = 1.0
    while reach < _FARTHEST and first_past(np.array([-reach, reach])) != 1:
        reach *= 2.0
    low, high = -reach, reach
    for _ in range(_ROUNDS):
        places = np.linspace(low, high, _PARTS + 1)
        first = min(max(first_past(places), 1), _PARTS)
        low, high = float(places[first - 1]), float(places[first])
    return high
