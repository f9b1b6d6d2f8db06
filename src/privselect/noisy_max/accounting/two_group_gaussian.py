r"""Two groups of Gaussian scores: s scores on one level move up against the m - s others. All noise has variance 1.

With M_n the maximum of n standard normals, the s scores win if ``W = M_s - M_{m-s}`` exceeds the offset x between the levels. After a move
by ``shift`` they win if W exceeds ``x - shift``. So the hockey stick of the worst instance at an epsilon is the profile of *one number
with noise W*: ``D_s(e) = max_x R(x - shift) - e^e R(x)``, ``R(x) = P(W > x)``. The densities of M_n, and therefore that of W, are
log-concave. So the loss ``log r(x - shift)/r(x)`` increases with x, and at the loss of x the maximum is attained at x.

R and its density are integrals over the rivals' maximum, computed by the trapezoidal rule on the real line. For a function that is
analytic and decays on both sides, the error of this rule decreases exponentially in 1/step. With the steps below the relative error is
less than 1e-13 (tests/noisy_max compares with sums in 25 digits). All terms are positive, so nothing cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr, ndtri

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SMALLEST_PROBABILITY = 1e-45  # smaller win probabilities are ignored
ROUNDING = 1e-12  # of R and r, relative: ten times their error
LARGEST_SHIFT = 30.0  # larger shifts leak everything that matters
SMALLEST_SHIFT = 1e-10  # smaller shifts have losses below the rounding
_SMALLEST_WEIGHT = 1e-85  # smaller weights are left out
_CELL = 0.02  # approximate distance between offsets
_REACH = 20.0  # standard deviations: the density beyond is negligible
_STEP, _LARGEST_STEP = 0.25, 0.1  # of the rule: in widths of the narrower distribution, and in standard deviations
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class TwoGroupProfile:
    """For many offsets between the groups: the loss, and the probability that the s scores win, moved and unmoved."""

    offset: Floats
    loss: Floats
    moved: Floats
    unmoved: Floats

    def delta(self, epsilon: Floats) -> Floats:
        """Return ``D_s`` at each epsilon >= 0, rounded up: chords between the losses, because the profile is convex in e^epsilon."""
        # A rounded loss belongs to an offset next to the best one, which misses at most that fraction of ``moved``.
        value = np.maximum(self.moved - np.exp(self.loss) * self.unmoved, 0.0) + 8.0 * ROUNDING * self.moved
        return np.asarray(np.interp(np.exp(epsilon), np.exp(self.loss), np.minimum.accumulate(value)) * (1.0 + ROUNDING))


@lru_cache(maxsize=512)
def two_group_profile(m: int, s: int, shift: float) -> TwoGroupProfile:
    """Return the profile for s of m scores that move up by ``shift``.

    Offsets range from a negative loss to a win probability below ``SMALLEST_PROBABILITY``.
    """
    rivals = RivalMaximum.of(m - s, s)
    start = _median(s) - _median(m - s) - 3.0  # left of the mode, where the loss is negative
    coarse = rivals.mean(lambda y: _tail(s, y), start - shift, round((shift + 40.0) / rivals.step), 1)
    count = int(np.count_nonzero(coarse > SMALLEST_PROBABILITY)) * rivals.parts
    moved, unmoved = (rivals.mean(lambda y: _tail(s, y), start - by, count) for by in (shift, 0.0))
    first, second = (rivals.mean(lambda y: np.exp(_log_density(s, y)), start - by, count) for by in (shift, 0.0))
    kept = (moved > SMALLEST_PROBABILITY) & (unmoved > 0.0) & (first > 0.0) & (second > 0.0)
    with np.errstate(divide="ignore"):
        loss = np.log(first) - np.log(second)
    kept[kept] = np.diff(np.maximum.accumulate(loss[kept]), prepend=-np.inf) > 0.0
    if not loss[kept][0] < 0.0:
        raise ArithmeticError("the loss at the first offset must be negative")  # otherwise the profile at 0 would be missed
    offset = start + rivals.step / rivals.parts * np.arange(count, dtype=np.float64)
    return TwoGroupProfile(offset[kept], loss[kept], moved[kept], unmoved[kept])


@dataclass(frozen=True, slots=True, eq=False)
class RivalMaximum:
    """The distribution of the maximum of normals: points on a lattice, their weights in the trapezoidal rule, and cells per step."""

    points: Floats
    weights: Floats
    step: float
    parts: int

    @classmethod
    def of(cls, size: int, winners: int) -> RivalMaximum:
        """Return a lattice that is fine enough for both groups."""
        # The distribution of the maximum of n narrows towards Gumbel with scale 1/sqrt(2 log n).
        step = min(_STEP / math.sqrt(2.0 * math.log(max(size, winners, 2))), _LARGEST_STEP)
        points = step * np.arange(-math.ceil(_REACH / step), math.ceil(_REACH / step) + 1, dtype=np.float64)
        weights = np.exp(_log_density(size, points)) * step
        heavy = weights > _SMALLEST_WEIGHT
        return cls(points[heavy], weights[heavy], step, math.ceil(step / _CELL))

    def mean(self, function: Callable[[Floats], Floats], start: float, count: int, parts: int | None = None) -> Floats:
        """Return ``E function(x + maximum)`` at ``count`` offsets x from ``start``, with ``parts`` offsets per lattice step."""
        stride = self.parts if parts is None else parts
        values = function(start + self.points[0] + self.step / stride * np.arange(count + (len(self.points) - 1) * stride))
        windows = np.lib.stride_tricks.as_strided(values, (count, len(self.points)), (values.itemsize, values.itemsize * stride))
        return np.asarray(windows @ self.weights)


def _median(n: int) -> float:
    """Return the approximate median of the maximum of n standard normals."""
    return float(-ndtri(-math.expm1(-math.log(2.0) / n)))


def _tail(n: int, y: Floats) -> Floats:
    """Return the probability that the maximum of n standard normals exceeds y."""
    return np.asarray(-np.expm1(n * log_ndtr(y)))


def _log_density(n: int, y: Floats) -> Floats:
    return np.asarray(math.log(n) + (n - 1) * log_ndtr(y) - 0.5 * y * y - _LOG_ROOT)
