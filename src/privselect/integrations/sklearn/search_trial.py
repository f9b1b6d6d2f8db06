"""The objective of a search: one fit of a clone of the estimator, and its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from privselect.integrations.diffprivlib import remove_uncovered_attributes
from privselect.integrations.sklearn.pipeline import final_estimator
from privselect.integrations.sklearn.sample_size import set_public_records
from privselect.integrations.sklearn.seeds import set_fresh_seeds
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.randomness import seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.sklearn.stages import StageEstimators
    from privselect.integrations.sklearn.validation import Columns, Validation
    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate


@plan_id("sklearn_trial")
@dataclass(frozen=True, repr=False)
class SearchTrial:
    """The objective of a search: fit one clone of the estimator with its own randomness, and score it unless it is the final one.

    ``mechanism_of`` and ``final_mechanism_of`` are what the estimator declares in each stage. ``mechanism_of`` is None if it declares
    nothing or if its declaration does not cover the whole trial. ``mechanism_claimed`` says whether only the user states what a fit leaks.
    ``search_records`` is the public number of records for a search trial; None lets the estimator count its records.
    """

    stages: StageEstimators
    validation: Validation
    runs: str  # identifies estimator and settings in the plan
    mechanism_claimed: bool
    mechanism_of: Callable[[Candidate], Mechanism] | None = None
    final_mechanism_of: Callable[[Candidate], Mechanism] | None = None
    notes: tuple[str, ...] = ()
    search_records: int | None = None
    may_violate_plan: ClassVar[bool] = True  # if torch is first imported inside a trial

    def __call__(self, candidate: Candidate, data: Columns, randomness: Randomness, stage: str = "search") -> tuple[float | None, Any]:
        """Return the score, None if a hold-out gives it or if none is needed, and the fitted estimator."""
        is_final = stage == "final"
        estimator = clone(self.stages.final if is_final else self.stages.trial).set_params(**candidate)
        if not is_final:
            set_public_records(estimator, self.search_records)
        set_fresh_seeds(estimator, randomness)
        columns = {name: _read_only(column) for name, column in data.items()}
        targets = (columns["y"],) if "y" in columns else ()
        weights = {"sample_weight": columns["weights"]} if "weights" in columns else {}
        with seeded_globals(randomness):
            estimator.fit(columns["X"], *targets, **weights)
            scorer, public = self.validation.scorer, self.validation.records
            score = None
            if scorer is not None and not is_final:
                score = float(scorer(estimator, *((columns["X"], *targets) if public is None else public)))
        remove_uncovered_attributes(final_estimator(estimator))
        return score, estimator


def _read_only(column: Any) -> Any:
    """Return a view that a trial cannot modify: the next trial uses the same array."""
    if not isinstance(column, np.ndarray):
        return column
    view = column.view()
    view.flags.writeable = False
    return view
