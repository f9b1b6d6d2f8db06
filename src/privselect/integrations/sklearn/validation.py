"""What the trials of a search are compared on, and how that is private."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
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

    Columns = Mapping[str, Any]  # X, y where there is one, weights and ids where they are given

_CHOICES = (
    "`validation` must say what candidates are compared on: (X, y) that are public, HoldOut(X=..., y=..., sigma=...) or "
    "HoldOut(fraction=..., sigma=...) for private records that are counted with noise, or 'covered' (you declare that the mechanism covers "
    "a score on the training data)"
)
_COUNTED = (
    "`scoring` must be None, 'accuracy' or a function correct(estimator, X, y) of one true or false for each record with a HoldOut, as one "
    "record must change the score by at most 1"
)
ALONE = "that the answer to a held-out record depends on that record and the released estimator alone is declared by the user, not checked"
APART = "that no record is both trained on and in the hold-out that was given apart is declared by the user, not checked"


@dataclass(frozen=True, repr=False, eq=False)
class HoldOut:
    """Private records that no trial is trained on; the score is how many of them are answered right, plus discrete Gaussian noise.

    They are given apart (``X`` and ``y``), or split off: a ``fraction`` of the records, by a keyed hash of each record's id. ``ids`` holds
    one id for each record that is fitted; without it the id is what the record itself holds, its row and its label.
    """

    X: Any = None
    y: Any = None
    sigma: float | None = None
    fraction: Any = None
    ids: Any = None

    def __repr__(self) -> str:
        return f"HoldOut(sigma={format_value(self.sigma)})"  # never the records

    def without_records(self) -> HoldOut:
        """All but what is private."""
        return HoldOut(sigma=self.sigma, fraction=self.fraction)

    def check(self) -> None:
        """Given apart, or split off, and not both."""
        apart = self.X is not None and self.y is not None
        if apart == (self.fraction is not None) or (not apart and (self.X is not None or self.y is not None)):
            raise ParameterError("a HoldOut needs both `X` and `y`, or else `fraction`, and not both ways")
        if apart and self.ids is not None:
            raise ParameterError("`ids` of a HoldOut must be None where it is given apart, as nothing is split off, got some")
        if self.sigma is None:
            raise ParameterError("`sigma` of a HoldOut must say how much noise its count has, got none")


@plan_id("sklearn_correct")
@dataclass(frozen=True, repr=False)
class Answers:
    """Which records an estimator gets right, by its own predictions or by the user's function."""

    function: Callable[[Any, Any, Any], Any] | None = None

    def __call__(self, estimator: Any, records: Columns) -> Any:
        """One true or false for each record."""
        if self.function is not None:
            return self.function(estimator, records["X"], records["y"])
        right = np.asarray(estimator.predict(records["X"]) == np.asarray(records["y"]))
        return right if right.ndim < 2 else right.all(axis=1)  # of several outputs all must be right


@dataclass(frozen=True, repr=False)
class Validation:
    """A validation that was checked: what ``tune`` is told of the score, and the scorer where the objective computes it."""

    score: str | NoisyCount
    scorer: Callable[..., Any] | None = None
    records: tuple[Any, Any] | None = None  # public ones
    notes: tuple[str, ...] = ()


def read_validation(given: Any, scoring: Any, estimator: Any, checked: Callable[[Any, Any], Columns]) -> Validation:
    """``checked`` validates records by the form that the training data has."""
    if isinstance(given, HoldOut):
        return _counted(given, scoring, estimator, checked)
    if isinstance(scoring, list | tuple | set | dict):
        raise ParameterError(f"`scoring` must be one score, as one number decides which trial wins, got several: {format_value(scoring)}")
    if isinstance(given, str) and given == COVERED_SCORE:
        return Validation(COVERED_SCORE, check_scoring(estimator, scoring))
    if isinstance(given, tuple) and len(given) == 2:
        public = checked(*given)
        return Validation(PUBLIC_SCORE, check_scoring(estimator, scoring), (public["X"], public.get("y")))
    raise ParameterError(f"{_CHOICES}; got {_without_content(given)}")


def _without_content(given: Any) -> str:
    """What was given, but for records."""
    return "none" if given is None else format_value(given) if isinstance(given, str) else f"a {type(given).__name__}"


def _counted(given: HoldOut, scoring: Any, estimator: Any, checked: Callable[[Any, Any], Columns]) -> Validation:
    given.check()
    if scoring is None or (isinstance(scoring, str) and scoring == "accuracy"):
        if not is_classifier(estimator):
            raise ParameterError(f"{_COUNTED}; {type(estimator).__name__} is no classifier, so a function is needed, got {format_value(scoring)}")
        answers = Answers()
    elif isinstance(scoring, str) or not callable(scoring) or hasattr(scoring, "_score_func"):  # a scorer of scikit-learn's
        raise ParameterError(f"{_COUNTED}, got {format_value(scoring)}")
    else:
        answers = Answers(scoring)
    if given.fraction is not None:
        return Validation(NoisyCount(answers, given.sigma, fraction=given.fraction, ids="ids"), notes=(ALONE,))  # type: ignore[arg-type]
    apart = NoisyCount(answers, given.sigma, holdout=checked(given.X, given.y))  # type: ignore[arg-type]
    return Validation(apart, notes=(ALONE, APART))


def scorer_of(estimator: Any, scoring: Any) -> Callable[..., Any]:
    """For the search's own ``score``: as for the trials, but on a hold-out's terms by the estimator's own."""
    named = isinstance(scoring, str) and scoring in get_scorer_names()
    scorer: Callable[..., Any] = check_scoring(estimator, scoring if named or hasattr(scoring, "_score_func") else None)
    return scorer


def record_ids(columns: Columns) -> list[bytes]:
    """An id of each record that depends on that record alone: what it holds, whatever type the others give to its column."""
    parts = [_cells(columns["X"])] + ([_cells(columns["y"])] if "y" in columns else [])
    return [b"\x1e".join(record) for record in zip(*parts, strict=True)]


def _cells(column: Any) -> list[bytes]:
    if hasattr(column, "tocsr"):
        rows = column.tocsr()
        return [_cells(rows[place].toarray())[0] for place in range(rows.shape[0])]
    array = np.asarray(column)
    if array.dtype.kind in "biuf":
        floats = np.ascontiguousarray(array.reshape(len(array), -1), dtype=np.float64)
        return [row.tobytes() for row in floats]
    return [b"".join(_cell(cell) for cell in np.ravel(row).tolist()) for row in array]


def _cell(value: Any) -> bytes:
    """Numbers as floats: whether a 1 is stored as a whole number, or a column as objects, may depend on the other records."""
    if value is None or isinstance(value, int | float):
        with contextlib.suppress(OverflowError):
            return np.float64(np.nan if value is None else value).tobytes()
    return repr(value).encode("utf-8", "surrogatepass")
