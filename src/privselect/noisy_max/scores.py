"""Scores as exact numbers, one vector or a batch. Error messages never show a score."""

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

_EXACT = 2.0**53  # integers below this are exact floats
LOWEST_GAP = -1e200  # scores further below the largest get this gap, which is an upper bound
LOWEST_INTEGER_GAP = -(2.0**50)
_FLOAT_UNITS = (1e-250, 1e100)  # in these units, a difference that overflows is far below
_ALLOWED = "a vector of finite numbers, or a batch of such vectors of one length"


@dataclass(frozen=True, slots=True, repr=False)
class Scores:
    """A batch of vectors: floats if these are exact, otherwise Python's exact numbers. Secret, so it has no repr."""

    values: NDArray[Any]

    @property
    def is_float(self) -> bool:
        """Whether the scores are stored as floats."""
        return self.values.dtype == np.float64

    def exact(self, row: int, column: int) -> Fraction:
        """Return one score as a fraction."""
        return Fraction(self.values[row, column])

    def select(self, rows: slice) -> Scores:
        """Return some of the vectors."""
        return Scores(self.values[rows])

    def gaps(self, unit: Fraction) -> Floats:
        """Return each score minus the largest of its vector, in units.

        The relative error is at most 2^-51, and gaps are at least ``LOWEST_GAP``.
        """
        near = _as_float(unit)
        if not self.is_float or not _FLOAT_UNITS[0] < near < _FLOAT_UNITS[1]:
            return self._exact_gaps(unit, LOWEST_GAP)
        with np.errstate(over="ignore", under="ignore"):
            return np.asarray(np.maximum((self.values - self.values.max(axis=1, keepdims=True)) / near, LOWEST_GAP))

    def integer_gaps(self, unit: Fraction) -> Floats:
        """Return the gaps without rounding, at least ``LOWEST_INTEGER_GAP``; raise if a score is not an integer multiple of the unit."""
        near = _as_float(unit)
        if self.is_float and near == unit and np.all(np.abs(self.values) < near * _EXACT):
            if np.any(np.fmod(self.values, near)):  # fmod is exact, and so is an integer quotient
                raise _not_multiples(unit)
            steps = self.values / near
            return np.asarray(np.maximum(steps - steps.max(axis=1, keepdims=True), LOWEST_INTEGER_GAP))
        if any((Fraction(value) / unit).denominator != 1 for value in self.values.flat):
            raise _not_multiples(unit)
        return self._exact_gaps(unit, LOWEST_INTEGER_GAP)

    def _exact_gaps(self, unit: Fraction, lowest: float) -> Floats:
        gaps = np.empty(self.values.shape)
        for row, vector in enumerate(self.values):
            exact = [Fraction(value) for value in vector]
            top = max(exact)
            gaps[row] = [float(max((value - top) / unit, Fraction(lowest))) for value in exact]
        return gaps


def _not_multiples(unit: Fraction) -> ParameterError:
    return ParameterError(
        "`scores` must be integer multiples of the sensitivity for discrete noise, got other values. "
        f"A float has its exact binary value: 0.3 is not a multiple of 0.1. The sensitivity is {format_value(unit)}."
    )


def read_scores(given: Any, name: str = "scores") -> tuple[Scores, bool]:
    """Return the scores, and whether they are a single vector."""
    try:
        values = _read(given)
    except _UnreadableError as problem:  # its text shows no score
        raise ParameterError(f"`{name}` must be {_ALLOWED}, got {problem}") from None
    single = values.ndim == 1
    if values.ndim not in {1, 2} or (single and not values.size) or not values.shape[-1]:
        raise ParameterError(f"`{name}` must be {_ALLOWED}, with at least one number each, got shape {values.shape}")
    return Scores(values[None, :] if single else values), single


class _UnreadableError(Exception):
    """The scores cannot be read; the text is the reason."""


def has_mask(given: Any) -> bool:
    """Return whether ``given`` is or contains a masked array. numpy would drop the mask and use the hidden values."""
    parts = given if isinstance(given, list | tuple) else [given]
    return any(isinstance(part, np.ma.MaskedArray) for part in parts)


def _read(given: Any) -> NDArray[Any]:
    if has_mask(given):
        raise _UnreadableError("a masked array")
    try:
        # As objects: numpy would round large integers in a list to floats, and turn True and False into numbers.
        array = np.asarray(given) if hasattr(given, "__array__") else np.asarray(given, dtype=object)
    except (TypeError, ValueError, OverflowError):
        raise _UnreadableError("another kind of value") from None
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
        raise _UnreadableError("an entry that is NaN or infinite")
    return floats


def _exact(entry: Any) -> Fraction:
    if isinstance(entry, bool | np.bool_) or not isinstance(entry, Real | Decimal):
        raise _UnreadableError(f"an entry of type {type(entry).__name__}")
    exact = _exact_if_finite(entry)
    if exact is None:
        raise _UnreadableError("an entry that is NaN, infinite or beyond 1000 digits")
    return exact


def _exact_if_finite(entry: Real | Decimal) -> Fraction | None:
    try:
        if isinstance(entry, Rational):
            return Fraction(int(entry.numerator), int(entry.denominator))
        if isinstance(entry, Decimal):
            return check_fraction("scores", entry)
        return Fraction(*entry.as_integer_ratio())  # type: ignore[attr-defined]  # floats of every size have it
    except (ValueError, OverflowError):  # NaN or infinity. Not chained: the error's text or context may show the score.
        return None


def read_sensitivity(given: Any) -> Fraction:
    """Return a positive number. A float counts as its binary value or its decimal text, whichever is larger: the safe side."""
    exact = check_fraction("sensitivity", given)
    number = given[()] if isinstance(given, np.ndarray) else given
    if isinstance(number, float | np.floating):  # including long double, which could be smaller as a float
        exact = max(exact, Fraction(*number.as_integer_ratio()))
    if exact <= 0:
        raise ParameterError(f"`sensitivity` must be in (0, inf), got {format_value(given)}")
    return exact


def _as_float(unit: Fraction) -> float:
    try:
        return float(unit)
    except OverflowError:
        return np.inf
