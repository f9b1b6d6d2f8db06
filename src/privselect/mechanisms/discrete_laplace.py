"""The discrete Laplace mechanism."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.random_bits import bernoulli_exp, uniform_below
from privselect._util.validation import Range, parameter
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.pairs import Bracket, DominatingPair
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect._util.random_bits import Entropy

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

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        return (discrete_laplace_bracket(self.scale),)

    def sample(self, entropy: Entropy | None = None) -> int:
        """Draw the noise exactly from this law; ``entropy`` is anything with ``getrandbits``, the operating system's by default."""
        return sample_discrete_laplace(Fraction(self.scale), random.SystemRandom() if entropy is None else entropy)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """In closed form."""
        return discrete_laplace_renyi(self.scale, check_orders(alpha))


def discrete_laplace_bracket(scale: float, shift: int = 1) -> Bracket:
    """The law around ``shift`` (1 or 2) against the same around 0; with 2, the outcome half-way has loss 0 and mass t(1-t)/(1+t).

    Holds when ``shift/scale`` is at most 700, where the masses are floats.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        t = (-1 / Decimal(scale)).exp()
        masses = [t**shift / (1 + t), 1 / (1 + t)]
        if shift == 2:
            masses.insert(1, t * (1 - t) / (1 + t))
        first = np.array([float(mass) for mass in masses])
    # Half-way, a mass may round to 0, where the scale is tiny: as it has no loss, it may be left out.
    first = first[first > 0.0]
    pair = DominatingPair(first, first[::-1])
    return Bracket(pair, (pair,))


def discrete_laplace_renyi(scale: float, alpha: Floats, shift: int = 1) -> Floats:
    """``log( (e^x + t^shift e^-x)/(1+t) + middle )/(alpha-1)`` with ``x = (alpha-1) shift/scale``, rounded up."""
    most, power = 1.0 / scale, alpha - 1.0
    x = shift * power * most
    near = np.minimum(x, 1.0)
    t, apart = math.exp(-most), -math.expm1(-most)  # apart: 1 - t
    ends = 1.0 if shift == 1 else (1.0 + t * t) / (1.0 + t)  # the mass of the two ends, and by how much the likely one has more
    tilt = math.tanh(0.5 * most) if shift == 1 else apart
    # The sum is 1 + ends (cosh x - 1) + tilt sinh x: near 0 by what it has above 1, far from it in logs.
    small = np.log1p(2.0 * ends * np.sinh(0.5 * near) ** 2 + tilt * np.sinh(near))
    rest = np.exp(-shift * most - 2.0 * x) + (t * apart * np.exp(-x) if shift == 2 else 0.0)
    large = x + np.log1p(rest) - math.log1p(t)
    return np.asarray(np.where(x < 1.0, small, large) / power * (1.0 + 1e-14))


def sample_discrete_laplace(scale: int | Fraction, entropy: Entropy) -> int:
    """A whole number k with probability exactly proportional to ``exp(-|k|/scale)``.

    For scale = s/t, a size with probability proportional to ``exp(-size/s)`` is drawn by its remainder and its number of times s, and
    every t sizes in a row are one: they share what the ones after them have less.
    """
    width, sizes = Fraction(scale).as_integer_ratio()
    while True:
        rest = uniform_below(width, entropy)
        if not bernoulli_exp(Fraction(rest, width), entropy):
            continue
        size = rest
        while bernoulli_exp(Fraction(1), entropy):
            size += width
        size //= sizes
        negative = bool(entropy.getrandbits(1))
        if size or not negative:  # 0 has one sign only
            return -size if negative else size
