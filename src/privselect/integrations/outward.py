"""Numbers that change their form on the way, rounded outward: towards less noise."""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction


def inverse_below(value: float) -> float:
    """The greatest float that is at most 1/value."""
    inverse = min(1.0 / value, sys.float_info.max)
    return inverse if Fraction(inverse) * Fraction(value) <= 1 else math.nextafter(inverse, 0.0)


def inverse_above(value: float) -> float:
    """The least float that is at least 1/value."""
    inverse = 1.0 / value
    return inverse if Fraction(inverse) * Fraction(value) >= 1 else math.nextafter(inverse, math.inf)


def float_above(value: Fraction) -> float:
    """The least float that is at least ``value``, which is within the range of floats."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def log_above(value: Fraction) -> float:
    """The logarithm of a rational number above 1, rounded up, by less than two units in the last place."""
    wide = Context(prec=60, rounding=ROUND_CEILING)
    # Decimal's ln rounds to nearest, whatever the context says: its 60 digits leave room for the step up.
    log = wide.ln(wide.divide(Decimal(value.numerator), Decimal(value.denominator)))
    near = float(log)
    return near if Fraction(near) > Fraction(log) else math.nextafter(near, math.inf)
