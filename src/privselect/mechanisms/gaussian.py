"""The Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.base import StatedMechanism, check_orders, check_times
from privselect.pairs import Bracket, DominatingPair, connect_the_dots, merge_cells
from privselect.pairs.cells import LARGEST_LOSS
from privselect.parameters import POSITIVE, parameter
from privselect.text import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_REACH = 36.0  # standard deviations: a normal tail beyond this is near the smallest float
CELL = 0.02  # width of a cell, in standard deviations: the upper and lower curves then agree to about 1e-3 in delta, 1e-4 in epsilon


@register
@dataclass(frozen=True, slots=True)
class Gaussian(StatedMechanism):
    """Noise ``N(0, sigma^2)`` on a query of L2 sensitivity 1: the pair is N(1/sigma, 1) against N(0, 1), in either order."""

    text_name = "gaussian"
    sensitivity = "L2 sensitivity 1"

    sigma: float = parameter(POSITIVE)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        return (gaussian_bracket(1.0 / self.sigma),)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """In closed form."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * check_orders(alpha) / self.sigma / self.sigma * (1.0 + 1e-15))

    def repeated(self, times: int) -> tuple[DominatingPair, ...]:
        """In closed form: n runs are one with sigma/sqrt(n)."""
        return (gaussian_bracket(math.sqrt(check_times(times)) / self.sigma).upper,)


def gaussian_bracket(mu: float, cell: float = CELL) -> Bracket:
    """N(mu, 1) against N(0, 1): an outcome z has loss ``mu (z - mu/2)``; reversal is a reflection, so one order serves both."""
    # Both laws' tails beyond the knots must be proper floats, and so must e^loss; what lies further out is charged in full.
    reach = min(_REACH - 0.5 * mu, LARGEST_LOSS / mu)
    if reach < cell:
        everything = DominatingPair(np.array([]), np.array([]), 1.0, 1.0)
        odds = np.exp(-600.0)  # far less than the truth allows
        return Bracket(everything, (DominatingPair(np.array([odds, 1.0 - odds]), np.array([1.0 - odds, odds])),))
    z = 0.5 * mu + np.linspace(-reach, reach, int(np.ceil(2.0 * reach / cell)) + 1)
    shifted, centred = normal_cells(z - mu), normal_cells(z)
    return Bracket(connect_the_dots(mu * (z - 0.5 * mu), shifted, centred), (merge_cells(shifted, centred),))


def normal_cells(z: Floats) -> Floats:
    """Masses of a standard normal below z[0], between neighbours, and above z[-1]; differences taken on the side of the smaller tail."""
    below, above = ndtr(z), ndtr(-z)
    between = np.where(z[:-1] < 0.0, np.diff(below), -np.diff(above))
    return np.concatenate([below[:1], between, above[-1:]])
