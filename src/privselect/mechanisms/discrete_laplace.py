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
    """Integer noise k with mass proportional to ``exp(-|k|/scale)`` on an integer-valued query of sensitivity 1.

    Also called the geometric mechanism (Ghosh, Roughgarden and Sundararajan 2009). Centred at 1 against centred at 0, every k >= 1 has
    loss ``1/scale`` and every other k ``-1/scale``. The pair is randomised response with masses 1/(1+t) and t/(1+t), t = exp(-1/scale).
    """

    text_name = "discrete_laplace"
    sensitivity = "integer-valued, sensitivity 1"

    scale: float = parameter(Range(1.0 / LARGEST_LOSS, math.inf), leaks="less")

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        return (discrete_laplace_bracket(self.scale),)

    def sample(self, entropy: Entropy | None = None) -> int:
        """Draw the noise exactly; ``entropy`` is any object with ``getrandbits``, by default the operating system's."""
        return sample_discrete_laplace(Fraction(self.scale), random.SystemRandom() if entropy is None else entropy)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute the closed form, rounded up."""
        return discrete_laplace_renyi(self.scale, check_orders(alpha))


def discrete_laplace_bracket(scale: float, shift: int = 1) -> Bracket:
    """Return the bracket of a shift by 1 or 2. With 2, the middle outcome has loss 0 and mass t(1-t)/(1+t).

    Holds when ``shift/scale`` is at most 700, where the masses are floats.
    """
    with localcontext() as context:
        context.prec = _DIGITS
        t = (-1 / Decimal(scale)).exp()
        masses = [t**shift / (1 + t), 1 / (1 + t)]
        if shift == 2:
            masses.insert(1, t * (1 - t) / (1 + t))
        first = np.array([float(mass) for mass in masses])
    # The middle mass may round to 0 for a tiny scale. It has no loss, so it can be left out.
    first = first[first > 0.0]
    pair = DominatingPair(first, first[::-1])
    return Bracket(pair, (pair,))


def discrete_laplace_renyi(scale: float, alpha: Floats, shift: int = 1) -> Floats:
    """Return ``log( (e^x + t^shift e^-x)/(1+t) + middle )/(alpha-1)`` with ``x = (alpha-1) shift/scale``, rounded up."""
    most, power = 1.0 / scale, alpha - 1.0
    x = shift * power * most
    near = np.minimum(x, 1.0)
    t, rest = math.exp(-most), -math.expm1(-most)  # rest: 1 - t
    outer = 1.0 if shift == 1 else (1.0 + t * t) / (1.0 + t)  # the mass of the two outer outcomes
    tilt = math.tanh(0.5 * most) if shift == 1 else rest  # the difference of the two masses
    # The sum is 1 + outer (cosh x - 1) + tilt sinh x: near x = 0 by its excess over 1, far from it by logarithms.
    small = np.log1p(2.0 * outer * np.sinh(0.5 * near) ** 2 + tilt * np.sinh(near))
    others = np.exp(-shift * most - 2.0 * x) + (t * rest * np.exp(-x) if shift == 2 else 0.0)
    large = x + np.log1p(others) - math.log1p(t)
    return np.asarray(np.where(x < 1.0, small, large) / power * (1.0 + 1e-14))


def sample_discrete_laplace(scale: int | Fraction, entropy: Entropy) -> int:
    """Draw an integer k with probability exactly proportional to ``exp(-|k|/scale)``.

    For scale = s/t, a size with probability proportional to ``exp(-size/s)`` is drawn by its remainder and quotient modulo s. Every t
    consecutive sizes are then merged into one, which gives the ratio ``exp(-t/s)`` from one result to the next.
    """
    width, merged = Fraction(scale).as_integer_ratio()
    while True:
        rest = uniform_below(width, entropy)
        if not bernoulli_exp(Fraction(rest, width), entropy):
            continue
        size = rest
        while bernoulli_exp(Fraction(1), entropy):
            size += width
        size //= merged
        negative = bool(entropy.getrandbits(1))
        if size or not negative:  # 0 has one sign only
            return -size if negative else size
