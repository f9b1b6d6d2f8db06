"""The range in which an open parameter is searched."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privselect._util.rounding import round_down, round_up
from privselect._util.validation import ACCURACY_RANGE, REAL, check_number
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.open_spec import OpenParameter

_FAR = math.log(1000.0)  # a given starting value further than this from the default one is ignored

# Bounds of a search range for parameters whose own range has none, or a lower bound of 0.
_SMALLEST, _LARGEST = 1e-9, 1e6
_SMALLEST_OF = {"sigma": 1e-3, "noise_multiplier": 1e-3, "mu": 1e-6, "delta": 1e-100}
_DIGITS = 7  # solved numbers are rounded to this many digits, because people read and type them

# Typical values: a search is faster from a near start and converges from any.
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


@dataclass(frozen=True, slots=True)
class SearchRange:
    """The values of a parameter that a search may try, from the ``safest`` to the ``riskiest``."""

    name: str
    safest: float
    riskiest: float
    start: float
    integer: bool
    shift: float = 0.0

    @property
    def safe_direction(self) -> int:
        """1 if larger values are safer, -1 if smaller values are."""
        return 1 if self.safest > self.riskiest else -1

    def to_log(self, value: float) -> float:
        """Return the logarithmic coordinate of a value: equal steps are equal factors."""
        return math.log(value + self.shift)

    def from_log(self, log_value: float) -> float:
        """Return the value at a logarithmic coordinate, rounded to the safe side."""
        return self.round_safely(math.exp(min(log_value, 700.0)) - self.shift)

    def round_safely(self, raw: float) -> float:
        """Clip a value to the range and round it to the safe side."""
        low, high = sorted((self.safest, self.riskiest))
        inside = min(max(raw, low), high)
        if self.integer:
            near = round(inside)
            if abs(inside - near) < 1e-9 * abs(inside):  # rounding error of the logarithm
                return near
            return math.ceil(inside) if self.safe_direction > 0 else math.floor(inside)
        rounded = (round_up if self.safe_direction > 0 else round_down)(inside, _DIGITS, shortest=True)
        return min(max(rounded, low), high)

    def riskier(self, value: float) -> float:
        """Return the neighbouring integer that leaks more."""
        return value - self.safe_direction

    def format(self, value: float) -> str:
        """Return ``name = value`` as text."""
        return f"{self.name} = {write_value(value)}"


@dataclass(frozen=True, slots=True)
class FastOptions:
    """Options that trade accuracy for speed in interactive use.

    The search and the accountant work to the relative ``accuracy``. Part of the budget may stay unused; it is never exceeded.
    ``start`` is the first value to try, such as the solution of a similar problem. No value above ``largest`` is tried.
    """

    accuracy: float = 1e-3
    start: float | None = None
    largest: float | None = None

    def __post_init__(self) -> None:
        check_number("accuracy", self.accuracy, ACCURACY_RANGE)
        for name in ("start", "largest"):
            if (given := getattr(self, name)) is not None:
                check_number(name, given, REAL)

    def start_in(self, search_range: SearchRange) -> float | None:
        """Return the first value to try, or None if it is too far from the default to be useful."""
        start = self.start
        if start is None or start + search_range.shift <= 0.0:
            return None
        if abs(search_range.to_log(start) - search_range.to_log(search_range.start)) > _FAR:
            return None
        return search_range.round_safely(start)

    def restrict(self, search_range: SearchRange) -> SearchRange:
        """Return the part of the range up to ``largest``."""
        if self.largest is None:
            return search_range
        names = ("safest", "riskiest", "start")
        return replace(search_range, **{name: min(getattr(search_range, name), self.largest) for name in names})


def initial_range(unknown: OpenParameter) -> SearchRange:
    """Return the search range by the parameter's own range alone."""
    allowed, larger_is_safer = unknown.allowed, unknown.leaks in {"less", "mostly less"}
    if allowed is None:
        raise TypeError(f"`{unknown.parameter}` has no range")  # excluded by read_problem
    low, high = allowed.low, allowed.high
    shift = -low if low < 0.0 else 0.0  # eta starts at -1
    if low + shift == 0.0 and not allowed.integer:
        low = _SMALLEST_OF.get(unknown.parameter, _SMALLEST) - shift
    if math.isinf(high):
        high = _LARGEST
    start = min(max(_STARTS.get(unknown.parameter, 1.0), low), high)
    safest, riskiest = (high, low) if larger_is_safer else (low, high)
    return SearchRange(unknown.parameter, safest, riskiest, start, allowed.integer, shift)
