"""Interval arithmetic on decimals, with any number of digits.

The logarithm and exponential of the standard library's ``decimal`` are correctly rounded, so one step outward encloses the true
value. Sums and products are rounded outward by their contexts.
"""

from __future__ import annotations

import decimal
import math
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from itertools import count

Enclosure = tuple[Decimal, Decimal]


def _context(digits: int, rounding: str) -> decimal.Context:
    return decimal.Context(
        prec=digits,
        rounding=rounding,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
    )


class IntervalArithmetic:
    """Interval arithmetic with a given number of digits: every result contains the true value."""

    def __init__(self, digits: int) -> None:
        self.digits = digits
        self._down = _context(digits, decimal.ROUND_FLOOR)
        self._up = _context(digits, decimal.ROUND_CEILING)

    @staticmethod
    @lru_cache(maxsize=16)
    def of(digits: int) -> IntervalArithmetic:
        """Return the cached instance for this number of digits."""
        return IntervalArithmetic(digits)

    def rational(self, x: Fraction) -> Enclosure:
        """Enclose ``x``."""
        top, bottom = Decimal(x.numerator), Decimal(x.denominator)
        return self._down.divide(top, bottom), self._up.divide(top, bottom)

    def integer(self, n: int) -> Enclosure:
        """Enclose ``n``."""
        return self._down.plus(Decimal(n)), self._up.plus(Decimal(n))

    def plus(self, x: Enclosure, y: Enclosure) -> Enclosure:
        """Enclose ``x + y``."""
        return self._down.add(x[0], y[0]), self._up.add(x[1], y[1])

    def minus(self, x: Enclosure, y: Enclosure) -> Enclosure:
        """Enclose ``x - y``."""
        return self._down.subtract(x[0], y[1]), self._up.subtract(x[1], y[0])

    def times(self, x: Enclosure, y: Enclosure) -> Enclosure:
        """Enclose ``x y``."""
        if x[0] >= 0 and y[0] >= 0:
            return self._down.multiply(x[0], y[0]), self._up.multiply(x[1], y[1])
        pairs = [(a, b) for a in x for b in y]
        return min(self._down.multiply(a, b) for a, b in pairs), max(self._up.multiply(a, b) for a, b in pairs)

    def log(self, x: Fraction) -> Enclosure:
        """Enclose ``log x``, for x > 0."""
        low, high = self.rational(x)
        log = self._down.ln(low)
        # log high <= log low + (high - low)/low: this saves the second logarithm.
        excess = self._up.divide(self._up.subtract(high, low), low)
        return self._down.next_minus(log), self._up.add(self._up.next_plus(log), excess)

    def exp(self, x: Enclosure) -> Enclosure:
        """Enclose ``e^x``."""
        return self._down.next_minus(self._down.exp(x[0])), self._up.next_plus(self._up.exp(x[1]))

    def log_gamma(self, x: Fraction) -> Enclosure:
        r"""Enclose ``log Gamma(x) - log(2 pi)/2``, for x > 0; the constant cancels in every difference.

        Stirling at z = x + s:  (z - 1/2) log z - z + sum_j B_2j / (2j (2j-1) z^(2j-1)). The error lies between 0 and the first
        omitted term. And Gamma(x) = Gamma(z) / (x (x+1) ... (x+s-1)).
        """
        shift = max(0, math.ceil(self.digits - x))  # for z >= digits the terms become smaller than the last digit
        z = x + shift
        total = self.minus(self.times(self.rational(z - Fraction(1, 2)), self.log(z)), self.rational(z))
        inverse = self.rational(1 / z)
        power, square = inverse, self.times(inverse, inverse)
        for j in count(1):
            term = self.times(self.rational(_stirling(j)), power)
            if max(map(abs, term)) < Decimal(10) ** -self.digits:
                total = self.plus(total, (min(term[0], Decimal(0)), max(term[1], Decimal(0))))
                break
            total = self.plus(total, term)
            power = self.times(power, square)
        if shift:
            factors = math.prod(x.numerator + i * x.denominator for i in range(shift))
            total = self.minus(total, self.log(Fraction(factors, x.denominator**shift)))
        return total

    def scaled_to_bits(self, x: Enclosure, bits: int) -> tuple[int, int]:
        """Return integers that enclose ``2^bits x``, for x >= 0."""
        scale = self.integer(1 << bits)
        low, high = self.times(x, scale)
        return max(0, math.floor(low)), math.ceil(high)


@lru_cache(maxsize=4096)
def _stirling(j: int) -> Fraction:
    return _bernoulli(2 * j) / (2 * j * (2 * j - 1))


@lru_cache(maxsize=8192)
def _bernoulli(n: int) -> Fraction:
    if n == 0:
        return Fraction(1)
    if n > 1 and n % 2:
        return Fraction(0)
    return -sum((math.comb(n + 1, i) * _bernoulli(i) for i in range(n)), Fraction(0)) / (n + 1)
