"""Numbers for people, rounded to the side that claims less."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal


def format_up(value: float, places: int = 5) -> str:
    """With so many decimal places, never less than the value itself."""
    return _shown(value, places, ROUND_CEILING)


def format_down(value: float, places: int = 5) -> str:
    """With so many decimal places, never more than the value itself."""
    return _shown(value, places, ROUND_FLOOR)


def _shown(value: float, places: int, rounding: str) -> str:
    # By the exact binary value: value * 10^places, as a float, may round the other way.
    return f"{Decimal(value).quantize(Decimal(1).scaleb(-places), rounding)}" if math.isfinite(value) else "infinite"


def round_up(value: float, digits: int = 7) -> float:
    """The least number of so many digits that is not below the value."""
    return _rounded(value, digits, ROUND_CEILING)


def round_down(value: float, digits: int = 7) -> float:
    """The greatest number of so many digits that is not above the value."""
    return _rounded(value, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, rounding: str) -> float:
    exact = Decimal(value)
    return float(exact.quantize(Decimal(1).scaleb(exact.adjusted() - digits + 1), rounding)) if math.isfinite(value) else value
