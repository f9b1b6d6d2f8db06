"""What the accounting of noisy max asks of a noise: one small class for each kind, found by :func:`additive`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import TYPE_CHECKING, ClassVar

from privselect.errors import ParameterError
from privselect.parameters import shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]


class Additive(ABC):
    """Noise of a law that does not depend on the data, added to each score on its own."""

    whole: ClassVar[bool] = False  # whether noise and scores are whole numbers
    alone: Mechanism | None = None  # the release of one noisy score of sensitivity 1, where that is private

    @abstractmethod
    def shifted(self, gap: int) -> Bracket:
        """The noise moved up by ``gap`` (1 or 2), against the noise where it is."""

    @abstractmethod
    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Upper bounds on the Renyi divergence of each order of the noise moved up by ``gap`` from the noise where it is."""

    @abstractmethod
    def survival(self, x: Floats) -> Floats:
        """``P(noise > x)``, with its relative digits in the tail; of whole noise, that of the noise plus a uniform number in [0, 1)."""

    @abstractmethod
    def below(self, x: Floats) -> Floats:
        """``P(noise <= x)``, with its relative digits in the tail; of whole noise, that of the noise plus a uniform number in [0, 1)."""


@singledispatch
def additive(noise: object) -> Additive:
    """What is known of this noise; refused for what is no noise on a score."""
    kinds = "gaussian, laplace, gumbel, exponential, discrete_gaussian, discrete_laplace or a log-concave density"
    raise ParameterError(f"`noise` must be {kinds}, got {shown(noise)}")
