"""Discrete Gaussian noise on whole scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.discrete_gaussian import DiscreteGaussian, discrete_gaussian_bracket, gaussian_weights
from privselect.noisy_max.accounting.noise_accounting import Additive, additive
from privselect.noisy_max.sampling.integer_noise import WholeNoise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]

_REACH = 38.0  # in sigma: further out is less than the smallest float
_WIDE = 1000.0  # from this sigma on, sums are integrals with two corrections
_ROOT = np.sqrt(2.0 * np.pi)


@dataclass(frozen=True, slots=True)
class DiscreteGaussianNoise(WholeNoise):
    """A whole number k with mass proportional to ``exp(-k^2/(2 sigma^2))``."""

    noise: DiscreteGaussian
    relative = 2e-11  # a sum of some ten thousand terms

    @property
    def alone(self) -> Mechanism:  # type: ignore[override]  # a fact of this kind
        """The discrete Gaussian mechanism."""
        return self.noise

    def shifted(self, gap: int) -> Bracket:
        """By its outcomes."""
        return discrete_gaussian_bracket(self.noise.sigma, gap)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """``alpha gap^2/(2 sigma^2)``, as for the Gaussian: an upper bound for whole shifts (Canonne, Kamath and Steinke 2020)."""
        shift = gap / self.noise.sigma
        return np.asarray(0.5 * alpha * shift * shift * (1.0 + 4e-15))

    def tail(self, k: Floats) -> Floats:
        """By sums of all outcomes, or of wide noise by integrals."""
        return _tail_of_wide(k, self.noise.sigma) if self.noise.sigma >= _WIDE else _tail_of_narrow(k, self.noise.sigma)


@additive.register
def _(noise: DiscreteGaussian) -> Additive:
    return DiscreteGaussianNoise(noise)


def _tail_of_narrow(k: Floats, sigma: float) -> Floats:
    """``P(noise >= k)`` for whole k >= 1, by sums of all outcomes."""
    tails = _tails(sigma)
    return np.asarray(tails[np.minimum(k, len(tails) - 1.0).astype(np.int64)])


@lru_cache(maxsize=8)
def _tails(sigma: float) -> Floats:
    """``P(noise >= k)`` for k = 0, 1, ..., and 0 for the last."""
    weights = gaussian_weights(np.arange(int(_REACH * sigma) + 2, dtype=np.float64), sigma)
    sums = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
    tails = sums / (sums[0] + sums[1])
    tails.setflags(write=False)
    return np.asarray(tails)


def _tail_of_wide(k: Floats, sigma: float) -> Floats:
    """The same by Euler and Maclaurin from half-way before k, of which the third correction is below 1e-12.

    The sum of all weights is ``sigma sqrt(2 pi)`` up to a factor ``1 + 2 exp(-2 pi^2 sigma^2)``, by Poisson summation.
    """
    z = (k - 0.5) / sigma
    density = np.exp(-0.5 * z * z) / _ROOT
    return np.asarray(ndtr(-z) - density * (z / (24.0 * sigma**2) + 7.0 * (3.0 * z - z**3) / (5760.0 * sigma**4)))
