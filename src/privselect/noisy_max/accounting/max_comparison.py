"""Probability that the maximum of one group of noises exceeds that of another, for many offsets at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.noisy_max.accounting.noise_accounting import NoiseAccounting

    Floats = NDArray[np.float64]
    GroupSizes = tuple[int, int]  # the number of noises in S, and the number of rivals

_LOG_TAIL = 32.0  # the rivals' maximum is cut off at probability e^-32 on either side
_ROUNDS, _PARTS = 8, 32  # of a search: each round divides one part into parts
_FARTHEST = 1e15  # far more than any gap that is visible in the noise
_CELLS_PER_GAP = 1024
_MOST_CELLS = 2**19
_ROUGH_CELLS = 1024


@dataclass(frozen=True, slots=True)
class Offsets:
    """Evenly spaced offsets: how far the rivals are ahead."""

    first: float
    step: float
    count: int

    def values(self) -> Floats:
        """Return all offsets."""
        return _evenly(self.first, self.step, self.count)


def win_probability_bounds(noise: NoiseAccounting, groups: GroupSizes, offsets: Offsets, gap: float) -> tuple[Floats, Floats]:
    """Return, for each offset x, ``(p, q)`` with ``P(M_s + gap > M_n + x) >= p`` and ``P(M_s > M_n + x) <= q``.

    Claim: let M_n, the rivals' maximum, have cells ``y_0 < y_1 < ...``, and let G be the tail of M_s. Then
    ``sum P(M_n in cell j) G(y_(j+1) + x)`` lies below ``P(M_s > M_n + x)``. The same sum with G(y_j + x), plus the mass of M_n outside
    all cells, lies above it, because G is decreasing. A cell of width h costs at most what a gap smaller by h would. With 1024 cells
    per gap, about 1e-3 of epsilon is lost.

    Rounding: because G decreases, ``sum (H_(j+1) - H_j) G_(j+1) = sum H_j (G_j - G_(j+1)) + H_K G_K - H_0 G_0`` with H the distribution
    function of M_n, and all terms except the last are positive. So a relative error of H is a relative error of the sum, although cells
    are small differences. H is ``exp(n log F)`` with ``n log F >= -32``. Its error is at most 64 times the relative error of the noise's
    tail, plus n times its absolute error.
    """
    size, rivals = groups
    low, high = range_of_maximum(noise, rivals)
    stride, cells = _cells(offsets.step, high - low, max(gap / _CELLS_PER_GAP, (high - low) / _MOST_CELLS))
    width = offsets.step / stride
    log_distribution = rivals * log_cdf(noise, _evenly(low, width, cells + 1))
    distribution = np.maximum.accumulate(np.exp(log_distribution))
    masses = np.diff(distribution)
    error = 100.0 * noise.relative_error + 2.0 * rivals * noise.absolute_error + (cells + 200) * 2.0**-53
    absolute = 2.0 * size * noise.absolute_error
    if error + absolute > 0.1:
        return np.zeros(offsets.count), np.ones(offsets.count)
    windows = Windows(low + offsets.first, width, cells + 1, stride, offsets.count)
    inner = np.array([masses @ tails[1:] for tails in windows.of(lambda x: survival_of_maximum(noise, size, x - gap))])
    outer = [
        masses @ tails[:-1] - np.expm1(log_distribution[-1]) * tails[-1]
        for tails in windows.of(lambda x: survival_of_maximum(noise, size, x))
    ]
    at_most = (np.array(outer) + distribution[0]) * (1.0 + error) + absolute
    return np.maximum(inner * (1.0 - error) - error * distribution[0] - absolute, 0.0), np.minimum(at_most, 1.0)


def estimate_win_probabilities(noise: NoiseAccounting, groups: GroupSizes, offsets: Offsets, gap: float) -> tuple[Floats, Floats]:
    """Estimate ``P(M_s + gap > M_n + x)`` and ``P(M_s > M_n + x)`` at each offset x by midpoints, for use in a search."""
    size, rivals = groups
    low, high = range_of_maximum(noise, rivals)
    stride, cells = _cells(offsets.step, high - low, (high - low) / _ROUGH_CELLS)
    width = offsets.step / stride
    masses = np.diff(np.exp(rivals * log_cdf(noise, _evenly(low, width, cells + 1))))
    windows = Windows(low + offsets.first + 0.5 * width, width, cells, stride, offsets.count)

    def probabilities(shift: float) -> Floats:
        return np.array([masses @ tails for tails in windows.of(lambda x: survival_of_maximum(noise, size, x - shift))])

    return probabilities(gap), probabilities(0.0)


@dataclass(frozen=True, slots=True)
class Windows:
    """``count`` windows of ``length`` points each; points are ``width`` apart, windows ``stride`` points."""

    first: float
    width: float
    length: int
    stride: int
    count: int

    def of(self, function: Callable[[Floats], Floats]) -> Iterator[Floats]:
        """Yield the function's values on each window; overlapping windows share one evaluation."""
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
    """Return the number of cells per step and in total, with no cell wider than ``widest``."""
    stride = max(int(np.ceil(step / widest)), 1)
    return stride, int(np.ceil(length * stride / step))


@lru_cache(maxsize=1024)
def range_of_maximum(noise: NoiseAccounting, count: int) -> tuple[float, float]:
    """Return an interval that holds the maximum of ``count`` noises, except with probability about e^-32 on either side."""
    return _crossing(noise, -_LOG_TAIL / count), _crossing(noise, -np.exp(-_LOG_TAIL) / count)


def is_resolvable(noise: NoiseAccounting, gap: float) -> bool:
    """Return whether cells much smaller than the gap stay within the limit on their number."""
    low, high = range_of_maximum(noise, 1)
    return 0.0 < high - low < 0.5 * _MOST_CELLS * gap


def survival_of_maximum(noise: NoiseAccounting, count: int, x: Floats) -> Floats:
    """Return ``P(M_count > x)``."""
    return np.asarray(-np.expm1(count * log_cdf(noise, x)))


def log_cdf(noise: NoiseAccounting, x: Floats) -> Floats:
    """Return ``log P(noise <= x)``, computed from the smaller of the two tails."""
    above = noise.survival(x)
    logs = np.log1p(-np.minimum(above, 0.5))
    left = above > 0.5
    with np.errstate(divide="ignore"):
        logs[left] = np.log(noise.cdf(x[left]))
    return np.asarray(logs)


def _crossing(noise: NoiseAccounting, level: float) -> float:
    """Return approximately where ``log_cdf`` crosses ``level``. The bounds are valid for any result."""

    def first_past(places: Floats) -> int:
        return int(np.searchsorted(log_cdf(noise, places), level))

    reach = 1.0
    while reach < _FARTHEST and first_past(np.array([-reach, reach])) != 1:
        reach *= 2.0
    low, high = -reach, reach
    for _ in range(_ROUNDS):
        places = np.linspace(low, high, _PARTS + 1)
        first = min(max(first_past(places), 1), _PARTS)
        low, high = float(places[first - 1]), float(places[first])
    return high
