"""Binomial law of K."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.validation import PROBABILITY, integer_range, parameter
from privselect.counts.base import LARGEST_COUNT
from privselect.counts.capped import CappedCount
from privselect.counts.log_tails import log_betainc, log_binomial_term
from privselect.counts.sampling.pmf_ratios import PmfWeights
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@register
@dataclass(frozen=True, slots=True)
class Binomial(CappedCount):
    """K ~ Binomial(n, p): ``P(k) = C(n,k) p^k (1-p)^(n-k)`` and ``phi'(1-u) = n p (1 - p u)^(n-1)``."""

    text_name: ClassVar[str] = "binomial"
    n: int = parameter(integer_range(1, LARGEST_COUNT), leaks="mostly more")
    p: float = parameter(PROBABILITY, leaks="more")

    def _support(self) -> tuple[int, int | None]:
        return (self.n if self.p == 1.0 else 0), self.n

    def _mean(self) -> float:
        return float(self.n * Fraction(self.p))

    def _one_minus_pu(self, u: Floats) -> Floats:
        """Return ``1 - p u`` without cancellation if p and u are near 1."""
        return np.where(self.p * u < 0.5, 1.0 - self.p * u, (1.0 - u) + u * (1.0 - self.p))

    def _log_dpgf(self, u: Floats) -> Floats:
        head = math.log(self.n) + math.log(self.p)
        if self.n == 1:
            return np.full_like(u, head)
        with np.errstate(divide="ignore"):  # p = u = 1
            return head + (self.n - 1) * np.where(self.p * u < 0.5, np.log1p(-np.minimum(self.p * u, 0.5)), np.log(self._one_minus_pu(u)))

    def _log_tilted_cdf(self, u: Floats, cap: int) -> Floats:
        """Return ``log P(Binomial(n-1, y) < cap) = log I_{1-y}(n-cap, cap)`` with y = p (1-u)/(1 - p u)."""
        miss, rest = self._one_minus_pu(u), self.n - cap
        x, y = (1.0 - self.p) / miss, self.p * (1.0 - u) / miss
        over = float(self.n * Fraction(self.p) - cap)
        # Two formulas for the distance from the mean, n y - cap = (n-cap) - n x: use the one that subtracts smaller numbers.
        near_zero, near_one = (over - self.p * u * rest) / miss, rest - self.n * x
        d = np.where((abs(over) + self.p * u * rest) / miss < np.maximum(rest, self.n * x), near_zero, near_one)
        return log_betainc(float(rest), float(cap), x, y, d)

    def _log_pmf(self, k: Floats) -> Floats:
        if self.p == 1.0:
            return np.zeros_like(k)
        inner = np.clip(k, 1.0, max(self.n - 1.0, 1.0))
        rest = np.maximum(self.n - inner, 1.0)
        mean = self.n * Fraction(self.p)
        head = float(mean)
        d = (head - inner) + float(mean - Fraction(head))
        middle = log_binomial_term(rest, inner, np.full_like(k, 1.0 - self.p), np.full_like(k, self.p), d)
        at_bounds = np.where(k == 0.0, self.n * math.log1p(-self.p), self.n * math.log(self.p))
        return np.where((k == 0.0) | (k == self.n), at_bounds, middle)

    def _log_cdf(self, k: int) -> float:
        """Return the log of ``P(K <= k) = I_{1-p}(n-k, k+1)``."""
        if k >= self.n:
            return 0.0
        d = float((self.n + 1) * Fraction(self.p) - k - 1)
        return float(log_betainc(float(self.n - k), k + 1.0, np.array([1.0 - self.p]), np.array([self.p]), np.array([d]))[0])

    def _pmf_weights(self) -> PmfWeights:
        p = Fraction(self.p)
        last = self.n if self.cap is None else min(self.n, self.cap)
        return PmfWeights(p / (1 - p), 0, last, denominator_shifts=(Fraction(1),), mirrored_shifts=(Fraction(self.n + 1),))
