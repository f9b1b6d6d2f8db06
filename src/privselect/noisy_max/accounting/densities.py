"""The densities of noise in its own unit, up to a factor: greatest at 0, where they are 1, and falling on either side.

The logarithm of each is concave, and from 1 on (from -1 on downwards) a further unit at least halves it; both are used by the
staircase. Of exp(-z^2/2) a unit takes exp(-z - 1/2) < 1/2; of exp(-|z|) it takes 1/e. Of Gumbel's exp(1 - z - e^-z) it takes
exp(-1 + e^-z (1 - 1/e)) <= exp(-0.76) < 1/2 upwards from z = 1, and exp(1 - e^-z (e - 1)) <= exp(-3.6) downwards from z = -1.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect.counts.sampling.interval_arithmetic import Enclosure, Precision

    Floats = NDArray[np.float64]


class Shape(Enum):
    """A density."""

    NORMAL = "exp(-z^2/2)"
    LAPLACE = "exp(-|z|)"
    EXPONENTIAL = "exp(-z) for z >= 0"
    GUMBEL = "exp(1 - z - exp(-z))"

    @property
    def one_sided(self) -> bool:
        """Whether nothing lies below 0."""
        return self is Shape.EXPONENTIAL

    def density(self, z: Floats) -> Floats:
        """In floats."""
        with np.errstate(over="ignore", under="ignore"):
            if self is Shape.NORMAL:
                return np.asarray(np.exp(-0.5 * (z * z)))
            if self is Shape.GUMBEL:
                return np.asarray(np.exp(1.0 - z - np.exp(-z)))
            return np.asarray(np.exp(-np.abs(z)))

    def enclosed(self, z: Fraction, precision: Precision) -> Enclosure:
        """Between two decimals."""
        if self is Shape.NORMAL:
            return precision.exp(precision.rational(-z * z / 2))
        if self is Shape.GUMBEL:
            return precision.exp(precision.minus(precision.rational(1 - z), precision.exp(precision.rational(-z))))
        return precision.exp(precision.rational(-abs(z)))
