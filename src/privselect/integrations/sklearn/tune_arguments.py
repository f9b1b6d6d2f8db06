"""From the parameters of a search to what ``tune`` is given."""

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
from privselect.integrations.sklearn import seeds
from privselect.integrations.sklearn.distributions import read_space
from privselect.integrations.sklearn.input_checks import read_held
from privselect.integrations.sklearn.pipeline import check_around, check_steps, private_part, read_covered
from privselect.integrations.sklearn.seeds import bits_of, seed, seeds_of
from privselect.integrations.sklearn.trial_mechanism import account, plan_name, strip, told_mechanism, told_notes
from privselect.integrations.sklearn.validation import HoldOut, read_validation
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.randomness import seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.sklearn.input_checks import Records
    from privselect.integrations.sklearn.validation import Columns, Validation
    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate


ATTRIBUTES = (
    "every fitted attribute of the released estimator leaves with it; that the mechanism covers all of them is declared by the user"
)
FORM = "that the records have a form that scikit-learn accepts, such as finite numbers and two labels, is taken to be public"
BEFORE = "what happened to the data before it reached the search is not covered"
LABELS = "the set of labels is taken from the data, and so is declared to be public"
STEPS = "that steps which learn nothing treat each record by itself is declared by the user, not checked"
COVERED = "the step {name!r} learns from the data; that the mechanism covers it is declared by the user, not checked"
AROUND = "the step {name!r} before the search learns from the data once, outside of the trials: what it leaks is not in this certificate"
WEIGHTS = "records have weights; that the mechanism holds for these weights is declared by the user"


def described_run(search: Any, records: Records) -> dict[str, Any]:
    """The arguments of ``tune`` but for the data; everything that can be wrong with them is told before anything is drawn."""
    estimator = _readied(search, records)
    space = read_space(search.param_distributions, estimator)
    validation = read_validation(search.validation, search.scoring, estimator, functools.partial(read_held, search))
    _check_labels_known(validation.records, records.classes)
    covered = read_covered(search.covered)
    inside, around = check_steps(estimator, covered), check_around(search, covered)
    # What the last step says of itself is not what a trial leaks where the steps before it learn as well.
    own = None if inside else told_mechanism(estimator)
    found = account(search, own, validation, space)
    held = search.validation
    name = plan_name(
        estimator,
        scoring=search.scoring,
        validation=[held.fraction if held.fraction is None else str(held.fraction), held.ids is None]
        if isinstance(held, HoldOut)
        else held,
        weighted=records.weights is not None,
    )
    steps = (*(COVERED.format(name=step) for step in inside), *(AROUND.format(name=step) for step in around))
    notes = (*_notes(search, estimator, records), *steps, *validation.notes)
    trial = Trial(estimator, validation, name, found.own, notes)
    told = {"mechanism": found.mechanism, "mechanism_of": found.mechanism_of}
    return {"objective": trial, "space": space, **told, **_conditions(search, trial)}


def _conditions(search: Any, trial: Trial) -> dict[str, Any]:
    if not isinstance(search.options, Mapping | None):
        raise ParameterError(f"`options` must be None or a dict, got {format_value(search.options)}")
    given = dict(search.options or {})
    for name in given:
        if name in search.get_params(deep=False) or name in {"insecure_seed", "seed_bits", "executor", "workers", "export", "fallback"}:
            raise ParameterError(f"`options` must hold what the search has no parameter for, such as timeout, got {format_value(name)}")
    return {
        "count": search.count,
        "score": trial.validation.score,
        "delta": search.delta,
        "epsilon": search.epsilon,
        "fallback": None,
        "export": seeds.to_bytes,
        "declared": search.declared,
        "insecure_seed": _seed(search.random_state),
        "seed_bits": bits_of(trial.estimator),
        "ledger": search.ledger,
        "again": search.again,
        "out": search.out,
        **_executor(search.n_jobs),
        **given,
    }


def _readied(search: Any, records: Records) -> Any:
    """A clone of the estimator with the public labels, refused where a trial of it could not be kept secret."""
    estimator = clone(search.estimator)
    parameters = estimator.get_params(deep=True)
    for name, value in parameters.items():
        if name.rpartition("__")[2] == "memory" and value is not None:
            raise ParameterError(f"`{name}` must be None, as a cache on disk would keep what trials that lost have computed, got one")
    for part in (search.estimator, *parameters.values()):
        if getattr(part, "_skl_callbacks", None):
            raise ParameterError(f"callbacks must not be set on {type(part).__name__}: they would be told of every trial")
    seeds_of(estimator)
    seeds.to_bytes(estimator)  # what cannot leave is told before the draw; in a trial it would fail without a word
    name = _labels_parameter(estimator)
    if search.classes is not None and name is None:
        raise ParameterError(f"`classes` must be None, as {type(private_part(estimator)).__name__} has no parameter `classes`")
    return estimator if name is None or records.classes is None else estimator.set_params(**{name: records.classes})


def _check_labels_known(public: tuple[Any, Any] | None, classes: Any) -> None:
    """Where no label is a class no candidate is ever right, or every trial fails without a word."""
    if public is not None and classes is not None and public[1] is not None and not np.isin(public[1], classes).any():
        raise ParameterError("`validation` must have labels that the records have too, got none of them")


def _labels_parameter(estimator: Any) -> str | None:
    prefix = ""
    while isinstance(estimator, Pipeline):
        name, estimator = estimator.steps[-1]
        prefix += f"{name}__"
    return f"{prefix}classes" if "classes" in estimator.get_params(deep=False) else None


def _notes(search: Any, estimator: Any, records: Records) -> tuple[str, ...]:
    said = {
        ATTRIBUTES: True,
        FORM: True,
        BEFORE: True,
        LABELS: records.classes is not None and search.classes is None and getattr(private_part(search.estimator), "classes", None) is None,
        STEPS: isinstance(estimator, Pipeline | ColumnTransformer | FeatureUnion),
        WEIGHTS: records.weights is not None,
    }
    return (*(note for note, holds in said.items() if holds), *told_notes(estimator, search.param_distributions))


def _seed(random_state: Any) -> int | None:
    return None if random_state is None else int(check_number("random_state", random_state, integer_range(0, 2**256 - 1)))


def _executor(n_jobs: Any) -> dict[str, Any]:
    if n_jobs is None or n_jobs == 1:
        return {"executor": "serial", "workers": None}
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"`n_jobs` must be None, a whole number of processes or -1 for all cores, got {format_value(n_jobs)}")
    return {"executor": "processes", "workers": joblib.effective_n_jobs(n_jobs)}


@plan_id("sklearn_trial")
@dataclass(frozen=True, repr=False)
class Trial:
    """The objective of a search. ``mechanism_of`` is what the estimator says of itself, None where that is nothing, or not the whole."""

    estimator: Any
    validation: Validation
    runs: str  # the whole description in a name: two searches of different estimators are two plans
    mechanism_of: Callable[[Candidate], Mechanism] | None = None
    notes: tuple[str, ...] = ()
    may_violate_plan: ClassVar[bool] = True  # where torch is first loaded inside a trial

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
