"""Discrete Laplace noise on whole scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.discrete_laplace import DiscreteLaplace, discrete_laplace_bracket, discrete_laplace_renyi
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, Additive, additive
from privselect.noisy_max.sampling.integer_noise import WholeNoise
from privselect.pairs.discretize import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(WholeNoise):
    """A whole number k with mass proportional to ``exp(-|k|/scale)``."""

    noise: DiscreteLaplace

    @property
    def alone(self) -> Mechanism:  # type: ignore[override]  # a fact of this kind
        """The discrete Laplace mechanism."""
        return self.noise

    def shifted(self, gap: int) -> Bracket:
        """In closed form."""
        return discrete_laplace_bracket(self.noise.scale, gap) if gap <= LARGEST_LOSS * self.noise.scale else ALL_LEAKS

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """In closed form."""
        return discrete_laplace_renyi(self.noise.scale, alpha, gap)

    def tail(self, k: Floats) -> Floats:
        """``t^k/(1+t)`` with ``t = e^(-1/scale)``."""
        return np.asarray(np.exp(-k / self.noise.scale) / (1.0 + math.exp(-1.0 / self.noise.scale)))


@additive.register
def _(noise: DiscreteLaplace) -> Additive:
    return DiscreteLaplaceNoise(noise)
