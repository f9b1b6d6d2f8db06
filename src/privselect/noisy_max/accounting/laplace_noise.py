"""Laplace and exponential noise on scores. Exponential noise gives the permute-and-flip mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.laplace import Laplace, laplace_renyi
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, NoiseAccounting, accounting_of
from privselect.noisy_max.index_only_noise import Exponential
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.discretize import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism

    Floats = NDArray[np.float64]


@accounting_of.register(Laplace)
@dataclass(frozen=True, slots=True)
class LaplaceAccounting(NoiseAccounting):
    """Accounting of noise with density ``exp(-|x|/scale)/(2 scale)``."""

    noise: Laplace

    @property
    def single_release(self) -> Mechanism:
        """The Laplace mechanism."""
        return self.noise

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the bracket of a shift by 1 of noise whose scale is divided by ``gap``."""
        if gap > LARGEST_LOSS * self.noise.scale:
            return ALL_LEAKS
        return Laplace(scale=self.noise.scale / gap).brackets[0]

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return the closed form, rounded up."""
        return laplace_renyi(gap / self.noise.scale, alpha)

    def survival(self, x: Floats) -> Floats:
        """Return half an exponential tail, or its complement."""
        return _laplace_survival(x / self.noise.scale)

    def cdf(self, x: Floats) -> Floats:
        """Return the reflected survival function."""
        return _laplace_survival(-x / self.noise.scale)


@accounting_of.register(Exponential)
@dataclass(frozen=True, slots=True)
class ExponentialAccounting(NoiseAccounting):
    """Accounting of noise with density ``exp(-x/scale)/scale`` for x >= 0."""

    noise: Exponential

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the exact bracket: the shifted noise has loss ``gap/scale`` everywhere, and no mass in [0, gap)."""
        most = gap / self.noise.scale
        if most > LARGEST_LOSS:
            return ALL_LEAKS
        pair = DominatingPair(np.ones(1), np.array([math.exp(-most)]), 0.0, -math.expm1(-most))
        return Bracket(pair, (pair,), "remove")

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return the constant loss ``gap/scale``, rounded up."""
        return np.full(np.shape(alpha), gap / self.noise.scale * (1.0 + 4e-15))

    def survival(self, x: Floats) -> Floats:
        """Return ``exp(-x/scale)``."""
        return np.asarray(np.exp(-np.maximum(x, 0.0) / self.noise.scale))

    def cdf(self, x: Floats) -> Floats:
        """Return ``1 - exp(-x/scale)``."""
        return np.asarray(-np.expm1(-np.maximum(x, 0.0) / self.noise.scale))


def _laplace_survival(z: Floats) -> Floats:
    half = 0.5 * np.exp(-np.abs(z))
    return np.asarray(np.where(z > 0.0, half, 1.0 - half))
