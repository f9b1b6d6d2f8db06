r"""Positive weights known by the ratio of neighbours: exact, and enclosed to any precision.

    w(k) = base^k * prod Gamma(k + a) / prod Gamma(k + b) / prod Gamma(c - k),      first <= k <= last,

with rational base, a, b, c. All laws of K with closed forms are of this kind, up to a factor that the sampler never needs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect.counts.sampling.interval_arithmetic import IntervalArithmetic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.sampling.interval_arithmetic import Enclosure


@dataclass(frozen=True, slots=True)
class PmfWeights:
    """The weights w(k) above; their ratios w(k+1)/w(k) are monotone in k, so w rises to one mode and falls from it."""

    base: Fraction
    first: int
    last: int | None
    rising: tuple[Fraction, ...] = ()  # a
    falling: tuple[Fraction, ...] = ()  # b
    mirrored: tuple[Fraction, ...] = ()  # c

    def ratio(self, k: int) -> tuple[int, int]:
        """``w(k+1)/w(k)`` as a fraction, not in lowest terms."""
        top, bottom = self.base.numerator, self.base.denominator
        for a in self.rising:
            top, bottom = top * (k * a.denominator + a.numerator), bottom * a.denominator
        for b in self.falling:
            top, bottom = top * b.denominator, bottom * (k * b.denominator + b.numerator)
        for c in self.mirrored:
            top, bottom = top * (c.numerator - (k + 1) * c.denominator), bottom * c.denominator
        return top, bottom

    def log_ratios(self, k: NDArray[np.int64]) -> NDArray[np.longdouble]:
        """``log w(k+1)/w(k)`` in the platform's longest floats."""
        x = k.astype(np.longdouble)
        total = np.full(x.shape, _long_log(self.base))
        for a in self.rising:
            total += np.log(x + np.longdouble(float(a)))
        for b in self.falling:
            total -= np.log(x + np.longdouble(float(b)))
        for c in self.mirrored:
            total += np.log(np.longdouble(float(c)) - x - 1)
        return total

    def mode(self) -> int:
        """The first k whose successor weighs no more."""
        return _mode(self)

    def fall(self, k: int, length: int) -> float:
        """About ``log( w(k)/w(k+length) )``, by the ratio half way; a negative length looks downwards."""
        top, bottom = self.ratio(max(k + length // 2, self.first))
        return -length * math.log1p(max((top - bottom) / bottom, -1.0 + 1e-9))

    def halving(self, k: int) -> int:
        """A length L with ``w(j+L) <= w(j)/2`` for all j >= k, for k beyond the mode."""
        # The ratios are monotone: the greatest from k on is this one or their limit. And r^L <= e^{-(1-r) L} <= 1/e.
        greatest = Fraction(*self.ratio(k))
        if len(self.rising) == len(self.falling) + len(self.mirrored):
            greatest = max(greatest, self.base)
        return math.ceil(1 / (1 - greatest))

    def weight(self, k: int, bits: int, digits: int) -> tuple[int, int]:
        """Whole numbers around ``2^bits w(k)/w(mode)``, enclosed to ``digits`` digits."""
        mode = self.mode()
        # log Gamma(k) has as many digits before the point as k, and a few; by sixteens, so that few precisions occur.
        exact = IntervalArithmetic.of((digits + len(str(max(k, mode))) + 25) // 16 * 16)
        log_base, reference = _at_mode(self, exact)
        log = exact.plus(exact.times(exact.whole(k - mode), log_base), exact.minus(self._log_gammas(k, exact), reference))
        return exact.scaled(exact.exp(log), bits)

    def _log_gammas(self, k: int, exact: IntervalArithmetic) -> Enclosure:
        total = exact.whole(0)
        for a in self.rising:
            total = exact.plus(total, exact.log_gamma(k + a))
        for b in self.falling:
            total = exact.minus(total, exact.log_gamma(k + b))
        for c in self.mirrored:
            total = exact.minus(total, exact.log_gamma(c - k))
        return total


@lru_cache(maxsize=64)
def _at_mode(terms: PmfWeights, exact: IntervalArithmetic) -> tuple[Enclosure, Enclosure]:
    """What every weight is compared with. A weight itself is never kept: its k may be a drawn one."""
    return exact.log(terms.base), terms._log_gammas(terms.mode(), exact)  # noqa: SLF001 -- part of the class


def _long_log(x: Fraction) -> np.longdouble:
    near_one = Fraction(1, 2) < x < 2
    y = x - 1 if near_one else x
    head = float(y)
    long = np.longdouble(head) + np.longdouble(float(y - Fraction(head)))  # a float alone would tilt every term the same way
    return np.longdouble(np.log1p(long) if near_one else np.log(long))


@lru_cache(maxsize=64)
def _mode(terms: PmfWeights) -> int:
    def falls(k: int) -> bool:
        top, bottom = terms.ratio(k)
        return top <= bottom

    low, step = terms.first, 1
    if falls(low):
        return low
    while not falls(low + step):  # at k = c-1 the ratio is 0: this ends
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if falls(middle) else (middle, high)
    return high if terms.last is None else min(high, terms.last)
