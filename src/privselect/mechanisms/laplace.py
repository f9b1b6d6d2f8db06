"""The Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import Range, parameter
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.pairs import Bracket, DominatingPair, connect_the_dots
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_CELLS = 2000
_TERMS = 18  # of a power series on [-1, 1]: 1/20! is below the last digit


@register
@dataclass(frozen=True, slots=True)
class Laplace(StatedMechanism):
    """Laplace noise on a query of L1 sensitivity 1: densities ``exp(-|x|/scale)`` around 0 and around 1.

    Outside [0, 1] the loss is constant, +-1/scale, with mass 1/2 on the likely side. Inside, a loss l has x = (1 + scale l)/2.
    """

    text_name = "laplace"
    sensitivity = "L1 sensitivity 1"

    scale: float = parameter(Range(1.0 / LARGEST_LOSS, math.inf), leaks="less")

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        most = 1.0 / self.scale
        knots = np.linspace(-most, most, _CELLS + 1)
        # P is centred where the loss is +most: inside, P(loss < l) = exp((l - most)/2)/2, and Q is its reflection.
        inner_p = 0.5 * np.exp(0.5 * (knots[:-1] - most)) * np.expm1(0.5 * np.diff(knots))
        inner_q = inner_p[::-1]
        far = 0.5 * np.exp(-most)
        p = np.concatenate([[far], inner_p, [0.5]])
        q = np.concatenate([[0.5], inner_q, [far]])
        atoms = np.zeros_like(knots)
        atoms[0], atoms[-1] = far, 0.5
        cell_p, cell_q = np.concatenate([[0.0], inner_p, [0.0]]), np.concatenate([[0.0], inner_q, [0.0]])
        return (Bracket(connect_the_dots(knots, cell_p, cell_q, atoms), (DominatingPair(p, q),)),)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the closed form, rounded up."""
        return laplace_renyi(1.0 / self.scale, check_orders(alpha))


def laplace_renyi(most: float, alpha: Floats) -> Floats:
    """Return ``log( (a e^((a-1)g) + (a-1) e^(-ag))/(2a-1) )/(a-1)`` with g = ``most``, the largest loss, rounded up.

    The sum minus 1 is ``(a f((a-1)g) + (a-1) f(-ag))/(2a-1)`` with ``f(x) = e^x - 1 - x >= 0``, which keeps digits for small g.
    """
    power = alpha - 1.0
    high, low = power * most, -alpha * most
    near = (alpha * _exp_minus_line(np.minimum(high, 1.0)) + power * _exp_minus_line(low)) / (2.0 * alpha - 1.0)
    far = np.log(alpha / (2.0 * alpha - 1.0)) + np.log1p(power / alpha * np.exp(low - high)) + high
    return np.asarray(np.where(high < 1.0, np.log1p(near), far) / power * (1.0 + 1e-13))


def _exp_minus_line(x: Floats) -> Floats:
    """Return ``e^x - 1 - x``, accurate near 0."""
    small = np.clip(x, -1.0, 1.0)
    series = np.ones_like(small)
    for k in range(_TERMS, 2, -1):
        series = 1.0 + small / k * series
    return np.asarray(np.where(np.abs(x) <= 1.0, 0.5 * small * small * series, np.expm1(np.minimum(x, 1.0)) - x))
