"""From the parameters of a search to what ``tune`` is given."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import FeatureUnion, Pipeline

from privselect.certificates.private_score import COVERED as SCORE_COVERED
from privselect.errors import ParameterError
from privselect.integrations.sklearn import export
from privselect.integrations.sklearn.columns import read_held
from privselect.integrations.sklearn.description import plan_name
from privselect.integrations.sklearn.laws import read_space
from privselect.integrations.sklearn.pipeline import check_around, check_steps, private_part, read_covered
from privselect.integrations.sklearn.seeds import bits_of, seeds_of
from privselect.integrations.sklearn.stated import more_than_the_fit, told_mechanism, told_notes
from privselect.integrations.sklearn.trial import Trial
from privselect.integrations.sklearn.validation import HoldOut, read_validation
from privselect.mechanisms import Disjoint, Mechanism
from privselect.parameters import check_number, shown, whole
from privselect.text import parse
from privselect.tuning.domination import leaks_at_most
from privselect.tuning.scores import NoisyCount
from privselect.tuning.streams import Stream, derived

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.sklearn.columns import Records
    from privselect.integrations.sklearn.stated import MechanismOf
    from privselect.tuning.space import Candidate, Space

_LOOKED_AT = 50  # candidates, to see whether the mechanism depends on what is searched

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
    mechanism = parse(search.mechanism) if isinstance(search.mechanism, str) else search.mechanism
    if own is not None and validation.score == SCORE_COVERED:  # nor where the score is one more look at the records
        mechanism, own = _with_the_score(mechanism, own, space), None
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
    trial = Trial(estimator, validation, name, _constant(own, space), own, notes)
    return {"objective": trial, "space": space, **_conditions(search, trial, space, mechanism)}


def _conditions(search: Any, trial: Trial, space: Space, mechanism: Any) -> dict[str, Any]:
    noise = trial.validation.score.noise if isinstance(trial.validation.score, NoisyCount) else None
    if not isinstance(search.options, Mapping | None):
        raise ParameterError(f"`options` must be None or a dict, got {shown(search.options)}")
    given = dict(search.options or {})
    for name in given:
        if name in search.get_params(deep=False) or name in {"insecure_seed", "seed_bits", "executor", "workers", "export", "fallback"}:
            raise ParameterError(f"`options` must hold what the search has no parameter for, such as timeout, got {shown(name)}")
    return {
        "mechanism": _mechanism(mechanism, noise, trial.mechanism_of),
        "count": search.count,
        "score": trial.validation.score,
        "delta": search.delta,
        "epsilon": search.epsilon,
        "fallback": None,
        "export": export.to_bytes,
        "declared": search.declared,
        "mechanism_of": _whole_trial(_checked_by(search, trial, space), noise),
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
    export.to_bytes(estimator)  # what cannot leave is told before the draw; in a trial it would fail without a word
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
    return (*(note for note, holds in said.items() if holds), *told_notes(estimator))


def _constant(own: MechanismOf | None, space: Space) -> Mechanism | None:
    """The mechanism where it seems to be that of every candidate; each one that is drawn is held against it."""
    found = set() if own is None else {own(candidate) for candidate in _looked_at(space)}
    return found.pop() if len(found) == 1 else None


def _depends_on_unlisted(own: Callable[[Candidate], Mechanism] | None, space: Space) -> bool:
    """Whether what the estimator leaks is seen to depend on a parameter with more values than can be listed."""
    return own is not None and any(own(candidate) != own(space.finite_part(candidate)) for candidate in _looked_at(space))


def _looked_at(space: Space) -> list[Candidate]:
    """Some candidates that have nothing to do with those of the run."""
    return [space.draw(Stream(derived(bytes(32), "look", number))) for number in range(_LOOKED_AT)]


def _with_the_score(given: Any, own: MechanismOf, space: Space) -> Any:
    """The mechanism, refused where it is certain not to cover a score on the training data beside the fit."""
    if callable(given) and not isinstance(given, Mechanism):
        return functools.partial(more_than_the_fit, given, own)
    for candidate in _looked_at(space):
        more_than_the_fit(given, own, candidate)
    return given


def _mechanism(mechanism: Any, noise: Mechanism | None, own: Callable[[Candidate], Mechanism] | None) -> Any:
    """A mechanism is that of the training; with a hold-out that of a whole trial is both parts, each on records of its own."""
    if noise is not None and isinstance(mechanism, Mechanism):
        return mechanism if isinstance(mechanism, Disjoint) and noise in mechanism.parts else Disjoint((mechanism, noise))
    if own is not None and callable(mechanism) and not isinstance(mechanism, Mechanism):
        return functools.partial(_not_less, mechanism, own)
    return mechanism


def _not_less(given: Callable[[Candidate], Any], own: Callable[[Candidate], Mechanism], candidate: Candidate) -> Any:
    """What the user's function says, where that is not less than what the estimator does."""
    said = given(candidate)
    if isinstance(said, Mechanism) and not leaks_at_most(own(candidate), said):
        raise ParameterError(f"`mechanism` must cover what the estimator says that it runs, {own(candidate)}, got {shown(str(said))}")
    return said


def _checked_by(search: Any, trial: Trial, space: Space) -> Any:
    """By what each candidate is held against a mechanism that covers them all."""
    own = trial.mechanism_of
    if search.mechanism_of is not None and own is not None:
        return functools.partial(_not_less, search.mechanism_of, own)
    if search.mechanism_of is not None or callable(search.mechanism) or not _depends_on_unlisted(own, space):
        return search.mechanism_of
    if search.mechanism is None:
        raise ParameterError(
            "`mechanism` must be one that covers every candidate where what the estimator leaks depends on a parameter with more values "
            "than can be listed, got none"
        )
    return own


def _whole_trial(given: Any, noise: Mechanism | None) -> Any:
    return given if given is None or noise is None else functools.partial(_beside, given, noise)


def _beside(training: Callable[[Candidate], Mechanism], noise: Mechanism, candidate: Candidate) -> Mechanism:
    return Disjoint((training(candidate), noise))


def _seed(random_state: Any) -> int | None:
    return None if random_state is None else int(check_number("random_state", random_state, whole(0, 2**256 - 1)))


def _executor(n_jobs: Any) -> dict[str, Any]:
    if n_jobs is None or n_jobs == 1:
        return {"executor": "serial", "workers": None}
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0:
        raise ParameterError(f"`n_jobs` must be None, a whole number of processes or -1 for all cores, got {shown(n_jobs)}")
    return {"executor": "processes", "workers": joblib.effective_n_jobs(n_jobs)}
