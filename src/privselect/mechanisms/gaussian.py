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
CELL_WIDTH = 0.02  # in standard deviations: the upper and lower profiles then agree to about 1e-3 in delta, 1e-4 in epsilon


@register
@dataclass(frozen=True, slots=True)
class Gaussian(StatedMechanism):
    """Noise ``N(0, sigma^2)`` on a query of L2 sensitivity 1: the pair is N(1/sigma, 1) against N(0, 1), in either order."""

    text_name = "gaussian"
    sensitivity = "L2 sensitivity 1"

    sigma: float = parameter(POSITIVE, leaks="less")

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        return (gaussian_bracket(1.0 / self.sigma, cell_width(accuracy)),)

    def composition_step(self) -> CompositionStep:
        """Return the step, with cells on multiples of the lattice spacing."""
        return gaussian_composition_step(1.0 / self.sigma)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the closed form, rounded up."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * check_orders(alpha) / self.sigma / self.sigma * (1.0 + 1e-15))


def cell_width(accuracy: float) -> float:
    """Return a cell width that is fine enough for the accuracy: the error is of second order in the width."""
    return CELL_WIDTH * min(math.sqrt(accuracy / ACCURACY), 1.0)


def gaussian_composition_step(mu: float) -> CompositionStep:
    """Return N(mu, 1) against N(0, 1) as one step of a composition."""
    bracket = gaussian_bracket(mu)

    def refine(resolution: Resolution) -> Bracket:
        # The distribution itself needs no cells narrower than CELL_WIDTH.
        stride = max(int(min(CELL_WIDTH * mu, resolution.widest_cell) / resolution.spacing), 1)
        return gaussian_bracket(mu, stride * resolution.spacing / mu)

    return CompositionStep(bracket, refine if len(bracket.upper.p) else None)


def gaussian_bracket(mu: float, cell: float = CELL_WIDTH) -> Bracket:
    """Return the bracket of N(mu, 1) against N(0, 1); reversal is a reflection, so one order is enough.

    An outcome z has loss ``mu (z - mu/2)``. The losses at the cell edges are the multiples of ``mu * cell``.
    """
    # The tails of both distributions beyond the knots must be normal floats, and so must e^loss. The rest is charged in full.
    reach = min(_REACH - 0.5 * mu, LARGEST_LOSS / mu)
    if reach < cell:
        everything = DominatingPair(np.array([]), np.array([]), 1.0, 1.0)
        odds = np.exp(-600.0)  # much weaker than the truth
        return Bracket(everything, (DominatingPair(np.array([odds, 1.0 - odds]), np.array([1.0 - odds, odds])),))
    steps = int(reach / cell)
    middle = np.arange(-steps, steps + 1, dtype=np.float64) * cell
    shifted, centred = normal_cells(middle - 0.5 * mu), normal_cells(middle + 0.5 * mu)
    return Bracket(connect_the_dots(mu * middle, shifted, centred), (merge_cells(shifted, centred),))


def normal_cells(z: Floats) -> Floats:
    """Return masses of a standard normal below z[0], between neighbours, and above z[-1], each right to some hundred ulps.

    The tails at the edges of a narrow cell are nearly equal, so its mass is the integral of the density by Gauss-Legendre. That rule is
    right to 1e-15 if the density changes by a factor of at most e. Other masses are differences of the smaller tail.
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
    """Return the profile of N(mu, 1) against N(0, 1) at epsilon >= 0: ``Phi(a) - e^epsilon Phi(a - mu)``, ``a = mu/2 - epsilon/mu``.

    ``e^epsilon phi(a - mu) = phi(a)``, so both terms are phi(a) times a Mills ratio, which keeps all digits in the far tail.
    """
    a = 0.5 * mu - np.asarray(epsilon, dtype=np.float64) / mu
    density, half = np.exp(-0.5 * a * a), math.sqrt(0.5)
    far = 0.5 * density * (erfcx(-half * np.minimum(a, 0.0)) - erfcx(half * (mu - a)))
    return np.maximum(np.where(a <= 0.0, far, ndtr(a) - 0.5 * density * erfcx(half * (mu - a))), 0.0)


def gaussian_delta_upper(mu: float | Floats, epsilon: ArrayLike) -> Floats:
    """Return :func:`gaussian_delta`, rounded up.

    For small mu the two terms are nearly equal: their difference has an error of some units in the last place of the first. A rounding
    of a by some units in its last place moves the density by a^2 of these.
    """
    a = 0.5 * mu - np.asarray(epsilon, dtype=np.float64) / mu
    return np.asarray(gaussian_delta(mu, epsilon) * (1.0 + 1e-14 * (1.0 + a * a)) + 4e-15 * ndtr(a))
