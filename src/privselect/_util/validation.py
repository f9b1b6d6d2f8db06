"""Validation of parameters: ranges as data, one check, one error message."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_UP, Context, Decimal
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import TYPE_CHECKING, Any, Literal

from privselect.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

LeakTrend = Literal["more", "less", "mostly more", "mostly less"]

_MAX_DIGITS = 1000  # of a Decimal that is converted exactly
_BOOLS = {"True": True, "true": True, "False": False, "false": False}
_LONG_BITS = 256  # about 77 digits: longer integers are shown in scientific notation


@dataclass(frozen=True, slots=True)
class Range:
    """Interval of allowed real numbers or integers, open or closed at each bound."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = True
    integer: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.low_open else value >= self.low
        below = value < self.high if self.high_open else value <= self.high
        return above and below

    def __str__(self) -> str:
        if self.integer:
            # Infinity has no integer format.
            limit = f" and <= {self.high:.0f}" if math.isfinite(self.high) else ""
            return f"an integer >= {self.low:.0f}{limit}"
        left, right = "(" if self.low_open else "[", ")" if self.high_open else "]"
        return f"in {left}{self.low:g}, {self.high:g}{right}"


POSITIVE = Range(0.0, math.inf, low_open=True)
NON_NEGATIVE = Range(0.0, math.inf)
REAL = Range(-math.inf, math.inf, low_open=True)
OPEN_UNIT = Range(0.0, 1.0, low_open=True)
UNIT = Range(0.0, 1.0, high_open=False)
ACCURACY_RANGE = Range(1e-7, 0.1, high_open=False)
PROBABILITY = Range(0.0, 1.0, low_open=True, high_open=False)


def integer_range(low: int = 0, high: float = math.inf) -> Range:
    """Return the range of the integers from ``low`` to ``high``, both included."""
    return Range(low, high, high_open=math.isinf(high), integer=True)


def check_number(name: str, value: object, allowed: Range) -> float:
    """Return ``value`` as a float, or as an int for a range of integers; raise ParameterError if it is outside ``allowed``."""
    number = _as_real(value)
    if number is None:
        raise ParameterError(f"`{name}` must be {allowed}, got {format_value(value)}")
    if allowed.integer:
        integer = _as_int(number)
        if integer is None or integer not in allowed:
            raise ParameterError(f"`{name}` must be {allowed}, got {format_value(value)}")
        return integer
    real = _as_float(number)
    if not math.isfinite(real) or real not in allowed:
        raise ParameterError(f"`{name}` must be {allowed}, got {format_value(value)}")
    if real == 0.0 and number != 0:
        # A delta of 1e-400 must not turn into a promise of delta 0.
        raise ParameterError(f"`{name}` must be {allowed} and, if not 0, at least {math.ulp(0.0):g}, got {format_value(value)}")
    return real


def check_array(name: str, values: ArrayLike, allowed: Range) -> NDArray[np.float64]:
    """Return ``values`` as a float array; raise ParameterError with the first entry that is not finite or outside ``allowed``."""
    import numpy as np

    array = as_float_array(name, values, str(allowed))
    if array.size and all(math.isfinite(bound) and bound in allowed for bound in (float(array.min()), float(array.max()))):
        return array
    above = array > allowed.low if allowed.low_open else array >= allowed.low
    below = array < allowed.high if allowed.high_open else array <= allowed.high
    bad = ~(above & below & np.isfinite(array))
    if bad.any():
        raise ParameterError(f"`{name}` must be {allowed}, got {format_value(float(array[bad].flat[0]))}")
    return array


def as_float_array(name: str, values: ArrayLike, requirement: str) -> NDArray[np.float64]:
    """Return ``values`` as a float array of any numbers, or raise ParameterError: ``name`` must be ``requirement``."""
    import numpy as np

    try:
        array = np.asarray(values)
        # numpy would convert text to numbers. Objects, such as Fractions, are checked one by one.
        numeric = array.dtype.kind in "iuf" or (array.dtype.kind == "O" and all(_as_real(entry) is not None for entry in array.flat))
        if numeric or not array.size:
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"`{name}` must be {requirement}, got {format_value(values)}")


def check_fraction(name: str, value: object) -> Fraction:
    """Return ``value`` as an exact rational. A float stands for its shortest decimal form: 0.1 is 1/10."""
    number = _as_real(value)
    if isinstance(number, Rational):
        return Fraction(number)
    if isinstance(number, Decimal):
        # As a fraction, 1e999999999 would fill the memory.
        if number.is_zero():
            return Fraction(0)
        if number.is_finite() and abs(number.adjusted()) <= _MAX_DIGITS and len(number.as_tuple().digits) <= _MAX_DIGITS:
            return Fraction(number)
    elif number is not None and math.isfinite(number):
        return Fraction(repr(float(number)))
    raise ParameterError(f"`{name}` must be a finite number, got {format_value(value)}")


def check_bool(name: str, value: object) -> bool:
    """Return ``value``, a bool or its name in Python or in a text form, as True or False."""
    truth = _BOOLS.get(str(value))
    if truth is None:
        raise ParameterError(f"`{name}` must be True or False, got {format_value(value)}")
    return truth


def check_sequence(name: str, values: object, requirement: str) -> tuple[Any, ...]:
    """Return ``values`` as a tuple, or raise ParameterError: ``name`` must be ``requirement``."""
    try:
        return tuple(values)  # type: ignore[arg-type]  # this tests whether it is iterable
    except TypeError:
        raise ParameterError(f"`{name}` must be {requirement}, got {format_value(values)}") from None


def parameter(allowed: Range, *, leaks: LeakTrend | None = None, default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """Declare a dataclass field whose value must lie in ``allowed``. None is accepted if it is the default.

    ``leaks`` states whether a larger value leaks more or less; the planner uses it to solve for the parameter. None means unknown.
    More trials "mostly" leak more: over a base of bounded loss, many trials can leak less than a few.
    """
    return dataclasses.field(default=default, metadata={"range": allowed, "leaks": leaks}, **options)


def format_value(value: object) -> str:
    """Format any value for an error message: short, and on one line."""
    if isinstance(value, int) and value.bit_length() > _LONG_BITS:
        return _scientific(Fraction(value))
    if type(value) is Fraction:
        near = _as_float(value)
        return str(near) if value == 0 or abs(near) > 0.0 else _scientific(value)
    if isinstance(value, str):
        return repr(truncate(value))
    try:
        text = " ".join(str(value).split())
    except ValueError:  # Python refuses to write integers with very many digits
        text = f"a {type(value).__name__}"
    return truncate(text)


def format_sum_near_one(total: Fraction) -> str:
    """Format a sum other than 1, so the message shows that it is not 1."""
    near = format_value(total)
    return near if near != "1.0" else f"1 {'+' if total > 1 else '-'} {format_value(abs(total - 1))}"


def truncate(text: str, length: int = 80) -> str:
    """Return ``text``, cut to at most ``length`` characters."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _as_real(value: object) -> Real | Decimal | None:
    """Return ``value`` if it is a real number or an array of no dimensions that holds one. A bool is not a number."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, Real | Decimal) and not isinstance(value, bool) else None


def _as_float(value: Real | Decimal) -> float:
    """Return the nearest float, or NaN if there is none."""
    try:
        return float(value)
    except (OverflowError, ValueError):  # larger than every float; a signalling NaN
        return math.nan


def _as_int(value: Real | Decimal) -> int | None:
    if isinstance(value, Integral):
        return int(value)
    number = _as_float(value)
    # Compare with the value itself: the float of 3 + 1e-30 is an integer, the number is not.
    return int(number) if math.isfinite(number) and abs(number) < 2**53 and int(number) == value else None


def _scientific(value: Fraction) -> str:
    # Rounded up: a number just above a limit must not be shown as the limit.
    wide = Context(prec=6, rounding=ROUND_UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return str(wide.normalize(wide.divide(Decimal(value.numerator), Decimal(value.denominator)))).lower()
