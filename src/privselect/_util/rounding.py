"""Rounding outward to decimal digits and to floats, and numbers for JSON.

An upper bound is rounded up and a lower bound down, so a printed number never claims more than was proved.
"""

from __future__ import annotations

import math
import sys
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, overload


def round_up(value: float, digits: int = 7, *, shortest: bool = False) -> float:
    """Return the smallest number with ``digits`` significant digits that is at least ``value``.

    With ``shortest``, the float is read as its shortest decimal form: 0.1 stays 0.1, although the float is slightly larger.
    """
    return float(_significant(value, digits, ROUND_CEILING, shortest=shortest)) if math.isfinite(value) else value


def round_down(value: float, digits: int = 7, *, shortest: bool = False) -> float:
    """Return the largest number with ``digits`` significant digits that is at most ``value``; ``shortest`` as in `round_up`."""
    return float(_significant(value, digits, ROUND_FLOOR, shortest=shortest)) if math.isfinite(value) else value


def format_up(value: float, places: int = 5) -> str:
    """Format ``value`` with ``places`` decimal places, rounded up."""
    return _fixed(value, places, ROUND_CEILING)


def format_down(value: float, places: int = 5) -> str:
    """Format ``value`` with ``places`` decimal places, rounded down."""
    return _fixed(value, places, ROUND_FLOOR)


def format_digits_up(value: float, digits: int = 5, *, shortest: bool = False) -> str:
    """Format ``value`` with at most ``digits`` significant digits, rounded up; ``shortest`` as in `round_up`."""
    return _scientific_if_extreme(value, digits, ROUND_CEILING, shortest=shortest)


def format_digits_down(value: float, digits: int = 5, *, shortest: bool = False) -> str:
    """Format ``value`` with at most ``digits`` significant digits, rounded down; ``shortest`` as in `round_up`."""
    return _scientific_if_extreme(value, digits, ROUND_FLOOR, shortest=shortest)


@overload
def finite_or_none(value: float) -> float | None: ...
@overload
def finite_or_none(value: object) -> Any: ...
def finite_or_none(value: Any) -> Any:
    """Return ``value`` for JSON: infinite and NaN floats become None, arrays and tuples become lists, also inside lists and dicts."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite_or_none(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [finite_or_none(entry) for entry in value]
    return value


def _fixed(value: float, places: int, rounding: str) -> str:
    # Decimal holds the exact binary value. The float value * 10^places could round the wrong way.
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-places), rounding)}" if math.isfinite(value) else "infinite"


def _significant(value: float, digits: int, rounding: str, *, shortest: bool) -> Decimal:
    return Context(prec=digits, rounding=rounding).plus(Decimal(repr(float(value)) if shortest else value))


def _scientific_if_extreme(value: float, digits: int, rounding: str, *, shortest: bool) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        return "infinite"
    number = _significant(value, digits, rounding, shortest=shortest)
    return f"{number:f}" if value == 0.0 or 1e-4 <= abs(value) < 1e5 else f"{number:e}"


def inverse_down(value: float) -> float:
    """Return the largest float that is at most ``1/value``."""
    inverse = min(1.0 / value, sys.float_info.max)
    return inverse if Fraction(inverse) * Fraction(value) <= 1 else math.nextafter(inverse, 0.0)


def inverse_up(value: float) -> float:
    """Return the smallest float that is at least ``1/value``."""
    inverse = 1.0 / value
    return inverse if Fraction(inverse) * Fraction(value) >= 1 else math.nextafter(inverse, math.inf)


def float_up(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``, which must be within the range of floats."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def log_up(value: Fraction) -> float:
    """Return the logarithm of a rational number above 1, rounded up by less than two units in the last place."""
    wide = Context(prec=60, rounding=ROUND_CEILING)
    # Decimal.ln always rounds to nearest. Its 60 digits leave room for the step up.
    log = wide.ln(wide.divide(Decimal(value.numerator), Decimal(value.denominator)))
    near = float(log)
    return near if Fraction(near) > Fraction(log) else math.nextafter(near, math.inf)
