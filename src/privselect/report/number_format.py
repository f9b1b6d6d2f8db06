"""Format numbers for a report: upper bounds rounded up, lower bounds rounded down."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from privselect._util.rounding import format_digits_down, format_digits_up, format_down, format_up, round_up


def format_upper(value: float | str, digits: int = 5) -> str:
    """Format an upper bound with this many significant digits. A text such as "infinite" stays."""
    return value if isinstance(value, str) else format_digits_up(value, digits)


def format_interval(lower: float | None, upper: float | str) -> str:
    """Format both bounds, or the upper bound if no lower bound is proved."""
    return f"at most {format_upper(upper)}" if lower is None else f"between {format_digits_down(lower)} and {format_upper(upper)}"


def percent_up(share: float) -> str:
    """Format a share that is an upper bound, as a percentage with one decimal place."""
    return _percent(format_up(share, 3))


def percent_down(share: float) -> str:
    """Format a share that is a lower bound, as a percentage with one decimal place."""
    return _percent(format_down(share, 3))


def factor_up(epsilon: float) -> str:
    """Format ``e^epsilon``, rounded up to four digits."""
    if epsilon == 0.0:
        return "1"
    value = round_up(math.exp(epsilon) * (1.0 + 1e-14), 4)
    return f"{value:.4g}" if value < 1e5 else f"{value:.3e}"


def ratio_down(value: float, exact: float) -> str:
    """Format ``value / exact``, rounded down to hundredths."""
    hundredths = Fraction(value) / Fraction(exact) * 100 // 1
    return f"{hundredths // 100:,}.{hundredths % 100:02d}"


def one_in(probability: float) -> str:
    """Format a probability as "1 in n", with n rounded down."""
    n = 1 / Fraction(repr(probability)) // 1  # by the decimal that is shown next to it
    if n < 10**15:
        return f"1 in {n:,}"
    return f"1 in {format_digits_down(n)}"  # as a float n may be infinite


def join_words(words: list[str]) -> str:
    """Join words as in ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _percent(share: str) -> str:
    return f"{Decimal(share).scaleb(2):f}%"
