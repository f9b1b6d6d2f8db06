"""Common parts of the private linear regressors: parameters, clipping, centring and the accounting of one fit."""

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
from privselect.integrations.sklearn.budget_split import MuBudget, mechanism_within, split_budget
from privselect.mechanisms import Pure
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.clipping import BOUND_RANGE, RecordBounds, clip_records, noisy_centre, noisy_clipped_count, subtract_centre
from privselect.regression.noise_source import FLOATING_POINT_NOTE, INSECURE_SEED_NOTE, make_noise_source
from privselect.regression.sufficient_statistics import SufficientStatistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms import Mechanism
    from privselect.regression.clipping import Centre, ClippedRecords
    from privselect.regression.methods import RegressionMethod
    from privselect.regression.noise_source import NoiseSource

    Floats = NDArray[np.float64]

NO_LEAK = Pure(epsilon=0.0, neighbours=ADD_REMOVE)  # a fit that accesses no record
PRIVATE, COUNT, REFUSE = "private", "count", "refuse"
EPSILONS = Range(0.0, 100.0, low_open=True, high_open=False)
_RECORDS = integer_range(1, 10**15)
_CENTRES = Range(-BOUND_RANGE.high, BOUND_RANGE.high, high_open=False)
_SIGNIFICANT = 3.0  # standard deviations of the noise: a larger count triggers a warning

CLIPPED_NOTE = (
    "rows of norm above {row:g} and targets beyond {target:g} are clipped to these bounds, which must not depend on the data; the number "
    "of clipped records is released with noise, within the mechanism"
)
REFUSED_NOTE = (
    "rows of norm above {row:g} and targets beyond {target:g} are refused, and these bounds must not depend on the data; a fit that "
    "succeeds reveals that there are no such records"
)
OWN_RECORDS_NOTE = "the number of records, which the noise depends on, is read from the data and declared public"
GIVEN_RECORDS_NOTE = "that there are at most {records} records is declared public, and more are refused"
PUBLIC_CENTRE_NOTE = "the centre that is subtracted from rows and targets is declared public"


class ClippingWarning(UserWarning):
    """More records exceed the bounds than the noise of their count explains; larger bounds may give better results."""


class NoAnswerWarning(UserWarning):
    """A fit ended with "no answer", an outcome that the mechanism covers; the coefficients are zeros."""


@dataclass(frozen=True)
class RegressorSettings:
    """Checked parameters of a regressor."""

    epsilon: float
    delta: float
    bounds: RecordBounds
    records: int | None
    fit_intercept: bool
    private_centre: bool
    counts_clipped: bool
    centre: Any
    seeded: bool

    def records_for(self, rows: int) -> int:
        """Return the public number of records."""
        if self.records is not None and rows > self.records:
            # The message must not show the number of rows.
            raise ParameterError(f"`records` must be at least the number of rows, got {self.records} for more rows")
        return rows if self.records is None else self.records

    def public_centre(self, features: int) -> Centre:
        """Return the declared centre, zeros if there is none."""
        if self.centre is None:
            return np.zeros(features), 0.0
        row = as_float_array("centre", self.centre[0], "numbers")
        if row.ndim > 1 or row.size not in {1, features}:
            raise ParameterError(f"`centre` must have 1 or {features} numbers for the row, got {row.size}")
        return np.broadcast_to(row, (features,)), float(self.centre[1])

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate."""
        bounds = {"row": self.bounds.row, "target": self.bounds.target}
        return (
            FLOATING_POINT_NOTE,
            (CLIPPED_NOTE if self.counts_clipped else REFUSED_NOTE).format(**bounds),
            OWN_RECORDS_NOTE if self.records is None else GIVEN_RECORDS_NOTE.format(records=self.records),
            *((PUBLIC_CENTRE_NOTE,) if self.centre is not None else ()),
            *((INSECURE_SEED_NOTE,) if self.seeded else ()),
        )


def check_settings(regressor: PrivateRegressor) -> RegressorSettings:
    """Check the parameters that all regressors share."""
    if regressor.beyond not in (COUNT, REFUSE):
        raise ParameterError(f"`beyond` must be {COUNT!r} or {REFUSE!r}, got {format_value(regressor.beyond)}")
    if regressor.epsilon is None:
        raise ParameterError(f"`epsilon` must be {EPSILONS} to fit alone, got None: PrivateSearch computes it from a budget")
    fit_intercept = check_bool("fit_intercept", regressor.fit_intercept)
    make_noise_source(regressor.insecure_seed)  # raises if the seed is invalid
    return RegressorSettings(
        epsilon=check_number("epsilon", regressor.epsilon, EPSILONS),
        delta=check_number("delta", regressor.delta, OPEN_UNIT),
        bounds=RecordBounds(regressor.row_bound, regressor.target_bound),
        records=None if regressor.records is None else int(check_number("records", regressor.records, _RECORDS)),
        fit_intercept=fit_intercept,
        private_centre=fit_intercept and _is_private(regressor.centre),
        counts_clipped=regressor.beyond == COUNT,
        centre=_check_public_centre(regressor.centre, fit_intercept=fit_intercept),
        seeded=regressor.insecure_seed is not None,
    )


def _is_private(centre: Any) -> bool:
    return centre is None or (isinstance(centre, str) and centre == PRIVATE)


def _check_public_centre(centre: Any, *, fit_intercept: bool) -> Any:
    """Return the declared pair of row and target, None if none is declared."""
    kind = format_value(centre) if isinstance(centre, str) else f"a {type(centre).__name__}"
    if not fit_intercept:
        if centre is not None:
            raise ParameterError(f"`centre` must be None if fit_intercept is False, got {kind}")
        return None
    if _is_private(centre):
        return None
    if not isinstance(centre, tuple | list) or len(centre) != 2:
        raise ParameterError(f"`centre` must be None, {PRIVATE!r} or a pair (row, target) of public numbers, got {kind}")
    row = as_float_array("centre", centre[0], "numbers")
    for number in row.ravel().tolist():
        check_number("centre", number, _CENTRES)
    return row, check_number("centre", centre[1], _CENTRES)


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Private linear regression.

    Parameters of all private regressors:

    - ``epsilon``, ``delta``: the budget of one fit, for one record added or removed. If ``epsilon`` is None, a ``PrivateSearch`` computes
      both from its own budget.
    - ``row_bound``, ``target_bound``: public bounds on the norm of a row and the absolute value of a target. Records are clipped to
      them and divided by them. Bounds must not depend on the data.
    - ``beyond``: what happens to records beyond the bounds. "count" clips them and releases their number as ``clipped_``, with noise that
      takes 1% of the budget. The fit emits a ClippingWarning if the number exceeds what noise explains.
      "refuse" raises an error, which reveals that such a record exists.
    - ``records``: a public upper bound on the number of records; more are refused. None declares the number of records in the data public.
    - ``fit_intercept``: whether to fit an intercept, from centred records.
    - ``centre``: "private" (the same as None) spends 10% of the budget on noisy means of rows and targets within the bounds. A pair
      ``(row, target)`` is declared public. Records are centred first and clipped then.
    - ``insecure_seed``: an integer or a RandomState that makes the noise known, for tests. None uses the operating system's entropy.

    ``mechanism`` is what one fit leaks. After ``fit``:

    - ``coef_``, ``intercept_``: the released model.
    - ``answered_``: False means "no answer": the coefficients are zeros, and a NoAnswerWarning states the reason.
    - ``clipped_``: the noisy number of clipped records, None if they are not counted.
    - ``facts_``: further released numbers.
    - ``mechanism_``: the mechanism that covers all of these.
    """

    noise_parameter: ClassVar[str] = "epsilon"
    noted: ClassVar[frozenset[str]] = frozenset({"row_bound", "target_bound", "beyond", "records", "fit_intercept", "centre"})  # in `notes`

    epsilon: float | None = 1.0
    delta: float = 1e-6
    row_bound: float = 1.0
    target_bound: float = 1.0
    beyond: str = COUNT
    records: int | None = None
    fit_intercept: bool = False
    centre: Any = None
    insecure_seed: Any = None

    def __init_subclass__(cls, **options: Any) -> None:
        """Append the documentation of the shared parameters to that of the subclass."""
        super().__init_subclass__(**options)
        cls.__doc__ = f"{inspect.cleandoc(cls.__doc__ or '')}\n\n{inspect.cleandoc(PrivateRegressor.__doc__ or '')}"

    def __sklearn_tags__(self) -> Any:
        """Return tags that announce poor scores on few records, because of the noise, and different fits without a seed."""
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        tags.non_deterministic = self.insecure_seed is None
        return tags

    @staticmethod
    @abstractmethod
    def _make_method(budget: MuBudget, delta: float, ridge: float, records: int) -> RegressionMethod:
        """Return the method that computes coefficients from sufficient statistics."""

    @abstractmethod
    def _checked_ridge(self, records: int, features: int) -> float:
        """Return the ridge of a fit."""

    @property
    def mechanism(self) -> Mechanism:
        """What one fit leaks; it depends on the parameters alone."""
        budget = self._budget()
        return NO_LEAK if budget is None else mechanism_within(self._make_method, budget, check_settings(self).delta)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate."""
        return check_settings(self).notes

    def fit(self, X: Any, y: Any) -> PrivateRegressor:  # noqa: N803 - scikit-learn's name
        """Fit privately to these records; ``mechanism_`` covers every fitted attribute."""
        # Numpy's warnings about overflow or underflow, or its errors if so configured, would reveal something about a record.
        with np.errstate(all="ignore"):
            settings, budget = check_settings(self), self._budget()
            rows, targets = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            targets = _as_float64(targets)
            number, features = settings.records_for(len(rows)), rows.shape[1]
            centre = settings.public_centre(features)
            if budget is None:
                self.clipped_: int | None = None
                reason = f"nothing can be released within epsilon={settings.epsilon:g}, delta={settings.delta:g}"
                return self._keep(None, centre, {}, reason)
            method, source = self._method(budget, number, features), make_noise_source(self.insecure_seed)
            records, centre = _prepare_records(rows, targets, settings, (budget, number, source))
            self.clipped_ = noisy_clipped_count(records.clipped, budget.count, source) if settings.counts_clipped else None
            if settings.counts_clipped:
                self._warn_of_clipping(settings, 1.0 / budget.count)
            result = method.run(SufficientStatistics.from_records(records.rows, records.targets, number), source)
            scale = settings.bounds.target / settings.bounds.row
            coefficients = None if result.coefficients is None else result.coefficients * scale
            return self._keep(coefficients, centre, dict(result.facts), self._no_answer_reason())

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """Return one number per record, which depends only on that record and the released model."""
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        # Sum each row in the same order: a matrix product may round one prediction differently depending on the other records.
        return np.asarray(np.sum(rows * self.coef_, axis=1) + self.intercept_)

    def _method(self, budget: MuBudget, records: int, features: int) -> RegressionMethod:
        return self._make_method(budget, check_settings(self).delta, self._checked_ridge(records, features), records)

    def _budget(self) -> MuBudget | None:
        settings = check_settings(self)
        return split_budget(
            self._make_method, (settings.epsilon, settings.delta), counted=settings.counts_clipped, centred=settings.private_centre
        )

    def _no_answer_reason(self) -> str:
        return "no result is known to be private enough"

    def _keep(self, coefficients: Floats | None, centre: Centre, facts: dict[str, float], reason: str) -> PrivateRegressor:
        self.mechanism_ = self.mechanism  # set together with the model: a refused fit keeps both of the previous fit
        self.answered_ = coefficients is not None
        self.coef_ = np.zeros(self.n_features_in_) if coefficients is None else coefficients
        self.intercept_ = float(centre[1] - np.sum(centre[0] * self.coef_))
        self.facts_ = facts
        if coefficients is None:
            warnings.warn(f"no answer: {reason}; the coefficients are zeros", NoAnswerWarning, stacklevel=3)
        return self

    def _warn_of_clipping(self, settings: RegressorSettings, sigma: float) -> None:
        if self.clipped_ is not None and self.clipped_ > _SIGNIFICANT * sigma:
            warnings.warn(
                f"about {self.clipped_} records (noise {sigma:.3g}) were beyond row_bound={settings.bounds.row:g} or "
                f"target_bound={settings.bounds.target:g} and were clipped",
                ClippingWarning,
                stacklevel=3,
            )


def _as_float64(targets: Any) -> Floats:
    """Convert targets like rows: the rounding of a sum of shorter floats exceeds the effect of one record."""
    converted = targets.astype(np.float64) if targets.dtype.kind in "biuf" else np.array(np.nan)
    if not np.isfinite(converted).all():
        raise ParameterError(f"`y` must be finite numbers in the range of 64-bit floats, got {targets.dtype} that are not")
    return np.asarray(converted)


def _prepare_records(
    rows: Floats, targets: Floats, settings: RegressorSettings, release: tuple[MuBudget, int, NoiseSource]
) -> tuple[ClippedRecords, Centre]:
    """Centre and clip the records; the count of clipped records includes those clipped to find a private centre."""
    budget, number, source = release
    centre = settings.public_centre(rows.shape[1])
    clipped_before = None
    if settings.private_centre:
        first = clip_records(rows, targets, settings.bounds)
        _check_within_bounds(first, settings, "")
        centre, clipped_before = noisy_centre(first, settings.bounds, number, budget.centre, source), first.clipped
    records = clip_records(*subtract_centre(rows, targets, centre), settings.bounds)
    _check_within_bounds(records, settings, " after centring" if settings.fit_intercept else "")
    if clipped_before is not None:
        records.clipped[:] |= clipped_before
    return records, centre


def _check_within_bounds(records: ClippedRecords, settings: RegressorSettings, stage: str) -> None:
    if not settings.counts_clipped and records.clipped.any():
        raise ParameterError(
            f"rows must have norm at most row_bound={settings.bounds.row:g}, and targets absolute value at most "
            f"target_bound={settings.bounds.target:g}{stage}, got a record beyond them. Use larger bounds, or beyond={COUNT!r}"
        )
