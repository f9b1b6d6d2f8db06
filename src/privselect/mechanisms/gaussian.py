"""The Gaussian mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx, ndtr

from privselect._util.validation import POSITIVE, parameter
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.pairs import Bracket, DominatingPair, connect_the_dots, merge_cells
from privselect.pairs.compose import ACCURACY, CompositionStep
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs.lattice_resolution import Resolution

    Floats = NDArray[np.float64]

_REACH = 36.0  # standard deviations: a normal tail beyond this is near the smallest float
_NARROW = 0.1  # of a cell, in standard deviations
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(7)
CELL_WIDTH = 0.02  # width of a cell, in standard deviations: the upper and lower curves then agree to about 1e-3 in delta, 1e-4 in epsilon


@register
@dataclass(frozen=True, slots=True)
class Gaussian(StatedMechanism):
    """Noise ``N(0, sigma^2)`` on a query of L2 sensitivity 1: the pair is N(1/sigma, 1) against N(0, 1), in either order."""

    text_name = "gaussian"
    sensitivity = "L2 sensitivity 1"

    sigma: float = parameter(POSITIVE, leaks="less")

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """In closed form."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * check_orders(alpha) / self.sigma / self.sigma * (1.0 + 1e-15))

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        return (gaussian_bracket(1.0 / self.sigma, cell_width(accuracy)),)

    def composition_step(self) -> CompositionStep:
        """With cells between multiples of the lattice's spacing."""
        return gaussian_composition_step(1.0 / self.sigma)


def cell_width(accuracy: float) -> float:
    """The width of cells that is fine enough: the error is of second order in it."""
    return CELL_WIDTH * min(math.sqrt(accuracy / ACCURACY), 1.0)


def gaussian_composition_step(mu: float) -> CompositionStep:
    """N(mu, 1) against N(0, 1), to be composed."""
    bracket = gaussian_bracket(mu)

    def on(resolution: Resolution) -> Bracket:
        # No cell need be finer than this for the law's own sake.
        stride = max(int(min(CELL_WIDTH * mu, resolution.widest_cell) / resolution.spacing), 1)
        return gaussian_bracket(mu, stride * resolution.spacing / mu)

    return CompositionStep(bracket, on if len(bracket.upper.p) else None)


def gaussian_bracket(mu: float, cell: float = CELL_WIDTH) -> Bracket:
    """N(mu, 1) against N(0, 1): an outcome z has loss ``mu (z - mu/2)``; reversal is a reflection, so one order serves both.

    The losses at the ends of the cells are the multiples of ``mu * cell``.
    """
    # Both laws' tails beyond the knots must be proper floats, and so must e^loss; what lies further out is charged in full.
    reach = min(_REACH - 0.5 * mu, LARGEST_LOSS / mu)
    if reach < cell:
        everything = DominatingPair(np.array([]), np.array([]), 1.0, 1.0)
        odds = np.exp(-600.0)  # far less than the truth allows
        return Bracket(everything, (DominatingPair(np.array([odds, 1.0 - odds]), np.array([1.0 - odds, odds])),))
    steps = int(reach / cell)
    middle = np.arange(-steps, steps + 1, dtype=np.float64) * cell
    shifted, centred = normal_cells(middle - 0.5 * mu), normal_cells(middle + 0.5 * mu)
    return Bracket(connect_the_dots(mu * middle, shifted, centred), (merge_cells(shifted, centred),))


def normal_cells(z: Floats) -> Floats:
    """Masses of a standard normal below z[0], between neighbours, and above z[-1], each right to some hundred units in the last place.

    Of a narrow cell the tails at its ends are nearly the same: its mass is the integral of the density instead, by Gauss-Legendre,
    which is right to 1e-15 where the density changes by a factor of e at most. Others are differences of the smaller tail.
    """
    below, above = ndtr(z), ndtr(-z)
    between = np.where(z[:-1] < 0.0, np.diff(below), -np.diff(above))
    with np.errstate(invalid="ignore"):
        width, middle = np.diff(z), 0.5 * (z[1:] + z[:-1])
        narrow = np.flatnonzero((width < _NARROW) & (width * np.abs(middle) < 1.0))
    width, middle = width[narrow, None], middle[narrow, None]
    density = np.exp(-0.5 * (middle + 0.5 * width * _NODES) ** 2) @ _WEIGHTS
    between[narrow] = density * width[:, 0] * (0.5 / np.sqrt(2.0 * np.pi))
    return np.concatenate([below[:1], between, above[-1:]])


def gaussian_delta(mu: float | Floats, epsilon: ArrayLike) -> Floats:
    """The profile of N(mu, 1) against N(0, 1) at epsilon >= 0: ``Phi(a) - e^epsilon Phi(a - mu)``, ``a = mu/2 - epsilon/mu``.

    ``e^epsilon phi(a - mu) = phi(a)``, so both terms are phi(a) times a ratio of Mills: no digit is lost far out, where both are small.
    """
    a = 0.5 * mu - np.asarray(epsilon, dtype=np.float64) / mu
    density, half = np.exp(-0.5 * a * a), math.sqrt(0.5)
    far = 0.5 * density * (erfcx(-half * np.minimum(a, 0.0)) - erfcx(half * (mu - a)))
    return np.maximum(np.where(a <= 0.0, far, ndtr(a) - 0.5 * density * erfcx(half * (mu - a))), 0.0)


def gaussian_delta_upper(mu: float | Floats, epsilon: ArrayLike) -> Floats:
    """:func:`gaussian_delta`, rounded up.

    Of a small mu the two terms are nearly the same: what their difference loses is some units in the last place of the first one. A
    rounding of a, some units in its last place, moves the density by a^2 of these.
    """
    a = 0.5 * mu - np.asarray(epsilon, dtype=np.float64) / mu
    return np.asarray(gaussian_delta(mu, epsilon) * (1.0 + 1e-14 * (1.0 + a * a)) + 4e-15 * ndtr(a))
