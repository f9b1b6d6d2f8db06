"""The discrete Gaussian mechanism."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.random_bits import bernoulli_exp
from privselect._util.validation import Range, parameter
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.mechanisms.discrete_laplace import sample_discrete_laplace
from privselect.mechanisms.gaussian import CELL_WIDTH
from privselect.pairs import Bracket, DominatingPair, connect_the_dots
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect._util.random_bits import Entropy

    Floats = NDArray[np.float64]

_REACH = 36.0  # in sigma: e^(-36^2/2) is still a normal float
_SPLIT = 2.0**27 + 1.0  # splits a float into two halves
_UNIT_ROUNDOFF = 2.0**-53


@register
@dataclass(frozen=True, slots=True)
class DiscreteGaussian(StatedMechanism):
    """Integer noise k with mass proportional to ``exp(-k^2/(2 sigma^2))`` on an integer-valued query of sensitivity 1.

    The pair is the distribution centred at 1 against that centred at 0. An outcome k has loss ``(2k - 1)/(2 sigma^2)``, and
    ``k -> 1 - k`` exchanges the two, so one order is enough. Holds when the noise has exactly this distribution, as drawn by
    :meth:`sample`; continuous noise rounded to integers has a different one. For sigma >= 100, neighbouring outcomes share a cell.
    """

    text_name = "discrete_gaussian"
    sensitivity = "integer-valued, sensitivity 1"

    sigma: float = parameter(Range(0.0, 1e6, low_open=True, high_open=False), leaks="mostly less")

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        return (discrete_gaussian_bracket(self.sigma),)

    def sample(self, entropy: Entropy | None = None) -> int:
        """Draw the noise exactly; ``entropy`` is any object with ``getrandbits``, by default the operating system's."""
        return sample_discrete_gaussian(self.sigma, random.SystemRandom() if entropy is None else entropy)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute ``alpha/(2 sigma^2)``, as for the Gaussian: an upper bound here (Canonne, Kamath and Steinke 2020)."""
        with np.errstate(over="ignore"):
            return np.asarray(0.5 * check_orders(alpha) / self.sigma / self.sigma * (1.0 + 1e-15))


@lru_cache(maxsize=16)
def discrete_gaussian_bracket(sigma: float, shift: int = 1) -> Bracket:
    """Return the bracket of a shift by 1 or 2: an outcome k has loss ``shift (2k - shift)/(2 sigma^2)``.

    ``k -> shift - k`` exchanges the two distributions, so one order is enough. A shift of 2 differs from half the sigma, because the
    outcomes are still 1 apart.
    """
    cells, width = _cells(sigma, shift)
    last = (cells * width + shift - 1) // 2  # the outcomes run from shift - last to last
    nearest = last + 1 - shift  # distance from 0 of the first outcome that is cut off
    if nearest <= 0:
        return _bracket_of_tiny_sigma(shift)
    starts = shift - last + width * np.arange(cells, dtype=np.float64)
    masses = np.zeros_like(starts)
    for offset in range(width):
        masses += gaussian_weights(starts + offset, sigma)
    total = float(masses.sum())  # the mass further out is less than its rounding
    q = masses / total
    p = q[::-1]
    rounding = (2 * width + 64) * _UNIT_ROUNDOFF
    # Each weight from ``nearest`` on is at most ``ratio`` times the previous one. Both tails together are less than twice one tail.
    most, ratio = gaussian_weights(np.array([float(nearest)]), sigma)[0], np.exp(-nearest / sigma / sigma)
    beyond = float(2.0 * most / (1.0 - ratio) / total * (1.0 + rounding))
    # In the lower pair the tails join the likeliest outcome, whose mass as a float does not change.
    lower = DominatingPair(p, q, rounding=rounding)
    if width == 1:
        return Bracket(DominatingPair(p, q, beyond, beyond, rounding), (lower,))
    edges = np.append(starts, last + 1) - 0.5  # midway between two outcomes
    none = np.zeros(1)
    joined = connect_the_dots(
        shift * (edges - 0.5 * shift) / sigma / sigma, np.concatenate([none, p, none]), np.concatenate([none, q, none])
    )
    return Bracket(DominatingPair(joined.p, joined.q, joined.p_only + beyond, joined.q_only + beyond, rounding), (lower,))


def _cells(sigma: float, shift: int) -> tuple[int, int]:
    """Return the number of cells and of outcomes per cell, with as many outcomes of positive loss as of negative loss."""
    width = max(int(CELL_WIDTH * sigma), 1)
    if shift % 2:
        return 2 * int(_REACH * sigma / width), width
    width -= 1 - width % 2  # the middle outcome has loss 0: including it, their number is odd
    return 2 * int(_REACH * sigma / width) - 1, width


def _bracket_of_tiny_sigma(shift: int) -> Bracket:
    """Return a bracket from randomised response to a full leak, for a sigma so small that hardly any outcome is shared.

    Below 1/36, 0 and 1 have odds of more than e^648; below 1/18, 1 has odds of less than e^-162 against 0, and against 2.
    """
    odds = math.exp(-600.0 if shift == 1 else -150.0)
    response = np.array([odds, 1.0 - odds])
    return Bracket(DominatingPair(np.array([]), np.array([]), 1.0, 1.0), (DominatingPair(response, response[::-1]),))


def gaussian_weights(k: Floats, sigma: float) -> Floats:
    """Return ``exp(-k^2/(2 sigma^2))`` for integers k, right to a few units in the last place even for large exponents."""
    square = np.multiply(k, k)  # an integer below 2^53
    rate = 1 / (2 * Fraction(sigma) ** 2)
    head = float(rate)
    exponent = square * head
    # Recover the rounding error of the product and of ``head`` by Dekker's exact product.
    high, rate_high = _upper_half(square), float(_upper_half(np.array(head)))
    low, rate_low = square - high, head - rate_high
    lost = ((high * rate_high - exponent) + high * rate_low + low * rate_high) + low * rate_low
    return np.asarray(np.exp(-exponent) * (1.0 - (lost + square * float(rate - Fraction(head)))))


def _upper_half(x: Floats) -> Floats:
    scaled = _SPLIT * x
    return np.asarray(scaled - (scaled - x))


def sample_discrete_gaussian(sigma: float, entropy: Entropy) -> int:
    """Draw an integer k with probability exactly proportional to ``exp(-k^2/(2 sigma^2))``.

    Discrete Laplace noise of scale ``t = floor(sigma) + 1`` is kept with probability ``exp(-(|k| - sigma^2/t)^2/(2 sigma^2))``. The
    product of the two is proportional to the target distribution (Canonne, Kamath and Steinke 2020).
    """
    square = Fraction(sigma) ** 2
    scale = int(sigma) + 1
    while True:
        k = sample_discrete_laplace(scale, entropy)
        if bernoulli_exp((abs(k) - square / scale) ** 2 / (2 * square), entropy):
            return k
