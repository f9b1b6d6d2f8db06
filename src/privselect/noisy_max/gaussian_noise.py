"""Gaussian noise on scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.gaussian import Gaussian, gaussian_bracket
from privselect.noisy_max.additive import Additive, additive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class GaussianNoise(Additive):
    """N(0, sigma^2)."""

    noise: Gaussian

    @property
    def alone(self) -> Mechanism:  # type: ignore[override]  # a fact of this kind
        """The Gaussian mechanism."""
        return self.noise

    def shifted(self, gap: int) -> Bracket:
        """In closed form, up to cells."""
        return gaussian_bracket(gap / self.noise.sigma)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """In closed form."""
        shift = gap / self.noise.sigma
        return np.asarray(0.5 * alpha * shift * shift * (1.0 + 4e-15))

    def survival(self, x: Floats) -> Floats:
        """The normal tail."""
        return np.asarray(ndtr(-x / self.noise.sigma))

    def below(self, x: Floats) -> Floats:
        """The normal law."""
        return np.asarray(ndtr(x / self.noise.sigma))


@additive.register
def _(noise: Gaussian) -> Additive:
    return GaussianNoise(noise)
