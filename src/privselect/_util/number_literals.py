"""Numbers as they are written in a text form: exact, remembered as typed, and never slow to read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from privselect.errors import TextFormError

_LONGEST = 400  # characters of one number: room for a whole number of 300 digits and for every digit of a float
_LARGEST_EXPONENT = 1000  # a float ends at 308; as a fraction, 1e400000000 would fill the memory


class LiteralFraction(Fraction):
    """An exact number that messages show as it was typed."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, value: Fraction | int, text: str) -> Self:
        """``value``, typed as ``text``."""
        self = super().__new__(cls, value)
        self.text = text
        return self

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class OutOfRangeLiteral:
    """A number too large or too small to be worked out: no parameter takes it, and the refusal shows it as it was typed."""

    text: str

    def __str__(self) -> str:
        return self.text


def parse_literal(token: str) -> Fraction | int | None:
    """The value of digits, a point and an exponent, all ASCII; None where it is beyond every parameter."""
    if len(token) > _LONGEST:
        raise TextFormError(f"a number may have at most {_LONGEST} characters, got {token[:20]}... with {len(token)}")
    if token.isdigit():
        return int(token)
    mantissa, _, exponent = token.lower().partition("e")
    if not mantissa.strip("0."):
        return Fraction(0)
    size = exponent.lstrip("+-0") or "0"
    if len(size) > len(str(_LARGEST_EXPONENT)) or int(size) > _LARGEST_EXPONENT:
        return None
    return Fraction(token)
