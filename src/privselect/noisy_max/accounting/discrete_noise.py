"""Discrete Gaussian and discrete Laplace noise on integer scores."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.discrete_gaussian import DiscreteGaussian, discrete_gaussian_bracket, gaussian_weights
from privselect.mechanisms.discrete_laplace import DiscreteLaplace, discrete_laplace_bracket, discrete_laplace_renyi
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, NoiseAccounting, accounting_of
from privselect.pairs.discretize import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]

_REACH = 38.0  # in sigma: outcomes further out have less mass than the smallest float
_WIDE = 1000.0  # from this sigma on, sums are computed as integrals with two corrections
_ROOT = np.sqrt(2.0 * np.pi)


class IntegerNoiseAccounting(NoiseAccounting):
    """Accounting of integer noise that is symmetric around 0. A uniform number in [0, 1), added to each score, breaks ties."""

    __slots__ = ()
    integer = True

    @abstractmethod
    def tail(self, k: Floats) -> Floats:
        """Return ``P(noise >= k)`` for integers k >= 1."""

    def survival(self, x: Floats) -> Floats:
        """Return the probability, which is linear between integers because of the uniform number."""
        k = np.floor(x)
        share = x - k
        return np.asarray((1.0 - share) * self._at_least(k) + share * self._at_least(k + 1.0))

    def cdf(self, x: Floats) -> Floats:
        """Return the reflected survival function: 1 minus the noise is ``-k + (1 - u)``, which has the same distribution."""
        return self.survival(1.0 - x)

    def _at_least(self, k: Floats) -> Floats:
        """Return ``P(noise >= k)`` for all integers k, from the tail by symmetry."""
        tail = self.tail(np.where(k > 0.0, k, 1.0 - k))
        return np.asarray(np.where(k > 0.0, tail, 1.0 - tail))


@accounting_of.register(DiscreteLaplace)
@dataclass(frozen=True, slots=True)
class DiscreteLaplaceAccounting(IntegerNoiseAccounting):
    """Accounting of integer noise k with mass proportional to ``exp(-|k|/scale)``."""

    noise: DiscreteLaplace

    @property
    def single_release(self) -> Mechanism:
        """The discrete Laplace mechanism."""
        return self.noise

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the exact bracket in closed form."""
        return discrete_laplace_bracket(self.noise.scale, gap) if gap <= LARGEST_LOSS * self.noise.scale else ALL_LEAKS

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return the closed form, rounded up."""
        return discrete_laplace_renyi(self.noise.scale, alpha, gap)

    def tail(self, k: Floats) -> Floats:
        """Return ``t^k/(1+t)`` with ``t = e^(-1/scale)``."""
        return np.asarray(np.exp(-k / self.noise.scale) / (1.0 + math.exp(-1.0 / self.noise.scale)))


@accounting_of.register(DiscreteGaussian)
@dataclass(frozen=True, slots=True)
class DiscreteGaussianAccounting(IntegerNoiseAccounting):
    """Accounting of integer noise k with mass proportional to ``exp(-k^2/(2 sigma^2))``."""

    noise: DiscreteGaussian
    relative_error = 2e-11  # a sum of some ten thousand terms

    @property
    def single_release(self) -> Mechanism:
        """The discrete Gaussian mechanism."""
        return self.noise

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the bracket built from the individual outcomes."""
        return discrete_gaussian_bracket(self.noise.sigma, gap)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return ``alpha gap^2/(2 sigma^2)``: an upper bound for integer shifts (Canonne, Kamath and Steinke 2020)."""
        shift = gap / self.noise.sigma
        return np.asarray(0.5 * alpha * shift * shift * (1.0 + 4e-15))

    def tail(self, k: Floats) -> Floats:
        """Return sums over all outcomes, or integrals for large sigma."""
        return _tail_by_integral(k, self.noise.sigma) if self.noise.sigma >= _WIDE else _tail_by_sum(k, self.noise.sigma)


def _tail_by_sum(k: Floats, sigma: float) -> Floats:
    """Return ``P(noise >= k)`` for integers k >= 1."""
    tails = _tail_sums(sigma)
    return np.asarray(tails[np.minimum(k, len(tails) - 1.0).astype(np.int64)])


@lru_cache(maxsize=8)
def _tail_sums(sigma: float) -> Floats:
    """Return ``P(noise >= k)`` for k = 0, 1, ..., with 0 as the last entry."""
    weights = gaussian_weights(np.arange(int(_REACH * sigma) + 2, dtype=np.float64), sigma)
    sums = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    tails = sums / (sums[0] + sums[1])
    tails.setflags(write=False)
    return np.asarray(tails)


def _tail_by_integral(k: Floats, sigma: float) -> Floats:
    """Return ``P(noise >= k)`` by the Euler-Maclaurin formula from k - 1/2, whose third correction is below 1e-12.

    The sum of all weights is ``sigma sqrt(2 pi)`` up to a factor ``1 + 2 exp(-2 pi^2 sigma^2)``, by Poisson summation.
    """
    z = (k - 0.5) / sigma
    density = np.exp(-0.5 * z * z) / _ROOT
    return np.asarray(ndtr(-z) - density * (z / (24.0 * sigma**2) + 7.0 * (3.0 * z - z**3) / (5760.0 * sigma**4)))
