r"""Probabilities up to a factor, given by the ratios of neighbours: exact, and enclosed to any precision.

    w(k) = base^k * prod Gamma(k + a) / prod Gamma(k + b) / prod Gamma(c - k),      first <= k <= last,

with rational base, a, b, c. All laws of K with closed forms have this form, up to a factor that the sampler does not need.
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
    """Weights w(k) as above. The ratios w(k+1)/w(k) are monotone in k, so w has a single mode."""

    base: Fraction
    first: int
    last: int | None
    numerator_shifts: tuple[Fraction, ...] = ()  # a
    denominator_shifts: tuple[Fraction, ...] = ()  # b
    mirrored_shifts: tuple[Fraction, ...] = ()  # c

    def ratio(self, k: int) -> tuple[int, int]:
        """Return ``w(k+1)/w(k)`` as a fraction, not in lowest terms."""
        top, bottom = self.base.numerator, self.base.denominator
        for a in self.numerator_shifts:
            top, bottom = top * (k * a.denominator + a.numerator), bottom * a.denominator
        for b in self.denominator_shifts:
            top, bottom = top * b.denominator, bottom * (k * b.denominator + b.numerator)
        for c in self.mirrored_shifts:
            top, bottom = top * (c.numerator - (k + 1) * c.denominator), bottom * c.denominator
        return top, bottom

    def log_ratios(self, k: NDArray[np.int64]) -> NDArray[np.longdouble]:
        """Return ``log w(k+1)/w(k)`` as long doubles."""
        x = k.astype(np.longdouble)
        total = np.full(x.shape, _long_log(self.base))
        for a in self.numerator_shifts:
            total += np.log(x + np.longdouble(float(a)))
        for b in self.denominator_shifts:
            total -= np.log(x + np.longdouble(float(b)))
        for c in self.mirrored_shifts:
            total += np.log(np.longdouble(float(c)) - x - 1)
        return total

    def mode(self) -> int:
        """Return the first k with ``w(k+1) <= w(k)``."""
        return _mode(self)

    def log_fall(self, k: int, length: int) -> float:
        """Return approximately ``log( w(k)/w(k+length) )``, from the ratio in the middle; a negative length goes downwards."""
        top, bottom = self.ratio(max(k + length // 2, self.first))
        return -length * math.log1p(max((top - bottom) / bottom, -1.0 + 1e-9))

    def halving_length(self, k: int) -> int:
        """Return a length L with ``w(j+L) <= w(j)/2`` for all j >= k, for k above the mode."""
        # The ratios are monotone: the largest from k on is this one or the limit. And r^L <= e^{-(1-r) L} <= 1/e.
        greatest = Fraction(*self.ratio(k))
        if len(self.numerator_shifts) == len(self.denominator_shifts) + len(self.mirrored_shifts):
            greatest = max(greatest, self.base)
        return math.ceil(1 / (1 - greatest))

    def weight(self, k: int, bits: int, digits: int) -> tuple[int, int]:
        """Return integers that enclose ``2^bits w(k)/w(mode)``, to ``digits`` digits."""
        mode = self.mode()
        # log Gamma(k) has a few more digits before the point than k. Multiples of 16 keep the number of cached precisions small.
        exact = IntervalArithmetic.of((digits + len(str(max(k, mode))) + 25) // 16 * 16)
        log_base, reference = _log_weight_at_mode(self, exact)
        log = exact.plus(exact.times(exact.integer(k - mode), log_base), exact.minus(self._log_gammas(k, exact), reference))
        return exact.scaled_to_bits(exact.exp(log), bits)

    def _log_gammas(self, k: int, exact: IntervalArithmetic) -> Enclosure:
        total = exact.integer(0)
        for a in self.numerator_shifts:
            total = exact.plus(total, exact.log_gamma(k + a))
        for b in self.denominator_shifts:
            total = exact.minus(total, exact.log_gamma(k + b))
        for c in self.mirrored_shifts:
            total = exact.minus(total, exact.log_gamma(c - k))
        return total


@lru_cache(maxsize=64)
def _log_weight_at_mode(terms: PmfWeights, exact: IntervalArithmetic) -> tuple[Enclosure, Enclosure]:
    """Return the cached logs used for every weight. Weights themselves are never cached: their k may be a drawn one."""
    return exact.log(terms.base), terms._log_gammas(terms.mode(), exact)  # noqa: SLF001 -- part of the class


def _long_log(x: Fraction) -> np.longdouble:
    near_one = Fraction(1, 2) < x < 2
    y = x - 1 if near_one else x
    head = float(y)
    long = np.longdouble(head) + np.longdouble(
        float(y - Fraction(head))
    )  # the rounding of a single float would bias every term the same way
    return np.longdouble(np.log1p(long) if near_one else np.log(long))


@lru_cache(maxsize=64)
def _mode(terms: PmfWeights) -> int:
    def falls(k: int) -> bool:
        top, bottom = terms.ratio(k)
        return top <= bottom

    low, step = terms.first, 1
    if falls(low):
        return low
    while not falls(low + step):  # terminates: the ratio is 0 at k = c-1
        low, step = low + step, 2 * step
    high = low + step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if falls(middle) else (middle, high)
    return high if terms.last is None else min(high, terms.last)
