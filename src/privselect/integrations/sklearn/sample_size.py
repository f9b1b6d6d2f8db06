"""Keep the size of a secret sample secret: the trials of a subsampled search do not count their records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect.integrations.sklearn.pipeline import final_estimator
from privselect.integrations.sklearn.regressor_base import PrivateRegressor
from privselect.integrations.sklearn.softmax import PrivateSoftmax
from privselect.tuning.scores import NoisyCount

if TYPE_CHECKING:
    from fractions import Fraction

SAMPLE_NOTE = (
    "search trials use the expected number of records in their sample, which follows from the number of all records and is declared public"
)
BOUND_NOTE = "search trials use the number of all records, which is declared public, as a bound on the number of records in their sample"
SIZE_NOTE = "the user declares, without a check, that a search trial does not use the number of records in its sample, which is secret"


def public_records(estimator: Any, rows: int, subsample: Fraction | None, score: Any) -> int | None:
    """Return the public number of records for the trials of a subsampled search; None if the estimator counts its records itself."""
    final = final_estimator(estimator)
    if subsample is None or not isinstance(final, PrivateSoftmax | PrivateRegressor):
        return None
    if isinstance(final, PrivateRegressor):
        return rows  # an upper bound, which always holds
    held_out = score.fraction if isinstance(score, NoisyCount) and score.fraction is not None else 0
    return max(1, round(rows * subsample * (1 - held_out)))


def set_public_records(estimator: Any, records: int | None) -> None:
    """Set the number of records of an estimator that would otherwise count them."""
    final = final_estimator(estimator)
    if records is not None and final.records is None:
        final.set_params(records=records)


def sample_notes(estimator: Any, subsample: Fraction | None) -> tuple[str, ...]:
    """Return the certificate's note on the size of the sample."""
    if subsample is None:
        return ()
    final = final_estimator(estimator)
    if isinstance(final, PrivateSoftmax | PrivateRegressor) and final.records is not None:
        return ()
    return (BOUND_NOTE if isinstance(final, PrivateRegressor) else SAMPLE_NOTE if isinstance(final, PrivateSoftmax) else SIZE_NOTE,)
