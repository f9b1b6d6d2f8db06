"""Exponential noise on scores: permute-and-flip."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, Additive, additive
from privselect.noisy_max.index_only_noise import Exponential
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.discretize import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ExponentialNoise(Additive):
    """Density ``exp(-x/scale)/scale`` for x >= 0."""

    noise: Exponential

    def shifted(self, gap: int) -> Bracket:
        """Moved up, the noise has loss ``gap/scale`` wherever it is, and none of its mass lies in [0, gap), where the other has some."""
        most = gap / self.noise.scale
        if most > LARGEST_LOSS:
            return ALL_LEAKS
        pair = DominatingPair(np.ones(1), np.array([math.exp(-most)]), 0.0, -math.expm1(-most))
        return Bracket(pair, (pair,), "remove")

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """The one loss there is."""
        return np.full(np.shape(alpha), gap / self.noise.scale * (1.0 + 4e-15))

    def survival(self, x: Floats) -> Floats:
        """``exp(-x/scale)``."""
        return np.asarray(np.exp(-np.maximum(x, 0.0) / self.noise.scale))

    def below(self, x: Floats) -> Floats:
        """``1 - exp(-x/scale)``."""
        return np.asarray(-np.expm1(-np.maximum(x, 0.0) / self.noise.scale))


@additive.register(Exponential)
def _(noise: Exponential) -> Additive:
    return ExponentialNoise(noise)
