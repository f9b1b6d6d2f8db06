"""Uniform bits, and exact draws from them: whole-number arithmetic alone, so that no law is bent by rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Protocol


class Entropy(Protocol):
    """Anything that hands out uniformly random bits, such as ``random.SystemRandom()``."""

    def getrandbits(self, k: int, /) -> int:
        """A uniformly random whole number below ``2^k``."""


def uniform_below(n: int, entropy: Entropy) -> int:
    """A uniformly random whole number in [0, n)."""
    bits = (n - 1).bit_length()
    if not bits:
        return 0
    while True:
        number = entropy.getrandbits(bits)
        if number < n:
            return number


def bernoulli(probability: Fraction, entropy: Entropy) -> bool:
    """True with exactly this probability."""
    return uniform_below(probability.denominator, entropy) < probability.numerator


def bernoulli_exp(exponent: Fraction, entropy: Entropy) -> bool:
    """True with probability exactly ``exp(-exponent)``, for exponent >= 0.

    For x <= 1: ``exp(-x)`` is the chance that the first failure among events of probability x/1, x/2, x/3, ... comes at an odd place
    (Forsythe and von Neumann). A larger exponent is a run of ones and a rest, each of which must come true.
    """
    while exponent > 1:
        if not _decays_once(Fraction(1), entropy):
            return False
        exponent -= 1
    return _decays_once(exponent, entropy)


def _decays_once(x: Fraction, entropy: Entropy) -> bool:
    place = 1
    while bernoulli(x / place, entropy):
        place += 1
    return place % 2 == 1
