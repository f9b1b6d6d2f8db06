"""What a parameter may be: ranges as data, one check, one sentence when it fails."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of allowed numbers, open or closed at each end, of reals or of whole numbers."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = True
    whole: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        if self.whole:
            # isfinite first: the open end at infinity has no integer form.
            top = f" and <= {self.high:.0f}" if math.isfinite(self.high) else ""
            return f"a whole number >= {self.low:.0f}{top}"
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"in {left}{self.low:g}, {self.high:g}{right}"


POSITIVE = Range(0.0, math.inf, low_open=True)
NON_NEGATIVE = Range(0.0, math.inf)
REAL = Range(-math.inf, math.inf, low_open=True)
OPEN_UNIT = Range(0.0, 1.0, low_open=True)
UNIT = Range(0.0, 1.0, high_open=False)
PROBABILITY = Range(0.0, 1.0, low_open=True, high_open=False)


def whole(low: int = 0, high: float = math.inf) -> Range:
    """Whole numbers from ``low`` to ``high``, both included."""
    return Range(low, high, high_open=math.isinf(high), whole=True)


def check_number(name: str, value: object, allowed: Range) -> float:
    """``value`` as a float (an int where the range is of whole numbers), or one clear sentence."""
    complaint = f"`{name}` must be {allowed}, got {_shown(value)}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(complaint)
    if allowed.whole:
        number = _as_int(value)
        if number is None or number not in allowed:
            raise ParameterError(complaint)
        return number
    try:
        real = float(value)
    except OverflowError:
        raise ParameterError(complaint) from None
    if not math.isfinite(real) or real not in allowed:
        raise ParameterError(complaint)
    return real


def check_array(name: str, values: ArrayLike, allowed: Range) -> NDArray[np.float64]:
    """``values`` as a float array, each entry finite and in the range, or one clear sentence naming the first bad one."""
    import numpy as np

    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"`{name}` must be {allowed}, got {_shown(values)}") from None
    if array.size and all(math.isfinite(end) and end in allowed for end in (float(array.min()), float(array.max()))):
        return array
    above = array > allowed.low if allowed.low_open else array >= allowed.low
    below = array < allowed.high if allowed.high_open else array <= allowed.high
    bad = ~(above & below & np.isfinite(array))
    if bad.any():
        raise ParameterError(f"`{name}` must be {allowed}, got {_shown(float(array[bad].flat[0]))}")
    return array


def check_exact(name: str, value: object) -> Fraction:
    """``value`` as the exact rational its shortest decimal writing names: the float 0.1 is 1/10."""
    if isinstance(value, Rational) and not isinstance(value, bool):
        return Fraction(value)
    if isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value):
        return Fraction(repr(float(value)))
    raise ParameterError(f"`{name}` must be a finite number, got {_shown(value)}")


def parameter(allowed: Range, *, default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """A dataclass field whose value must lie in ``allowed``; ``None`` passes where it is the default."""
    return dataclasses.field(default=default, metadata={"range": allowed}, **options)


def _as_int(value: Real) -> int | None:
    if isinstance(value, Integral):
        return int(value)
    number = float(value)
    return int(number) if math.isfinite(number) and number.is_integer() and abs(number) < 2**53 else None


def _shown(value: object) -> str:
    if isinstance(value, Fraction):
        return str(float(value)) if abs(value) < 10**300 else "a number beyond 1e300"
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
