"""The parameters that every private regression has: checked, and told in the words of a certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import OPEN_UNIT, Range, as_float_array, check_number, check_bool, format_value, integer_range
from privselect.errors import ParameterError
from privselect.regression.clipping import SIZES, Bounds
from privselect.regression.gaussian_sampler import FLOATS, SEEDED, normals_from

if TYPE_CHECKING:
    from privselect.regression.clipping import Centre

PRIVATE, COUNT, REFUSE = "private", "count", "refuse"
EPSILONS = Range(0.0, 100.0, low_open=True, high_open=False)
_RECORDS = integer_range(1, 10**15)
_CENTRES = Range(-SIZES.high, SIZES.high, high_open=False)

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
    bounds: Bounds
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
    normals_from(regressor.insecure_seed)  # refuses what is no seed
    return Settings(
        epsilon=check_number("epsilon", regressor.epsilon, EPSILONS),
        delta=check_number("delta", regressor.delta, OPEN_UNIT),
        bounds=Bounds(regressor.row_bound, regressor.target_bound),
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
        FLOATS,
        (SHORTENED if settings.counted else REFUSED).format(**bounds),
        OWN_RECORDS if settings.records is None else GIVEN_RECORDS.format(records=settings.records),
        *((PUBLIC_CENTRE,) if settings.centre is not None else ()),
        *((SEEDED,) if settings.seeded else ()),
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
