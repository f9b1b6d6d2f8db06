"""Rounding outward to decimal digits, and numbers for JSON.

An upper bound is rounded up and a lower bound down, so a printed number never claims more than was proved.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any


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


def finite_or_none(value: Any) -> Any:
    """Return ``value`` with every infinite or NaN float replaced by None, also inside lists, tuples and dicts: JSON has no infinity."""
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
    if not math.isfinite(value):
        return "infinite"
    number = _significant(value, digits, rounding, shortest=shortest)
    return f"{number:f}" if value == 0.0 or 1e-4 <= abs(value) < 1e5 else f"{number:e}"
