"""What every way to a private regression gives."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privselect.mechanisms import Gaussian
from privselect.mechanisms.neighbours import ADD_REMOVE

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What is released: the coefficients, None where there is "no answer", and ``facts``, numbers released on the way to them."""

    coefficients: Floats | None
    facts: Mapping[str, float] = field(default_factory=dict)


def one_gaussian(*mus: float) -> Gaussian:
    """Gaussian releases as one, the squares of mu adding up: for a record more or less, as sensitivities here are for no other change."""
    return Gaussian(sigma=1.0 / math.hypot(*mus), neighbours=ADD_REMOVE)


class Recipe(ABC):
    """From the sums over records to coefficients: for rows no longer than 1 and targets within [-1, 1].

    ``beside``, where a recipe has it, is the mu of other Gaussian releases of the same fit, which the mechanism includes.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What the answer leaks. It depends on no record."""

    @abstractmethod
    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """One answer, with fresh noise."""
