"""Laplace noise on scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.laplace import Laplace
from privselect.noisy_max.additive import ALL_LEAKS, Additive, additive
from privselect.pairs.cells import LARGEST_LOSS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]

_TERMS = 18  # of a power series on [-1, 1]: 1/20! is below the last digit


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
        """In closed form: ``log( (a e^((a-1)g) + (a-1) e^(-ag))/(2a-1) )/(a-1)`` with ``g = gap/scale``, rounded up.

        What the sum has above 1 is ``(a f((a-1)g) + (a-1) f(-ag))/(2a-1)`` with ``f(x) = e^x - 1 - x >= 0``: no digits are lost.
        """
        most, power = gap / self.noise.scale, alpha - 1.0
        high, low = power * most, -alpha * most
        near = (alpha * _past_line(np.minimum(high, 1.0)) + power * _past_line(low)) / (2.0 * alpha - 1.0)
        far = np.log(alpha / (2.0 * alpha - 1.0)) + np.log1p(power / alpha * np.exp(low - high)) + high
        return np.asarray(np.where(high < 1.0, np.log1p(near), far) / power * (1.0 + 1e-13))

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


def _past_line(x: Floats) -> Floats:
    """``e^x - 1 - x``, with its digits near 0."""
    small = np.clip(x, -1.0, 1.0)
    series = np.ones_like(small)
    for k in range(_TERMS, 2, -1):
        series = 1.0 + small / k * series
    return np.asarray(np.where(np.abs(x) <= 1.0, 0.5 * small * small * series, np.expm1(np.minimum(x, 1.0)) - x))
