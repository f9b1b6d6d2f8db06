"""Convert the parameters of a search to the arguments of ``tune``, and define its trial."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.integrations.diffprivlib import remove_uncovered_attributes
from privselect.integrations.sklearn.distributions import read_space
from privselect.integrations.sklearn.input_checks import check_validation_records
from privselect.integrations.sklearn.pipeline import check_inner_steps, check_outer_steps, final_estimator, final_prefix, read_covered
from privselect.integrations.sklearn.seeds import dump_estimator, get_seeds, set_fresh_seeds, smallest_seed_bits
from privselect.integrations.sklearn.trial_mechanism import (
    declared_mechanism,
    declared_notes,
    mechanism_arguments,
    plan_name,
    refuse_non_private,
)
from privselect.integrations.sklearn.validation import HoldOut, read_validation
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.randomness import seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.sklearn.input_checks import CheckedRecords
    from privselect.integrations.sklearn.validation import Columns, Validation
    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate

ATTRIBUTES_NOTE = "the user declares that the mechanism covers every fitted attribute of the released estimator"
FORM_NOTE = "the form of the records, such as finite numbers and at least two labels, is declared public"
BEFORE_NOTE = "processing of the data before the search is not covered"
LABELS_NOTE = "the set of labels is read from the data and declared public"
STATELESS_NOTE = "the user declares, without a check, that stateless steps treat each record by itself"
COVERED_NOTE = "step {name!r} learns from the data; the user declares, without a check, that the mechanism covers it"
OUTER_NOTE = "step {name!r} before the search learns from the data once, outside the trials: its privacy cost is not in this certificate"
WEIGHTS_NOTE = "records have weights; the user declares that the mechanism holds for these weights"

_SEEDS = integer_range(0, 2**256 - 1)
_RESERVED_OPTIONS = {"insecure_seed", "seed_bits", "executor", "workers", "export", "fallback"}


@plan_id("sklearn_trial")
@dataclass(frozen=True, repr=False)
class SearchTrial:
    """The objective of a search: fit and score one clone of the estimator with its own randomness.

    ``mechanism_of`` is what the estimator declares, None if it declares nothing or if its declaration does not cover the whole trial.
    """

    estimator: Any
    validation: Validation
    runs: str  # identifies estimator and settings in the plan
    mechanism_of: Callable[[Candidate], Mechanism] | None = None
    notes: tuple[str, ...] = ()
    may_violate_plan: ClassVar[bool] = True  # if torch is first imported inside a trial

    def __call__(self, candidate: Candidate, data: Columns, randomness: Randomness) -> tuple[float | None, Any]:
        """Return the score, None if a hold-out gives it, and the fitted estimator."""
        estimator = clone(self.estimator).set_params(**candidate)
        set_fresh_seeds(estimator, randomness)
        columns = {name: _read_only(column) for name, column in data.items()}
        targets = (columns["y"],) if "y" in columns else ()
        weights = {"sample_weight": columns["weights"]} if "weights" in columns else {}
        with seeded_globals(randomness):
            estimator.fit(columns["X"], *targets, **weights)
            scorer, public = self.validation.scorer, self.validation.records
            score = None if scorer is None else float(scorer(estimator, *((columns["X"], *targets) if public is None else public)))
        remove_uncovered_attributes(final_estimator(estimator))
        return score, estimator


def _read_only(column: Any) -> Any:
    """Return a view that a trial cannot modify: the next trial uses the same array."""
    if not isinstance(column, np.ndarray):
        return column
    view = column.view()
    view.flags.writeable = False
    return view


def tune_arguments(search: Any, records: CheckedRecords) -> dict[str, Any]:
    """Return the arguments of ``tune`` except the data; invalid parameters raise before anything is drawn."""
    estimator = _checked_clone(search, records)
    space = read_space(search.param_distributions, estimator)
    validation = read_validation(search.validation, search.scoring, estimator, functools.partial(check_validation_records, search))
    _check_labels_known(validation.records, records.classes)
    covered = read_covered(search.covered)
    inner, outer = check_inner_steps(estimator, covered), check_outer_steps(search, covered)
    # The last step declares its own fit alone, so its declaration does not cover steps that learn before it.
    declared = None if inner else declared_mechanism(estimator)
    if search.mechanism is None and inner:
        raise ParameterError("`mechanism` is required if steps are covered: pass mechanism=... to state what one fit of the pipeline leaks")
    if search.mechanism is None and declared is None:
        refuse_non_private(estimator)
    mechanisms = mechanism_arguments(search, declared, validation, space)
    held = search.validation
    split = [held.fraction if held.fraction is None else str(held.fraction), held.ids is None] if isinstance(held, HoldOut) else held
    name = plan_name(estimator, scoring=search.scoring, validation=split, weighted=records.weights is not None)
    steps = (*(COVERED_NOTE.format(name=step) for step in inner), *(OUTER_NOTE.format(name=step) for step in outer))
    notes = (*_notes(search, estimator, records), *steps, *validation.notes)
    trial = SearchTrial(estimator, validation, name, mechanisms.declared, notes)
    return {
        "objective": trial,
        "space": space,
        "mechanism": mechanisms.mechanism,
        "mechanism_of": mechanisms.mechanism_of,
        "count": search.count,
        "score": validation.score,
        "delta": search.delta,
        "epsilon": search.epsilon,
        "fallback": None,
        "export": dump_estimator,
        "declared": search.declared,
        "insecure_seed": None if search.random_state is None else int(check_number("random_state", search.random_state, _SEEDS)),
        "seed_bits": smallest_seed_bits(estimator),
        "ledger": search.ledger,
        "again": search.again,
        "out": search.out,
        **_executor(search.n_jobs),
        **_options(search),
    }


def _options(search: Any) -> dict[str, Any]:
    if not isinstance(search.options, Mapping | None):
        raise ParameterError(f"`options` must be None or a dict, got {format_value(search.options)}")
    options = dict(search.options or {})
    for name in options:
        if name in search.get_params(deep=False) or name in _RESERVED_OPTIONS:
            raise ParameterError(
                f"`options` must hold options of tune that the search has no parameter for, such as timeout, got {format_value(name)}"
            )
    return options


def _checked_clone(search: Any, records: CheckedRecords) -> Any:
    """Return a clone of the estimator with the public labels; refuse an estimator that would reveal losing trials."""
    estimator = clone(search.estimator)
    parameters = estimator.get_params(deep=True)
    for name, value in parameters.items():
        if name.rpartition("__")[2] == "memory" and value is not None:
            raise ParameterError(f"`{name}` must be None: a cache on disk would keep results of losing trials")
    for part in (search.estimator, *parameters.values()):
        if getattr(part, "_skl_callbacks", None):
            raise ParameterError(f"callbacks must not be set on {type(part).__name__}: they would observe every trial")
    get_seeds(estimator)
    dump_estimator(estimator)  # raises now if it cannot be pickled; inside a trial the error would be hidden
    takes_classes = "classes" in final_estimator(estimator).get_params(deep=False)
    if search.classes is not None and not takes_classes:
        raise ParameterError(f"`classes` must be None: {type(final_estimator(estimator)).__name__} has no parameter `classes`")
    if not takes_classes or records.classes is None:
        return estimator
    return estimator.set_params(**{f"{final_prefix(estimator)}classes": records.classes})


def _check_labels_known(public: tuple[Any, Any] | None, classes: Any) -> None:
    """Refuse public labels that are not classes: every candidate would score 0, or every trial would fail silently."""
    if public is not None and classes is not None and public[1] is not None and not np.isin(public[1], classes).any():
        raise ParameterError("`validation` must have labels that also occur in the records, got none of them")


def _notes(search: Any, estimator: Any, records: CheckedRecords) -> tuple[str, ...]:
    own_classes = getattr(final_estimator(search.estimator), "classes", None)
    applies = {
        ATTRIBUTES_NOTE: True,
        FORM_NOTE: True,
        BEFORE_NOTE: True,
        LABELS_NOTE: records.classes is not None and search.classes is None and own_classes is None,
        STATELESS_NOTE: isinstance(estimator, Pipeline | ColumnTransformer | FeatureUnion),
        WEIGHTS_NOTE: records.weights is not None,
    }
    return (*(note for note, holds in applies.items() if holds), *declared_notes(estimator, search.param_distributions))


def _executor(n_jobs: Any) -> dict[str, Any]:
    if n_jobs is None or n_jobs == 1:
        return {"executor": "serial", "workers": None}
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"`n_jobs` must be None, a number of processes, or -1 for all cores, got {format_value(n_jobs)}")
    return {"executor": "processes", "workers": joblib.effective_n_jobs(n_jobs)}
