"""What the private linear regressions share: bounds, centre, counting, and the account of one fit."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from privselect._util.validation import OPEN_UNIT, Range, as_float_array, check_bool, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.integrations.sklearn.budget_split import Parts, parts_for
from privselect.mechanisms import Mechanism, Pure
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.clipping import BOUND_RANGE, RecordBounds, subtract_centre, noisy_centre, noisy_clipped_count, clip_records
from privselect.regression.noise_source import FLOATING_POINT_NOTE, INSECURE_SEED_NOTE, make_noise_source
from privselect.regression.sufficient_statistics import SufficientStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.clipping import Centre, ClippedRecords
    from privselect.regression.methods import RegressionMethod
    from privselect.regression.noise_source import NoiseSource

    Floats = NDArray[np.float64]

NOTHING = Pure(epsilon=0.0, neighbours=ADD_REMOVE)  # what a fit that looks at no record leaks
_FAR = 3.0  # deviations of a count that are no accident
_REFUSED = "rows must be no longer than row_bound={row:g} and targets within target_bound={target:g} of 0{where}, got a record that is not"


class PrivateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression in private: what all of its ways share.

    ``epsilon`` and ``delta`` are those of one fit, for a record more or less. A record is divided by ``row_bound`` and ``target_bound``; a
    longer row is shortened to its bound, and so is a target: bounds are public numbers that no record may have a say in. With
    ``beyond="count"`` the number of such records is released as ``clipped_``, with noise that takes 1 % of the budget, and where it is
    more than noise a ClippingWarning says so; with ``beyond="refuse"`` one such record is an error, which itself tells that there is
    one. ``records`` is a public upper limit on the number of records, and more are refused; None takes that of the data to be public.

    ``fit_intercept`` needs a ``centre``: "private" (the same as None) takes 10 % of the budget for noisy means of rows and targets within
    the bounds; a pair ``(row, target)`` is declared to be public. The records are taken from the centre first and shortened then.

    ``insecure_seed`` is for tests: a whole number or a RandomState, with which the noise is known. None is the operating system's entropy.

    ``mechanism`` is what one fit leaks. After ``fit``: ``coef_``, ``intercept_``, ``answered_`` (False: "no answer", the coefficients are
    zeros, and a NoAnswerWarning says why), ``clipped_`` (None where nothing was counted), ``facts_`` (what was released on the way), and
    ``mechanism_``.
    """

    noted: ClassVar[frozenset[str]] = frozenset({"row_bound", "target_bound", "beyond", "records", "fit_intercept", "centre"})  # by `notes`

    def __init__(  # noqa: PLR0913 - parameters of an estimator
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        row_bound: float = 1.0,
        target_bound: float = 1.0,
        beyond: str = "count",
        records: int | None = None,
        fit_intercept: bool = False,
        centre: Any = None,
        insecure_seed: Any = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.row_bound = row_bound
        self.target_bound = target_bound
        self.beyond = beyond
        self.records = records
        self.fit_intercept = fit_intercept
        self.centre = centre
        self.insecure_seed = insecure_seed

    def __init_subclass__(cls, **options: Any) -> None:
        """What all share is told by each."""
        super().__init_subclass__(**options)
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{inspect.cleandoc(PrivateRegressor.__doc__ or '')}"

    def __sklearn_tags__(self) -> Any:
        """With the noise of an ordinary epsilon, few records give a poor score, and without a seed no two fits agree."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.insecure_seed is None
        return tags

    @staticmethod
    @abstractmethod
    def _leak(parts: Parts, delta: float) -> Mechanism:
        """What a fit leaks that has these parts."""

    @abstractmethod
    def _recipe(self, parts: Parts, records: int, features: int) -> RegressionMethod:
        """From sums over records to coefficients."""

    @property
    def mechanism(self) -> Mechanism:
        """What one fit leaks; it depends on the parameters alone."""
        parts = self._parts()
        return NOTHING if parts is None else self._leak(parts, settings_of(self).delta)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a certificate must say of it."""
        return told(settings_of(self))

    def fit(self, X: Any, y: Any) -> PrivateRegressor:  # noqa: N803 - scikit-learn's name
        """One private answer from these records; every attribute that it sets is covered by ``mechanism_``."""
        # What numpy says of an overflow or an underflow on the way, or makes an error where it was told to, tells of a record.
        with np.errstate(all="ignore"):
            settings, parts = settings_of(self), self._parts()
            rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            targets = _as_floats(targets)
            number, features = settings.records_for(len(rows)), rows.shape[1]
            centre = settings.public_centre(features)
            if parts is None:
                self.clipped_: int | None = None
                return self._keep(
                    None, centre, {}, f"nothing can be released within epsilon={settings.epsilon:g}, delta={settings.delta:g}"
                )
            recipe, normals = self._recipe(parts, number, features), make_noise_source(self.insecure_seed)
            records, centre = _prepared(rows, targets, settings, (parts, number, normals))
            self.clipped_ = noisy_clipped_count(records.clipped, parts.count, normals) if settings.counted else None
            if settings.counted:
                self._warn_of_clipping(settings, 1.0 / parts.count)
            answer = recipe.run(SufficientStatistics.from_records(records.rows, records.targets, number), normals)
            scale = settings.bounds.target / settings.bounds.row
            coefficients = None if answer.coefficients is None else answer.coefficients * scale
            return self._keep(coefficients, centre, dict(answer.facts), self._no_answer())

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """A number for each record, which depends on that record and on what was released alone."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        # Row by row, and each in the same order: a product of matrices, or a sum over columns that lie apart, may round one record's answer
        # by which others are there.
        return np.asarray(np.sum(rows * self.coef_, axis=1) + self.intercept_)

    def _parts(self) -> Parts | None:
        settings = settings_of(self)
        return parts_for(self._leak, (settings.epsilon, settings.delta), counted=settings.counted, centred=settings.private)

    def _no_answer(self) -> str:
        return "no answer is known to be private enough"

    def _keep(self, coefficients: Floats | None, centre: Centre, facts: dict[str, float], reason: str) -> PrivateRegressor:
        self.mechanism_ = self.mechanism  # beside what it covers: a fit that is refused leaves that of the fit before
        self.answered_ = coefficients is not None
        self.coef_ = np.zeros(self.n_features_in_) if coefficients is None else coefficients
        self.intercept_ = float(centre[1] - np.sum(centre[0] * self.coef_))
        self.facts_ = facts
        if coefficients is None:
            warnings.warn(f"no answer: {reason}; the coefficients are zeros", NoAnswerWarning, stacklevel=3)
        return self

    def _warn_of_clipping(self, settings: Settings, sigma: float) -> None:
        if self.clipped_ is not None and self.clipped_ > _FAR * sigma:
            warnings.warn(
                f"about {self.clipped_} records (noise {sigma:.3g}) were beyond row_bound={settings.bounds.row:g} or "
                f"target_bound={settings.bounds.target:g} and were shortened",
                ClippingWarning,
                stacklevel=3,
            )


def _as_floats(targets: Any) -> Floats:
    """Targets as rows are: a sum of shorter floats is rounded to far more than one record may move it by."""
    found = targets.astype(np.float64) if targets.dtype.kind in "biuf" else np.array(np.nan)
    if not np.isfinite(found).all():
        raise ParameterError(f"`y` must be finite numbers that are floats of 64 bits, got {targets.dtype} that are not")
    return np.asarray(found)


def _prepared(rows: Floats, targets: Floats, settings: Settings, given: tuple[Parts, int, NoiseSource]) -> tuple[ClippedRecords, Centre]:
    """The records less their centre, within the bounds; with a private centre those count too that were shortened to find it."""
    parts, number, normals = given
    centre = settings.public_centre(rows.shape[1])
    before = None
    if settings.private:
        first = clip_records(rows, targets, settings.bounds)
        _refuse_beyond(first, settings, "")
        centre, before = noisy_centre(first, settings.bounds, number, parts.centre, normals), first.clipped
    records = clip_records(*subtract_centre(rows, targets, centre), settings.bounds)
    _refuse_beyond(records, settings, " after centring" if settings.fit_intercept else "")
    if before is not None:
        records.clipped[:] |= before
    return records, centre


def _refuse_beyond(records: ClippedRecords, settings: Settings, where: str) -> None:
    if not settings.counted and records.clipped.any():
        raise ParameterError(_REFUSED.format(row=settings.bounds.row, target=settings.bounds.target, where=where))


PRIVATE, COUNT, REFUSE = "private", "count", "refuse"
EPSILONS = Range(0.0, 100.0, low_open=True, high_open=False)
_RECORDS = integer_range(1, 10**15)
_CENTRES = Range(-BOUND_RANGE.high, BOUND_RANGE.high, high_open=False)

SHORTENED = (
    "rows longer than {row:g} and targets beyond {target:g} are shortened to these bounds, which no record may have a say in; how many "
    "records that are is released with noise, within the mechanism"
)
REFUSED = (
    "rows longer than {row:g} and targets beyond {target:g}, bounds which no record may have a say in, are refused: that a fit ends tells "
    "that there is none"
)
OWN_RECORDS = "the number of records, which the noise depends on, is taken from the data, and so is declared to be public"
GIVEN_RECORDS = "that there are no more than {records} records is declared to be public, and more are refused"
PUBLIC_CENTRE = "the centre that rows and targets are taken from is declared to be public"


@dataclass(frozen=True)
class Settings:
    """What was given, checked. ``private`` is a private centre, ``counted`` that records beyond the bounds are counted."""

    epsilon: float
    delta: float
    bounds: RecordBounds
    records: int | None
    fit_intercept: bool
    private: bool
    counted: bool
    centre: Any
    seeded: bool

    def records_for(self, rows: int) -> int:
        """The public number of records."""
        if self.records is not None and rows > self.records:
            raise ParameterError(f"`records` must be at least the number of rows, got {self.records} for more rows than that")
        return rows if self.records is None else self.records

    def public_centre(self, features: int) -> Centre:
        """The one that was declared, zeros without one."""
        if self.centre is None:
            return np.zeros(features), 0.0
        row = as_float_array("centre", self.centre[0], "numbers")
        if row.ndim > 1 or row.size not in {1, features}:
            raise ParameterError(f"`centre` must have one number, or one for each of {features} columns, for the rows, got {row.size}")
        return np.broadcast_to(row, (features,)), float(self.centre[1])


def settings_of(regressor: Any) -> Settings:
    """Of its parameters; each that is wrong is told in one sentence."""
    if regressor.beyond not in (COUNT, REFUSE):
        raise ParameterError(f"`beyond` must be {COUNT!r} or {REFUSE!r}, got {format_value(regressor.beyond)}")
    fit_intercept = check_bool("fit_intercept", regressor.fit_intercept)
    make_noise_source(regressor.insecure_seed)  # refuses what is no seed
    return Settings(
        epsilon=check_number("epsilon", regressor.epsilon, EPSILONS),
        delta=check_number("delta", regressor.delta, OPEN_UNIT),
        bounds=RecordBounds(regressor.row_bound, regressor.target_bound),
        records=None if regressor.records is None else int(check_number("records", regressor.records, _RECORDS)),
        fit_intercept=fit_intercept,
        private=fit_intercept and _is_private(regressor.centre),
        counted=regressor.beyond == COUNT,
        centre=_public_centre(regressor.centre, fit_intercept=fit_intercept),
        seeded=regressor.insecure_seed is not None,
    )


def told(settings: Settings) -> tuple[str, ...]:
    """Lines for the certificate."""
    bounds = {"row": settings.bounds.row, "target": settings.bounds.target}
    return (
        FLOATING_POINT_NOTE,
        (SHORTENED if settings.counted else REFUSED).format(**bounds),
        OWN_RECORDS if settings.records is None else GIVEN_RECORDS.format(records=settings.records),
        *((PUBLIC_CENTRE,) if settings.centre is not None else ()),
        *((INSECURE_SEED_NOTE,) if settings.seeded else ()),
    )


def _is_private(centre: Any) -> bool:
    return centre is None or (isinstance(centre, str) and centre == PRIVATE)


def _public_centre(centre: Any, *, fit_intercept: bool) -> Any:
    """A pair of a row and a target, None where none is declared."""
    if not fit_intercept:
        if centre is not None:
            raise ParameterError(f"`centre` must be None where fit_intercept is False, got {_kind(centre)}")
        return None
    if _is_private(centre):
        return None
    if not isinstance(centre, tuple | list) or len(centre) != 2:
        raise ParameterError(f"`centre` must be None, {PRIVATE!r} or a pair (row, target) of public numbers, got {_kind(centre)}")
    row = as_float_array("centre", centre[0], "numbers")
    for number in row.ravel().tolist():
        check_number("centre", number, _CENTRES)
    return row, check_number("centre", centre[1], _CENTRES)


def _kind(centre: Any) -> str:
    return format_value(centre) if isinstance(centre, str) else f"a {type(centre).__name__}"


class ClippingWarning(UserWarning):
    """More records were beyond the bounds than the noise on their number explains: greater bounds may serve better."""


class NoAnswerWarning(UserWarning):
    """A fit ended in "no answer", which is an outcome like others, and covered like them; the coefficients are zeros."""
