"""Poisson law of K."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.validation import Range, parameter
from privselect.counts.base import LARGEST_COUNT
from privselect.counts.capped import CappedCount
from privselect.counts.log_tails import log_gammaincc, log_poisson_term
from privselect.counts.sampling.pmf_ratios import PmfWeights
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@register
@dataclass(frozen=True, slots=True)
class Poisson(CappedCount):
    """K ~ Poisson(mean): ``P(k) = e^-m m^k / k!`` and ``phi'(1-u) = m e^{-m u}``."""

    text_name: ClassVar[str] = "poisson"
    mean: float = parameter(Range(0.0, float(LARGEST_COUNT), low_open=True, high_open=False), leaks="more")

    def _support(self) -> tuple[int, int | None]:
        return 0, None

    def _mean(self) -> float:
        return self.mean

    def _log_dpgf(self, u: Floats) -> Floats:
        return math.log(self.mean) - self.mean * u

    def _log_tilted_cdf(self, u: Floats, cap: int) -> Floats:
        """Return ``log P(Poisson(m (1-u)) < cap) = log Q(cap, m (1-u))``."""
        return log_gammaincc(float(cap), self.mean * (1.0 - u), (self.mean - cap) - self.mean * u)

    def _log_pmf(self, k: Floats) -> Floats:
        n = np.maximum(k, 1.0)
        return np.where(k == 0.0, -self.mean, log_poisson_term(n, np.full_like(n, self.mean), self.mean - n))

    def _log_cdf(self, k: int) -> float:
        n = k + 1.0
        return float(log_gammaincc(n, np.array([self.mean]), np.array([self.mean - n]))[0])

    def _pmf_weights(self) -> PmfWeights:
        return PmfWeights(Fraction(self.mean), 0, self.cap, denominator_shifts=(Fraction(1),))
