"""How far a parameter may be moved in a search, in which direction it is safe, and where the search starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import TYPE_CHECKING

from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.open_spec import OpenParameter

# Where a range has no end of its own: beyond these nothing private, or nothing useful, is left.
_SMALLEST, _LARGEST = 1e-9, 1e6
_LEAST = {"sigma": 1e-3, "noise_multiplier": 1e-3, "mu": 1e-6, "delta": 1e-100}
_DIGITS = 7  # a solved number is rounded to this many, to the safe side: it is to be read and typed


@dataclass(frozen=True, slots=True)
class Axis:
    """The places a parameter may take, from the ``safest`` one to the least safe, ``last``."""

    name: str
    safest: float
    last: float
    start: float
    whole: bool
    shift: float = 0.0

    @property
    def towards_safe(self) -> int:
        """1 where a greater value is safer, -1 where a smaller one is."""
        return 1 if self.safest > self.last else -1

    def place(self, value: float) -> float:
        """On a scale where equal steps are equal factors."""
        return math.log(value + self.shift)

    def value(self, place: float) -> float:
        """The parameter there."""
        return self.kept(math.exp(min(place, 700.0)) - self.shift)

    def kept(self, raw: float) -> float:
        """``raw``, rounded to the safe side and kept inside the axis."""
        low, high = sorted((self.safest, self.last))
        inside = min(max(raw, low), high)
        if self.whole:
            near = round(inside)
            if abs(inside - near) < 1e-9 * abs(inside):  # the logarithm's own rounding
                return near
            return math.ceil(inside) if self.towards_safe > 0 else math.floor(inside)
        rounding = ROUND_CEILING if self.towards_safe > 0 else ROUND_FLOOR
        rounded = float(Context(prec=_DIGITS, rounding=rounding).create_decimal(Decimal(repr(inside))))
        return min(max(rounded, low), high)

    def less_safe(self, value: float) -> float:
        """The next whole number on the side that leaks more."""
        return value - self.towards_safe

    def shown(self, value: float) -> str:
        """``name = value``."""
        return f"{self.name} = {write_value(value)}"


def axis_of(hole: OpenParameter) -> Axis:
    """The axis of a parameter that is left open, by its range and by what it does to the leak."""
    allowed, less = hole.allowed, hole.leaks in {"less", "mostly less"}
    if allowed is None:
        raise TypeError(f"`{hole.parameter}` has no range")  # asked before
    low, high = allowed.low, allowed.high
    shift = -low if low < 0.0 else 0.0  # eta starts at -1
    if low + shift == 0.0 and not allowed.whole:
        low = _LEAST.get(hole.parameter, _SMALLEST) - shift
    if math.isinf(high):
        high = _LARGEST
    start = min(max(_STARTS.get(hole.parameter, 1.0), low), high)
    safest, last = (high, low) if less else (low, high)
    return Axis(hole.parameter, safest, last, start, allowed.whole, shift)


# Where tuning usually happens; the search is quicker from near, and finds its way from anywhere.
_STARTS = {
    "noise_multiplier": 1.5,
    "sigma": 4.0,
    "scale": 4.0,
    "steps": 2000,
    "times": 4,
    "rounds": 50,
    "m": 100,
    "changes": 2,
    "sampling_probability": 0.01,
    "batch_size": 256,
    "records": 50_000,
    "epsilon": 0.5,
    "delta": 1e-8,
    "mu": 0.3,
    "mean": 30.0,
    "gamma": 1.0 / 30.0,
    "n": 30,
    "k": 4,
    "p": 0.5,
    "eta": 0.5,
}
