"""Noise on whole scores, symmetric around 0."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.noise_accounting import Additive

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


class WholeNoise(Additive):
    """Whole numbers, as likely as their negatives; ties are broken by a uniform number in [0, 1) that is added to each."""

    __slots__ = ()
    whole = True

    @abstractmethod
    def tail(self, k: Floats) -> Floats:
        """``P(noise >= k)`` for whole k >= 1."""

    def survival(self, x: Floats) -> Floats:
        """Between whole numbers on a line, as the uniform number has it."""
        k = np.floor(x)
        share = x - k
        return np.asarray((1.0 - share) * self._at_least(k) + share * self._at_least(k + 1.0))

    def below(self, x: Floats) -> Floats:
        """One less the noise is ``-k + (1 - u)``, which has the same law."""
        return self.survival(1.0 - x)

    def _at_least(self, k: Floats) -> Floats:
        """``P(noise >= k)`` for whole k: from 0 down, what the other side leaves."""
        tail = self.tail(np.where(k > 0.0, k, 1.0 - k))
        return np.asarray(np.where(k > 0.0, tail, 1.0 - tail))
