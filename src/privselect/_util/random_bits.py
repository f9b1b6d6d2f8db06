"""Exact random draws from uniform bits, by integer arithmetic only: no rounding error changes a distribution."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol


class Entropy(Protocol):
    """Source of uniformly random bits, such as ``random.SystemRandom()``."""

    def getrandbits(self, k: int, /) -> int:
        """Return a uniformly random integer in [0, 2^k)."""


def uniform_below(n: int, entropy: Entropy) -> int:
    """Draw a uniformly random integer in [0, n)."""
    bits = (n - 1).bit_length()
    if not bits:
        return 0
    while True:
        number = entropy.getrandbits(bits)
        if number < n:
            return number


def bernoulli(probability: Fraction, entropy: Entropy) -> bool:
    """Draw True with exactly this probability."""
    return uniform_below(probability.denominator, entropy) < probability.numerator


def bernoulli_exp(exponent: Fraction, entropy: Entropy) -> bool:
    """Draw True with probability exactly ``exp(-exponent)``, for exponent >= 0.

    For x <= 1, draw events of probability x/1, x/2, x/3, ... until one fails. The index of the first failure is odd with
    probability ``exp(-x)`` (Forsythe and von Neumann). A larger exponent is split into ones and a remainder; all draws must be True.
    """
    while exponent > 1:
        if not _bernoulli_exp_small(Fraction(1), entropy):
            return False
        exponent -= 1
    return _bernoulli_exp_small(exponent, entropy)


def _bernoulli_exp_small(x: Fraction, entropy: Entropy) -> bool:
    index = 1
    while bernoulli(x / index, entropy):
        index += 1
    return index % 2 == 1
