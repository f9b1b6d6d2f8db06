"""Discrete Laplace noise on whole scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.discrete_laplace import DiscreteLaplace, discrete_laplace_bracket, discrete_laplace_renyi
from privselect.noisy_max.additive import ALL_LEAKS, Additive, additive
from privselect.pairs.cells import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceNoise(Additive):
    """A whole number k with mass proportional to ``exp(-|k|/scale)``."""

    noise: DiscreteLaplace
    whole = True

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

    def survival(self, x: Floats) -> Floats:
        """Between whole numbers on a line, as the uniform number has it."""
        k = np.floor(x)
        share = x - k
        return np.asarray((1.0 - share) * self._at_least(k) + share * self._at_least(k + 1.0))

    def below(self, x: Floats) -> Floats:
        """One less the noise is ``-k + (1 - u)``, which has the same law."""
        return self.survival(1.0 - x)

    def _at_least(self, k: Floats) -> Floats:
        """``P(noise >= k)`` for whole k: ``t^k/(1+t)`` from 0 on, what that of 1-k leaves below."""
        size = np.where(k > 0.0, k, 1.0 - k)
        tail = np.exp(-size / self.noise.scale) / (1.0 + math.exp(-1.0 / self.noise.scale))
        return np.asarray(np.where(k > 0.0, tail, 1.0 - tail))


@additive.register
def _(noise: DiscreteLaplace) -> Additive:
    return DiscreteLaplaceNoise(noise)
