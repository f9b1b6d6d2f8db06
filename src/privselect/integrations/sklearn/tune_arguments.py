"""Convert the parameters of a search to a run of the tuner."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.integrations.sklearn.distributions import read_space
from privselect.integrations.sklearn.input_checks import check_validation_records
from privselect.integrations.sklearn.pipeline import check_inner_steps, check_outer_steps, final_estimator, final_prefix, read_covered
from privselect.integrations.sklearn.sample_size import public_records, sample_notes
from privselect.integrations.sklearn.search_trial import SearchTrial
from privselect.integrations.sklearn.seeds import dump_estimator, get_seeds, smallest_seed_bits
from privselect.integrations.sklearn.solve_noise import solve_noise
from privselect.integrations.sklearn.stages import learning_rate_of, read_stages
from privselect.integrations.sklearn.trial_mechanism import (
    declared_mechanism,
    declared_notes,
    mechanism_arguments,
    plan_name,
    refuse_non_private,
    states_mechanism,
)
from privselect.integrations.sklearn.validation import HoldOut, chosen_validation, read_validation
from privselect.mechanisms import DPSGD
from privselect.planning.stages import read_probability
from privselect.tuning.executors import read_engine
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.scores import record_count
from privselect.tuning.transfer import NOISE, SAME
from privselect.tuning.tune import configure_run

if TYPE_CHECKING:
    from privselect.integrations.sklearn.input_checks import CheckedRecords
    from privselect.integrations.sklearn.solve_noise import SolvedSearch
    from privselect.integrations.sklearn.stages import StageEstimators
    from privselect.tuning.executors import Engine
    from privselect.tuning.space import Space
    from privselect.tuning.tuning_run import TuningRun

ATTRIBUTES_NOTE = "the user declares that the mechanism covers every fitted attribute of the released estimator"
FORM_NOTE = "the form of the records, such as finite numbers and at least two labels, is declared public"
BEFORE_NOTE = "processing of the data before the search is not covered"
LABELS_NOTE = "the set of labels is read from the data and declared public"
STATELESS_NOTE = "the user declares, without a check, that stateless steps treat each record by itself"
COVERED_NOTE = "step {name!r} learns from the data; the user declares, without a check, that the mechanism covers it"
OUTER_NOTE = "step {name!r} before the search learns from the data once, outside the trials: its privacy cost is not in this certificate"
WEIGHTS_NOTE = "records have weights; the user declares that the mechanism holds for these weights"

_SEEDS = integer_range(0, 2**256 - 1)
_RESERVED_OPTIONS = {"insecure_seed", "seed_bits", "executor", "workers", "engine", "export", "fallback", "score"}


class PlannedSearch(NamedTuple):
    """A run that is ready to start, and the parameters that make its search trials cheaper."""

    run: TuningRun
    cheaper: dict[str, Any]


def plan_search(search: Any, records: CheckedRecords) -> PlannedSearch:
    """Solve for the noise and return the run; invalid parameters raise before anything is drawn."""
    estimator = _checked_clone(search, records)
    space = read_space(search.param_distributions, estimator, search.defaults, search.weight)
    check_public = functools.partial(check_validation_records, search)
    validation = read_validation(chosen_validation(search), search.scoring, estimator, check_public)
    _check_labels_known(validation.records, records.classes)
    covered = read_covered(search.covered)
    inner, outer = check_inner_steps(estimator, covered), check_outer_steps(search, covered)
    # The last step declares its own fit alone, so its declaration does not cover steps that learn before it.
    declares = not inner and states_mechanism(estimator)
    if search.mechanism is None and inner:
        raise ParameterError("`mechanism` is required if steps are covered: pass mechanism=... to state what one fit of the pipeline leaks")
    if search.mechanism is None and not declares:
        refuse_non_private(estimator)
    stages = read_stages(search, estimator, space.distributions or ())
    weighted = records.weights is not None
    transfer = name_in_plan(search.transfer) if callable(search.transfer) else str(search.transfer)
    identity = {
        "name": _name_in_plan(search, stages, weighted=weighted),
        "space": space.as_dict(),
        "transfer": [transfer, str(search.learning_rate)],
    }
    solved = solve_noise(search, stages, validation, space, declares=declares, identity=identity)
    stages, validation = solved.stages, solved.validation
    own = declared_mechanism(stages.trial) if declares else None
    mechanisms = mechanism_arguments(solved.mechanism, search.mechanism_of, own, validation, space)
    steps = (*(COVERED_NOTE.format(name=step) for step in inner), *(OUTER_NOTE.format(name=step) for step in outer))
    subsample = None if search.subsample is None else read_probability(search.subsample)
    notes = (*_notes(search, stages, records), *sample_notes(stages.trial, subsample), *steps, *validation.notes)
    trial = SearchTrial(
        stages,
        validation,
        _name_in_plan(search, stages, weighted=weighted),
        mechanism_claimed=not declares,
        mechanism_of=mechanisms.declared,
        final_mechanism_of=declared_mechanism(stages.final) if declares and stages.final is not None else None,
        notes=notes,
        search_records=public_records(stages.trial, record_count(records.X), subsample, validation.score),
    )
    run = configure_run(
        trial,
        space,
        mechanism=mechanisms.mechanism,
        mechanism_of=mechanisms.mechanism_of,
        count=solved.count,
        score=validation.score,
        delta=search.delta,
        epsilon=search.epsilon,
        subsample=subsample,
        export=dump_estimator,
        declared=search.declared,
        insecure_seed=None if search.random_state is None else int(check_number("random_state", search.random_state, _SEEDS)),
        seed_bits=smallest_seed_bits(estimator),
        ledger=search.ledger,
        again=search.again,
        out=search.out,
        engine=_engine(search.n_jobs),
        **(_final_arguments(search, solved, space) if search.refit else {}),
        **_options(search),
    )
    return PlannedSearch(run if solved.plan is None else replace(run, plan=solved.plan, problem=solved.problem), stages.cheaper)


def _final_arguments(search: Any, solved: SolvedSearch, space: Space) -> dict[str, Any]:
    rate = learning_rate_of(search, solved.stages.final, space.distributions or ())
    by_noise = isinstance(solved.final, DPSGD) and (solved.mechanism is None or isinstance(solved.mechanism, DPSGD))
    transfer = search.transfer
    if transfer is None:
        transfer = NOISE if search.learning_rate is not None or (rate is not None and by_noise) else SAME
    split = {} if solved.plan is not None else {"final_noise": search.final_noise, "split": search.split}
    return {
        "final": solved.final,
        "transfer": transfer,
        "learning_rate": rate if isinstance(transfer, str) and transfer == NOISE else search.learning_rate,
        **split,
    }


def _name_in_plan(search: Any, stages: StageEstimators, *, weighted: bool) -> str:
    held = chosen_validation(search)
    split = [held.fraction if held.fraction is None else str(held.fraction), held.ids is None] if isinstance(held, HoldOut) else held
    final = {} if stages.final is None else {"final": stages.final}
    return plan_name(stages.trial, scoring=search.scoring, validation=split, weighted=weighted, **final)


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


def _notes(search: Any, stages: StageEstimators, records: CheckedRecords) -> tuple[str, ...]:
    estimator = stages.trial
    own_classes = getattr(final_estimator(search.estimator), "classes", None)
    applies = {
        ATTRIBUTES_NOTE: True,
        FORM_NOTE: True,
        BEFORE_NOTE: True,
        LABELS_NOTE: records.classes is not None and search.classes is None and own_classes is None,
        STATELESS_NOTE: isinstance(estimator, Pipeline | ColumnTransformer | FeatureUnion),
        WEIGHTS_NOTE: records.weights is not None,
    }
    declared = [declared_notes(one, search.param_distributions) for one in (stages.trial, stages.final) if one is not None]
    return tuple(dict.fromkeys((*(note for note, holds in applies.items() if holds), *(note for notes in declared for note in notes))))


def _engine(n_jobs: Any) -> Engine:
    if n_jobs is None or n_jobs == 1:
        return read_engine("serial", None)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"`n_jobs` must be None, a number of processes, or -1 for all cores, got {format_value(n_jobs)}")
    return read_engine("processes", joblib.effective_n_jobs(n_jobs))
