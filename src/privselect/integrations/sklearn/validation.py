"""Read the ``validation`` of a search: which records score the candidates, and how the score is private."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.metrics import check_scoring, get_scorer_names

from privselect._util.validation import format_value
from privselect.certificates.model import COVERED_SCORE, PUBLIC_SCORE
from privselect.errors import ParameterError
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.scores import NoisyCount

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Columns = Mapping[str, Any]  # X, and y, weights and ids if they are given

_CHOICES = (
    "`validation` must be (X, y) of public records, HoldOut(X=..., y=...) or HoldOut(fraction=...) for private records that are counted "
    "with noise, or 'covered' if `mechanism` also covers a score on the training data"
)
_DEFAULT_FRACTION = Fraction(1, 5)
_CORRECT = "a function correct(estimator, X, y) that returns one bool per record"
_COUNTED_SCORING = f"`scoring` must be None, 'accuracy' or {_CORRECT} if `validation` is a HoldOut"
PREDICTION_NOTE = (
    "the user declares, without a check, that the prediction for a held-out record depends only on that record and the released estimator"
)
SEPARATE_NOTE = "the user declares, without a check, that no training record is in the separate hold-out"


@dataclass(frozen=True, repr=False, eq=False)
class HoldOut:
    """Private records that no trial trains on; the score is the number of correct predictions plus discrete Gaussian noise.

    They are either separate records (``X`` and ``y``) or a ``fraction`` of the training records, split off by a keyed hash of each record's
    id. ``ids`` holds one id for each training record. By default the id is the content of the record, its row and label.
    ``sigma`` is the noise of the count. None computes it from the budget of the search.
    """

    X: Any = None
    y: Any = None
    sigma: float | None = None
    fraction: Any = None
    ids: Any = None

    def __repr__(self) -> str:
        return f"HoldOut(sigma={format_value(self.sigma)})"  # never the records

    def without_records(self) -> HoldOut:
        """Return a copy without private records and ids."""
        return HoldOut(sigma=self.sigma, fraction=self.fraction)

    def check(self) -> None:
        """Check that the records are either separate or split off."""
        separate = self.X is not None and self.y is not None
        if separate == (self.fraction is not None) or (not separate and (self.X is not None or self.y is not None)):
            raise ParameterError("a HoldOut needs either both `X` and `y`, or `fraction`")
        if separate and self.ids is not None:
            raise ParameterError("`ids` of a HoldOut must be None if `X` and `y` are given: no record is split off")


def chosen_validation(search: Any) -> Any:
    """Return the validation of a search: by default, a classifier counts correct labels on a fifth of the records."""
    if search.validation is None and is_classifier(search.estimator):
        return HoldOut(fraction=_DEFAULT_FRACTION)
    return search.validation


@plan_id("sklearn_correct")
@dataclass(frozen=True, repr=False)
class CorrectPredictions:
    """Compute which records an estimator predicts correctly, by its own predictions or by the user's function."""

    function: Callable[[Any, Any, Any], Any] | None = None

    def __call__(self, estimator: Any, records: Columns) -> Any:
        """Return one bool for each record."""
        if self.function is not None:
            return self.function(estimator, records["X"], records["y"])
        correct = np.asarray(estimator.predict(records["X"]) == np.asarray(records["y"]))
        return correct if correct.ndim < 2 else correct.all(axis=1)  # with several outputs, all must be correct


@dataclass(frozen=True, repr=False)
class Validation:
    """A checked validation: the score declaration for ``tune``, and the scorer if the trial computes the score."""

    score: str | NoisyCount
    scorer: Callable[..., Any] | None = None
    records: tuple[Any, Any] | None = None  # public ones
    notes: tuple[str, ...] = ()


def read_validation(given: Any, scoring: Any, estimator: Any, check_records: Callable[[Any, Any], Columns]) -> Validation:
    """Check ``validation`` and ``scoring``; ``check_records`` validates records by the form of the training data."""
    if isinstance(given, HoldOut):
        return _counted(given, scoring, estimator, check_records)
    if isinstance(scoring, list | tuple | set | dict):
        raise ParameterError(f"`scoring` must be one score, got several: one number decides which trial wins, not {format_value(scoring)}")
    if isinstance(given, str) and given == COVERED_SCORE:
        return Validation(COVERED_SCORE, check_scoring(estimator, scoring))
    if isinstance(given, tuple) and len(given) == 2:
        public = check_records(*given)
        return Validation(PUBLIC_SCORE, check_scoring(estimator, scoring), (public["X"], public.get("y")))
    # The message must not show records.
    kind = "none" if given is None else format_value(given) if isinstance(given, str) else f"a {type(given).__name__}"
    raise ParameterError(f"{_CHOICES}, got {kind}")


def _counted(given: HoldOut, scoring: Any, estimator: Any, check_records: Callable[[Any, Any], Columns]) -> Validation:
    given.check()
    if scoring is None or (isinstance(scoring, str) and scoring == "accuracy"):
        if not is_classifier(estimator):
            raise ParameterError(
                f"`scoring` must be {_CORRECT}, got {format_value(scoring)}: {type(estimator).__name__} is not a classifier, so a HoldOut "
                "cannot count correct labels"
            )
        correct = CorrectPredictions()
    elif isinstance(scoring, str) or not callable(scoring) or hasattr(scoring, "_score_func"):  # a scorer of scikit-learn
        raise ParameterError(f"{_COUNTED_SCORING}, got {format_value(scoring)}: one record must change the score by at most 1")
    else:
        correct = CorrectPredictions(scoring)
    if given.fraction is not None:
        split_off = NoisyCount(correct, given.sigma, fraction=given.fraction, ids="ids")
        return Validation(split_off, notes=(PREDICTION_NOTE,))
    separate = NoisyCount(correct, given.sigma, holdout=check_records(given.X, given.y))
    return Validation(separate, notes=(PREDICTION_NOTE, SEPARATE_NOTE))


def scorer_of(estimator: Any, scoring: Any) -> Callable[..., Any]:
    """Return the scorer of the search's ``score`` method: that of the trials, or the estimator's own if trials count on a hold-out."""
    named = isinstance(scoring, str) and scoring in get_scorer_names()
    scorer: Callable[..., Any] = check_scoring(estimator, scoring if named or hasattr(scoring, "_score_func") else None)
    return scorer


def record_ids(columns: Columns) -> list[bytes]:
    """Return an id of each record that depends only on its content, whatever type the other records give to a column."""
    parts = [_row_bytes(columns["X"])] + ([_row_bytes(columns["y"])] if "y" in columns else [])
    return [b"\x1e".join(record) for record in zip(*parts, strict=True)]


def _row_bytes(column: Any) -> list[bytes]:
    if hasattr(column, "tocsr"):
        rows = column.tocsr()
        return [_row_bytes(rows[index].toarray())[0] for index in range(rows.shape[0])]
    array = np.asarray(column)
    if array.dtype.kind in "biuf":
        floats = np.ascontiguousarray(array.reshape(len(array), -1), dtype=np.float64)
        return [row.tobytes() for row in floats]
    return [b"".join(_cell_bytes(cell) for cell in np.ravel(row).tolist()) for row in array]


def _cell_bytes(value: Any) -> bytes:
    """Encode numbers as floats: other records may decide whether a 1 is stored as an integer, a float or an object."""
    if value is None or isinstance(value, int | float):
        with contextlib.suppress(OverflowError):
            return np.float64(np.nan if value is None else value).tobytes()
    return repr(value).encode("utf-8", "surrogatepass")
