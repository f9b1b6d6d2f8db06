"""Number literals of the text forms: exact, remembered as typed, and bounded in size."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from privselect.errors import TextFormError

_MAX_CHARACTERS = 400  # enough for an integer of 300 digits and for every digit of a float
_MAX_EXPONENT = 1000  # a float ends at 308; as a fraction, 1e400000000 would fill the memory


class LiteralFraction(Fraction):
    """Exact number that messages show as it was typed."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, value: Fraction | int, text: str) -> Self:
        """Create ``value``, typed as ``text``."""
        self = super().__new__(cls, value)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class OutOfRangeLiteral:
    """Number too large or too small to be evaluated. No parameter accepts it; the error shows it as typed."""

    text: str

    def __str__(self) -> str:
        return self.text


def parse_literal(token: str) -> Fraction | int | None:
    """Parse ASCII digits with an optional point and exponent; return None if the number is outside every parameter's range."""
    if len(token) > _MAX_CHARACTERS:
        raise TextFormError(f"a number may have at most {_MAX_CHARACTERS} characters, got {token[:20]}... with {len(token)}")
    if token.isdigit():
        return int(token)
    mantissa, _, exponent = token.lower().partition("e")
    if not mantissa.strip("0."):
        return Fraction(0)
    size = exponent.lstrip("+-0") or "0"
    if len(size) > len(str(_MAX_EXPONENT)) or int(size) > _MAX_EXPONENT:
        return None
    return Fraction(token)
