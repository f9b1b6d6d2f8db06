"""Numbers for people, each rounded to the side that claims less."""

from __future__ import annotations

import math
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from privselect._util.rounding import round_up as least_above
from privselect._util.rounding import format_down, format_up
from privselect.certificates.statement import rounded_up


def at_most(value: float | str) -> str:
    """An upper end, five digits."""
    return value if isinstance(value, str) else rounded_up(value)


def at_least(value: float) -> str:
    """A lower end, five digits."""
    digits = Context(prec=5, rounding=ROUND_FLOOR).plus(Decimal(value))
    return f"{digits:f}" if value == 0.0 or 1e-4 <= value < 1e5 else f"{digits:e}"


def interval(lower: float | None, upper: float | str) -> str:
    """Both ends, or the upper one where no other is proved."""
    return f"at most {at_most(upper)}" if lower is None else f"between {at_least(lower)} and {at_most(upper)}"


def percent_up(share: float) -> str:
    """A share that is an upper bound."""
    return _percent(format_up(share, 3))


def percent_down(share: float) -> str:
    """A share that is a lower bound."""
    return _percent(format_down(share, 3))


def factor_up(epsilon: float) -> str:
    """``e^epsilon``, four digits."""
    if epsilon == 0.0:
        return "1"
    value = least_above(math.exp(epsilon) * (1.0 + 1e-14), 4)
    return f"{value:.4g}" if value < 1e5 else f"{value:.3e}"


def times_down(value: float, exact: float) -> str:
    """How many times the exact price another one is, to hundredths."""
    hundredths = Fraction(value) / Fraction(exact) * 100 // 1
    return f"{hundredths // 100:,}.{hundredths % 100:02d}"


def one_in(chance: float) -> str:
    """A chance, as one in so many."""
    many = 1 / Fraction(repr(chance)) // 1  # by the decimal that is shown beside it
    if many < 10**15:
        return f"1 in {many:,}"
    return f"1 in {Context(prec=5, rounding=ROUND_FLOOR).plus(Decimal(many)):e}"  # as a float it might be infinite


def listed(words: list[str]) -> str:
    """``a, b and c``."""
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _percent(share: str) -> str:
    return f"{Decimal(share).scaleb(2):f}%"
