"""Scores as exact numbers: one vector or a batch of them. What is wrong with them is said without showing any."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from numbers import Rational, Real
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import check_fraction, format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_EXACT = 2.0**53  # whole numbers below this are floats
FAR = -1e200  # where a score lies further below the greatest, this is told: it is above the truth
FAR_WHOLE = -(2.0**50)
_PLAIN_UNITS = (1e-250, 1e100)  # in which a difference beyond all floats is far below
_ALLOWED = "a vector of finite numbers, or a batch of such vectors of one length"


@dataclass(frozen=True, slots=True, repr=False)
class Scores:
    """A batch of vectors: as floats where these are the very numbers, as Python's exact numbers otherwise. Secret: no repr."""

    values: NDArray[Any]

    @property
    def plain(self) -> bool:
        """Whether they are floats."""
        return self.values.dtype == np.float64

    def exact(self, row: int, column: int) -> Fraction:
        """One score."""
        return Fraction(self.values[row, column])

    def part(self, rows: slice) -> Scores:
        """Some of the vectors."""
        return Scores(self.values[rows])

    def gaps(self, unit: Fraction) -> Floats:
        """How far each score lies from the greatest of its vector, in units, right to 2^-51 of itself; at least ``FAR``."""
        near = _as_float(unit)
        if not self.plain or not _PLAIN_UNITS[0] < near < _PLAIN_UNITS[1]:
            return self._gaps_one_by_one(unit, FAR)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.maximum((self.values - self.values.max(axis=1, keepdims=True)) / near, FAR))

    def whole_gaps(self, unit: Fraction) -> Floats:
        """The same where all scores are whole multiples of the unit: without rounding, and at least ``FAR_WHOLE``."""
        near = _as_float(unit)
        if self.plain and near == unit and np.all(np.abs(self.values) < near * _EXACT):
            if np.any(np.fmod(self.values, near)):  # fmod is exact, and so is a quotient that is a whole number
                raise _not_whole(unit)
            steps = self.values / near
            return np.asarray(np.maximum(steps - steps.max(axis=1, keepdims=True), FAR_WHOLE))
        if any((Fraction(value) / unit).denominator != 1 for value in self.values.flat):
            raise _not_whole(unit)
        return self._gaps_one_by_one(unit, FAR_WHOLE)

    def _gaps_one_by_one(self, unit: Fraction, far: float) -> Floats:
        gaps = np.empty(self.values.shape)
        for row, vector in enumerate(self.values):
            exact = [Fraction(value) for value in vector]
            top = max(exact)
            gaps[row] = [float(max((value - top) / unit, Fraction(far))) for value in exact]
        return gaps


def _not_whole(unit: Fraction) -> ParameterError:
    return ParameterError(
        "discrete noise needs `scores` that are whole multiples of the sensitivity, got some that are not "
        f"(a float is the number that it is: 0.3 is no multiple of 0.1; the sensitivity is {format_value(unit)})"
    )


def read_scores(given: Any, name: str = "scores") -> tuple[Scores, bool]:
    """The scores, and whether they are a single vector."""
    try:
        values = _read(given)
    except _UnreadableError as problem:  # which says what is wrong, and shows no score
        raise ParameterError(f"`{name}` must be {_ALLOWED}, got {problem}") from None
    single = values.ndim == 1
    if values.ndim not in {1, 2} or (single and not values.size) or not values.shape[-1]:
        raise ParameterError(f"`{name}` must be {_ALLOWED}, with at least one number each, got shape {values.shape}")
    return Scores(values[None, :] if single else values), single


class _UnreadableError(Exception):
    """What is wrong with the scores."""


def has_mask(given: Any) -> bool:
    """Whether it is a masked array, or a list of them: numpy would drop the mask and count what it hides."""
    parts = given if isinstance(given, list | tuple) else [given]
    return any(isinstance(part, np.ma.MaskedArray) for part in parts)


def _read(given: Any) -> NDArray[Any]:
    if has_mask(given):
        raise _UnreadableError("a masked array")
    try:
        # A list is not handed to numpy as it is: it would make floats of whole numbers that are none, and numbers of True and False.
        array = np.asarray(given) if hasattr(given, "__array__") else np.asarray(given, dtype=object)
    except (TypeError, ValueError, OverflowError):
        raise _UnreadableError("something else") from None
    if array.dtype.kind in "iuf" and array.dtype.itemsize <= 8:
        floats = array.astype(np.float64)
        exact = array.dtype.kind == "f" or bool(np.all(np.abs(floats) < _EXACT))
        return _finite(floats) if exact else array.astype(object)
    if array.dtype.kind not in "Of":
        raise _UnreadableError(f"entries of type {array.dtype}")
    return _read_objects(array)


def _read_objects(array: NDArray[Any]) -> NDArray[Any]:
    kinds = set(map(type, array.flat))
    if kinds <= {int, float}:
        try:
            floats = array.astype(np.float64)
        except OverflowError:
            floats = np.full(1, np.inf)
        if int not in kinds or np.all(np.abs(floats) < _EXACT):
            return _finite(floats)
    exact = np.empty(array.shape, dtype=object)
    exact[...] = np.frompyfunc(_exact, 1, 1)(array)
    return exact


def _finite(floats: Floats) -> Floats:
    if not np.isfinite(floats).all():
        raise _UnreadableError("one that is NaN or infinite")
    return floats


def _exact(entry: Any) -> Fraction:
    if isinstance(entry, bool | np.bool_) or not isinstance(entry, Real | Decimal):
        raise _UnreadableError(f"an entry of type {type(entry).__name__}")
    exact = _exact_if_finite(entry)
    if exact is None:
        raise _UnreadableError("one that is NaN, infinite or beyond 1000 digits")
    return exact


def _exact_if_finite(entry: Real | Decimal) -> Fraction | None:
    try:
        if isinstance(entry, Rational):
            return Fraction(int(entry.numerator), int(entry.denominator))
        if isinstance(entry, Decimal):
            return check_fraction("scores", entry)
        return Fraction(*entry.as_integer_ratio())  # type: ignore[attr-defined]  # as floats of every size have it
    except (ValueError, OverflowError):  # NaN; infinity. It ends here: its text may show the score, and a context would keep it.
        return None


def read_sensitivity(given: Any) -> Fraction:
    """A positive number. A float is read as itself or as the decimal that it is written as, whichever is greater: the sound side."""
    exact = check_fraction("sensitivity", given)
    number = given[()] if isinstance(given, np.ndarray) else given
    if isinstance(number, float | np.floating):  # a long double too: as a float it could be less
        exact = max(exact, Fraction(*number.as_integer_ratio()))
    if exact <= 0:
        raise ParameterError(f"`sensitivity` must be in (0, inf), got {format_value(given)}")
    return exact


def _as_float(unit: Fraction) -> float:
    try:
        return float(unit)
    except OverflowError:
        return np.inf
