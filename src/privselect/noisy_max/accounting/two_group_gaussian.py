r"""Gaussian scores on two levels: s of them move up against the m - s others, all noise of variance 1.

With M_n the greatest of n standard normals, the s win where ``W = M_s - M_{m-s}`` exceeds the offset x between the levels, and after a
move by ``shift`` where it exceeds ``x - shift``. So the hockey stick of the instance that is worst at an epsilon is the profile of
*one number with noise W*: ``D_s(e) = max_x R(x - shift) - e^e R(x)``, ``R(x) = P(W > x)``. The densities of M_n, and with them that of W,
are log-concave, so the loss ``log r(x - shift)/r(x)`` grows with x, and at the loss of x the greatest is attained at x.

R and its density are integrals over the rivals' greatest, taken by the trapezoidal rule on all of the line. For a function that is
analytic and falls off on both sides its error falls exponentially in 1/step; with the steps below it is less than 1e-13, relative
(tests/noisy_max compares with sums in 25 digits). All terms are positive, so nothing cancels.
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

FLOOR = 1e-45  # chances below this are not looked at
ROUNDING = 1e-12  # of R and r, relative: ten times what they are off
LARGEST_SHIFT = 30.0  # scores that move by more than this leak everything that matters
LEAST_SHIFT = 1e-10  # the losses of a smaller one are lost in rounding
_FAINT = 1e-85  # of a weight: left out
_CELL = 0.02  # between offsets, about
_REACH = 20.0  # standard deviations: the density beyond is faint
_FALL, _LONGEST = 0.25, 0.1  # the step of the rule, in widths of the narrower law, and in standard deviations
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)


@dataclass(frozen=True, slots=True, eq=False)
class TwoLevels:
    """At each of many offsets of the others above the s: the loss there, and the chance that the s win, moved up and not."""

    offset: Floats
    loss: Floats
    moved: Floats
    still: Floats

    def delta(self, epsilon: Floats) -> Floats:
        """``D_s`` at each epsilon >= 0, from above: chords between the losses, as the curve is convex in e^epsilon."""
        # A loss that is off by its rounding belongs to an offset next to the best one: that misses at most that share of ``moved``.
        value = np.maximum(self.moved - np.exp(self.loss) * self.still, 0.0) + 8.0 * ROUNDING * self.moved
        return np.asarray(np.interp(np.exp(epsilon), np.exp(self.loss), np.minimum.accumulate(value)) * (1.0 + ROUNDING))


@lru_cache(maxsize=512)
def two_levels(m: int, s: int, shift: float) -> TwoLevels:
    """Of m scores s move up by ``shift`` against the others. Offsets range from a loss below 0 to a chance below the floor."""
    rivals = Rivals.of(m - s, s)
    start = _median(s) - _median(m - s) - 3.0  # left of the densest place, where the loss is negative
    coarse = rivals.mean(lambda y: _tail(s, y), start - shift, round((shift + 40.0) / rivals.step), 1)
    count = int(np.count_nonzero(coarse > FLOOR)) * rivals.parts
    moved, still = (rivals.mean(lambda y: _tail(s, y), start - by, count) for by in (shift, 0.0))
    first, second = (rivals.mean(lambda y: np.exp(_log_density(s, y)), start - by, count) for by in (shift, 0.0))
    kept = (moved > FLOOR) & (still > 0.0) & (first > 0.0) & (second > 0.0)
    with np.errstate(divide="ignore"):
        loss = np.log(first) - np.log(second)
    kept[kept] = np.diff(np.maximum.accumulate(loss[kept]), prepend=-np.inf) > 0.0
    if not loss[kept][0] < 0.0:
        raise ArithmeticError("the offsets must start where the loss is negative")  # else the curve at 0 would be missed
    offset = start + rivals.step / rivals.parts * np.arange(count, dtype=np.float64)
    return TwoLevels(offset[kept], loss[kept], moved[kept], still[kept])


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """The greatest of some normals: places on a lattice, their weights under the trapezoidal rule, and cells in a step."""

    places: Floats
    weights: Floats
    step: float
    parts: int

    @classmethod
    def of(cls, size: int, winners: int) -> Rivals:
        """A lattice that is fine enough for both sides."""
        # The law of the greatest of n narrows towards that of Gumbel, with scale 1/sqrt(2 log n).
        step = min(_FALL / math.sqrt(2.0 * math.log(max(size, winners, 2))), _LONGEST)
        places = step * np.arange(-math.ceil(_REACH / step), math.ceil(_REACH / step) + 1, dtype=np.float64)
        weights = np.exp(_log_density(size, places)) * step
        heavy = weights > _FAINT
        return cls(places[heavy], weights[heavy], step, math.ceil(step / _CELL))

    def mean(self, function: Callable[[Floats], Floats], start: float, count: int, parts: int | None = None) -> Floats:
        """``E function(x + greatest)`` at ``count`` offsets x from ``start`` on, so many of them in a step of the lattice."""
        stride = self.parts if parts is None else parts
        values = function(start + self.places[0] + self.step / stride * np.arange(count + (len(self.places) - 1) * stride))
        windows = np.lib.stride_tricks.as_strided(values, (count, len(self.places)), (values.itemsize, values.itemsize * stride))
        return np.asarray(windows @ self.weights)


def _median(n: int) -> float:
    """Of the greatest of n standard normals, about."""
    return float(-ndtri(-math.expm1(-math.log(2.0) / n)))


def _tail(n: int, y: Floats) -> Floats:
    """The chance that the greatest of n standard normals exceeds y."""
    return np.asarray(-np.expm1(n * log_ndtr(y)))


def _log_density(n: int, y: Floats) -> Floats:
    return np.asarray(math.log(n) + (n - 1) * log_ndtr(y) - 0.5 * y * y - _LOG_ROOT)
