"""What a ridge may be, for rows that are scaled to norm 1."""

from __future__ import annotations

from typing import Any

from privselect._util.validation import Range, check_number
from privselect.integrations.sklearn.regressors.base import PrivateRegressor

ANY = Range(0.0, 1e9, high_open=False)
_LEAST = 1e-6
_OF_RECORDS = 1e-9


def solvable(ridge: Any, records: int) -> float:
    """One for which the equations are solved by floats, whatever the records: an error that depends on them would tell of them.

    The greatest eigenvalue of X'X is at most the number of records, so the condition is at most 1e9.
    """
    return check_number("ridge", ridge, Range(max(_LEAST, _OF_RECORDS * records), ANY.high, high_open=False))


class RidgeRegressor(PrivateRegressor):
    """One with a ridge."""

    def __init__(  # noqa: PLR0913 - parameters of an estimator
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        ridge: Any = 100.0,
        row_bound: float = 1.0,
        target_bound: float = 1.0,
        beyond: str = "count",
        records: int | None = None,
        fit_intercept: bool = False,
        centre: Any = None,
        insecure_seed: Any = None,
    ) -> None:
        super().__init__(
            epsilon=epsilon,
            delta=delta,
            row_bound=row_bound,
            target_bound=target_bound,
            beyond=beyond,
            records=records,
            fit_intercept=fit_intercept,
            centre=centre,
            insecure_seed=insecure_seed,
        )
        self.ridge = ridge
