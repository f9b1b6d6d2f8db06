"""Laplace noise on scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.laplace import Laplace, laplace_renyi
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, Additive, additive
from privselect.pairs.discretize import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LaplaceNoise(Additive):
    """Density ``exp(-|x|/scale)/(2 scale)``."""

    noise: Laplace

    @property
    def alone(self) -> Mechanism:  # type: ignore[override]  # a fact of this kind
        """The Laplace mechanism."""
        return self.noise

    def shifted(self, gap: int) -> Bracket:
        """A shift by ``gap`` is a shift by 1 of noise so much smaller."""
        if gap > LARGEST_LOSS * self.noise.scale:
            return ALL_LEAKS
        return Laplace(scale=self.noise.scale / gap).brackets[0]

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """In closed form."""
        return laplace_renyi(gap / self.noise.scale, alpha)

    def survival(self, x: Floats) -> Floats:
        """Half an exponential tail on either side."""
        return _tail(x / self.noise.scale)

    def below(self, x: Floats) -> Floats:
        """The same, reflected."""
        return _tail(-x / self.noise.scale)


@additive.register
def _(noise: Laplace) -> Additive:
    return LaplaceNoise(noise)


def _tail(z: Floats) -> Floats:
    half = 0.5 * np.exp(-np.abs(z))
    return np.asarray(np.where(z > 0.0, half, 1.0 - half))
