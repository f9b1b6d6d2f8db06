"""One trial of a search: a clone of the estimator, fitted with randomness of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import clone

from privselect.integrations.sklearn.declared_mechanism import strip
from privselect.integrations.sklearn.seeds import seed
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.randomness.global_rngs import seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.sklearn.validation import Columns, Validation
    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness.trial_randomness import Randomness
    from privselect.tuning.space import Candidate


@plan_id("sklearn_trial")
@dataclass(frozen=True, repr=False)
class Trial:
    """The objective of a search. ``mechanism_of`` is what the estimator says of itself, None where that is nothing, or not the whole."""

    estimator: Any
    validation: Validation
    runs: str  # the whole description in a name: two searches of different estimators are two plans
    mechanism_of: Callable[[Candidate], Mechanism] | None = None
    notes: tuple[str, ...] = ()
    may_breach: ClassVar[bool] = True  # where torch is first loaded inside a trial

    def __call__(self, candidate: Candidate, data: Columns, randomness: Randomness) -> tuple[float | None, Any]:
        """The score, unless the hold-out gives it, and the fitted estimator."""
        estimator = clone(self.estimator).set_params(**candidate)
        seed(estimator, randomness)
        columns = {name: _untouchable(column) for name, column in data.items()}
        targets = (columns["y"],) if "y" in columns else ()
        weights = {"sample_weight": columns["weights"]} if "weights" in columns else {}
        with seeded_globals(randomness):
            estimator.fit(columns["X"], *targets, **weights)
            scorer, public = self.validation.scorer, self.validation.records
            score = None if scorer is None else float(scorer(estimator, *((columns["X"], *targets) if public is None else public)))
        strip(estimator)
        return score, estimator


def _untouchable(column: Any) -> Any:
    """One trial must not change what the next one sees."""
    if not isinstance(column, np.ndarray):
        return column
    view = column.view()
    view.flags.writeable = False
    return view
