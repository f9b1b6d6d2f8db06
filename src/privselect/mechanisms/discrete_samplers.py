"""Draw discrete Gaussian and Laplace noise exactly: by whole numbers, so that its law is the one that is accounted for."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from privselect._util.random_bits import uniform_below, bernoulli_exp

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy


def discrete_gaussian(sigma: float, entropy: Entropy) -> int:
    """A whole number k with probability exactly proportional to ``exp(-k^2/(2 sigma^2))``.

    Discrete Laplace noise of scale ``t = floor(sigma) + 1`` is kept with probability ``exp(-(|k| - sigma^2/t)^2/(2 sigma^2))``: the
    product of the two laws is the one wanted up to a factor (Canonne, Kamath and Steinke 2020).
    """
    square = Fraction(sigma) ** 2
    scale = int(sigma) + 1
    while True:
        k = discrete_laplace(scale, entropy)
        if bernoulli_exp((abs(k) - square / scale) ** 2 / (2 * square), entropy):
            return k


def discrete_laplace(scale: int | Fraction, entropy: Entropy) -> int:
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
