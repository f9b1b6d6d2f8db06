"""The discrete Laplace mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.cells import LARGEST_LOSS
from privselect.parameters import Range, parameter
from privselect.text import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_DIGITS = 40


@register
@dataclass(frozen=True, slots=True)
class DiscreteLaplace(StatedMechanism):
    """A whole number k with mass proportional to ``exp(-|k|/scale)`` added to a whole-valued query of sensitivity 1.

    Also called the geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009). Around 1 against around 0, every k >= 1 has loss
    ``1/scale`` and every other one ``-1/scale``: the pair is randomised response, with masses 1/(1+t) and t/(1+t), t = exp(-1/scale).
    """

    text_name = "discrete_laplace"
    sensitivity = "whole-valued, sensitivity 1"

    scale: float = parameter(Range(1.0 / LARGEST_LOSS, math.inf), leaks="less")

    def _make_brackets(self) -> tuple[Bracket, ...]:
        with localcontext() as context:
            context.prec = _DIGITS
            t = (-1 / Decimal(self.scale)).exp()
            masses = np.array([float(t / (1 + t)), float(1 / (1 + t))])
        pair = DominatingPair(masses, masses[::-1])
        return (Bracket(pair, (pair,)),)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """In closed form: ``log( (e^x + t e^-x)/(1+t) )/(alpha-1)`` with ``x = (alpha-1)/scale``."""
        most = 1.0 / self.scale
        power = check_orders(alpha) - 1.0
        x = power * most
        near = np.minimum(x, 1.0)
        # (e^x + t e^-x)/(1+t) = cosh x + tanh(most/2) sinh x: near 0 by what it has above 1, far from it in logs.
        small = np.log1p(2.0 * np.sinh(0.5 * near) ** 2 + math.tanh(0.5 * most) * np.sinh(near))
        large = x + np.log1p(np.exp(-most - 2.0 * x)) - math.log1p(math.exp(-most))
        return np.asarray(np.where(x < 1.0, small, large) / power * (1.0 + 1e-14))
