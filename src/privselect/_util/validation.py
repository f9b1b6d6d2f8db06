"""What a parameter may be: ranges as data, one check, one sentence when it fails."""

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

Leaks = Literal["more", "less", "mostly more", "mostly less"]

_MOST_DIGITS = 1000  # of a Decimal that is to be exact
_TRUTHS = {"True": True, "true": True, "False": False, "false": False}
_LONG_BITS = 256  # about 77 digits: a longer whole number is shown by its size


@dataclass(frozen=True, slots=True)
class Range:
    """An interval of allowed numbers, open or closed at each end, of reals or of whole numbers."""

    low: float
    high: float
    low_open: bool = False
    high_open: bool = True
    integer_range: bool = False

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
ACCURACY_RANGE = Range(1e-7, 0.1, high_open=False)
PROBABILITY = Range(0.0, 1.0, low_open=True, high_open=False)


def integer_range(low: int = 0, high: float = math.inf) -> Range:
    """Whole numbers from ``low`` to ``high``, both included."""
    return Range(low, high, high_open=math.isinf(high), whole=True)


def check_number(name: str, value: object, allowed: Range) -> float:
    """``value`` as a float (an int where the range is of whole numbers), or one clear sentence."""
    number = _as_real(value)
    if number is None:
        raise ParameterError(f"`{name}` must be {allowed}, got {format_value(value)}")
    if allowed.whole:
        whole_number = _as_int(number)
        if whole_number is None or whole_number not in allowed:
            raise ParameterError(f"`{name}` must be {allowed}, got {format_value(value)}")
        return whole_number
    real = _as_float(number)
    if not math.isfinite(real) or real not in allowed:
        raise ParameterError(f"`{name}` must be {allowed}, got {format_value(value)}")
    if real == 0.0 and number != 0:
        # A delta of 1e-400 must not become the promise of none.
        raise ParameterError(f"`{name}` must be {allowed} and at least {math.ulp(0.0):g} where it is not 0, got {format_value(value)}")
    return real


def check_array(name: str, values: ArrayLike, allowed: Range) -> NDArray[np.float64]:
    """``values`` as a float array, each entry finite and in the range, or one clear sentence naming the first bad one."""
    import numpy as np

    array = as_float_array(name, values, str(allowed))
    if array.size and all(math.isfinite(end) and end in allowed for end in (float(array.min()), float(array.max()))):
        return array
    above = array > allowed.low if allowed.low_open else array >= allowed.low
    below = array < allowed.high if allowed.high_open else array <= allowed.high
    bad = ~(above & below & np.isfinite(array))
    if bad.any():
        raise ParameterError(f"`{name}` must be {allowed}, got {format_value(float(array[bad].flat[0]))}")
    return array


def as_float_array(name: str, values: ArrayLike, wanted: str) -> NDArray[np.float64]:
    """``values`` as a float array of any numbers, or the sentence that ``name`` must be ``wanted``."""
    import numpy as np

    try:
        array = np.asarray(values)
        # numpy would read text as numbers; what is no plain number, such as a Fraction, is looked at one by one.
        plain = array.dtype.kind in "iuf" or (array.dtype.kind == "O" and all(_as_real(entry) is not None for entry in array.flat))
        if plain or not array.size:
            return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ParameterError(f"`{name}` must be {wanted}, got {format_value(values)}")


def check_fraction(name: str, value: object) -> Fraction:
    """``value`` as the exact rational its shortest decimal writing names: the float 0.1 is 1/10."""
    number = _as_real(value)
    if isinstance(number, Rational):
        return Fraction(number)
    if isinstance(number, Decimal):
        # As a fraction, 1e999999999 would fill the memory.
        if number.is_zero():
            return Fraction(0)
        if number.is_finite() and abs(number.adjusted()) <= _MOST_DIGITS and len(number.as_tuple().digits) <= _MOST_DIGITS:
            return Fraction(number)
    elif number is not None and math.isfinite(number):
        return Fraction(repr(float(number)))
    raise ParameterError(f"`{name}` must be a finite number, got {format_value(value)}")


def check_bool(name: str, value: object) -> bool:
    """``value`` as True or False, as Python or a text form writes it, or one clear sentence."""
    truth = _TRUTHS.get(str(value))
    if truth is None:
        raise ParameterError(f"`{name}` must be True or False, got {format_value(value)}")
    return truth


def check_sequence(name: str, values: object, wanted: str) -> tuple[Any, ...]:
    """``values`` as a tuple, or the sentence that ``name`` must be ``wanted``."""
    try:
        return tuple(values)  # type: ignore[arg-type]  # this asks whether it can be
    except TypeError:
        raise ParameterError(f"`{name}` must be {wanted}, got {format_value(values)}") from None


def parameter(allowed: Range, *, leaks: Leaks | None = None, default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """A dataclass field whose value must lie in ``allowed``; ``None`` passes where it is the default.

    ``leaks`` says what a greater value does to the leak, for those who solve for it; None where it may do either. More trials mostly
    leak more, but over a base of bounded loss many leak less than some.
    """
    return dataclasses.field(default=default, metadata={"range": allowed, "leaks": leaks}, **options)


def format_value(value: object) -> str:
    """A value as a message shows it: on one line and short, whatever it is."""
    if isinstance(value, int) and value.bit_length() > _LONG_BITS:
        return _scientific(Fraction(value))
    if type(value) is Fraction:
        near = _as_float(value)
        return str(near) if value == 0 or abs(near) > 0.0 else _scientific(value)
    if isinstance(value, str):
        return repr(truncate(value))
    try:
        text = " ".join(str(value).split())
    except ValueError:  # a number inside has more digits than Python will write
        text = f"a {type(value).__name__}"
    return truncate(text)


def format_sum_near_one(total: Fraction) -> str:
    """A sum that misses 1, shown so that it is seen to."""
    near = format_value(total)
    return near if near != "1.0" else f"1 {'+' if total > 1 else '-'} {format_value(abs(total - 1))}"


def truncate(text: str, most: int = 80) -> str:
    """``text``, cut where it is too long for a message."""
    return text if len(text) <= most else text[: most - 3] + "..."


def _as_real(value: object) -> Real | Decimal | None:
    """``value`` if it is a real number, also as an array of no dimensions; a bool is none."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    return value if isinstance(value, Real | Decimal) and not isinstance(value, bool) else None


def _as_float(value: Real | Decimal) -> float:
    """The nearest float; NaN where there is none."""
    try:
        return float(value)
    except (OverflowError, ValueError):  # beyond the largest float; a signalling NaN
        return math.nan


def _as_int(value: Real | Decimal) -> int | None:
    if isinstance(value, Integral):
        return int(value)
    number = _as_float(value)
    # Back to the value itself: the float of 3 + 1e-30 is whole, the number is not.
    return int(number) if math.isfinite(number) and abs(number) < 2**53 and int(number) == value else None


def _scientific(value: Fraction) -> str:
    # Rounded up: what is just above a bound must not be shown as the bound.
    wide = Context(prec=6, rounding=ROUND_UP, Emax=MAX_EMAX, Emin=MIN_EMIN)
    return str(wide.normalize(wide.divide(Decimal(value.numerator), Decimal(value.denominator)))).lower()
