"""Determine what one trial of a search leaks: the user's ``mechanism``, checked against the one that the estimator declares."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from sklearn.base import BaseEstimator, clone, is_classifier, is_regressor

from privselect._util.validation import format_value
from privselect.certificates.model import COVERED_SCORE
from privselect.errors import ParameterError
from privselect.integrations.diffprivlib import diffprivlib_mechanism, mechanism_from_estimator
from privselect.integrations.sklearn.pipeline import final_estimator
from privselect.mechanisms import Composed, Disjoint, Mechanism
from privselect.open_spec import OpenSpec
from privselect.tuning.plan_ids import name_in_plan, plan_id
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial_mechanism import leaks_at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from privselect.integrations.sklearn.validation import Validation
    from privselect.tuning.space import Candidate, Space

_CHECKED_CANDIDATES = 50  # drawn from a fixed seed, independent of the run
VARIED_NOTE = "candidates differ in {names}: the notes on these parameters state the values of the given estimator, not of the winner"


@plan_id("sklearn_declared_mechanism")
@dataclass(frozen=True)
class DeclaredMechanism:
    """The mechanism that an estimator declares, as a function of the searched parameters; for a pipeline, that of its last step."""

    estimator: Any

    def __call__(self, candidate: Candidate) -> Mechanism:
        """Return the mechanism that a fresh clone with these parameters declares."""
        estimator = final_estimator(clone(self.estimator).set_params(**candidate))
        if is_from_diffprivlib(estimator):
            return mechanism_from_estimator(estimator)
        mechanism = getattr(estimator, "mechanism", None)
        if not isinstance(mechanism, Mechanism):
            raise ParameterError(
                f"every candidate must have a `mechanism`, because the estimator has one, got a {type(estimator).__name__} without it"
            )
        return mechanism


def states_mechanism(estimator: Any) -> bool:
    """Return whether the estimator states what one fit leaks, possibly with an open noise."""
    final = final_estimator(estimator)
    try:
        return is_from_diffprivlib(final) or isinstance(getattr(final, "mechanism", None), Mechanism | OpenSpec)
    except ParameterError:  # its parameters are incomplete until its noise is solved for, or invalid, which is raised later
        return True


def declared_mechanism(estimator: Any) -> DeclaredMechanism:
    """Return the mechanism that the estimator declares; unsupported diffprivlib estimators are refused."""
    declared = DeclaredMechanism(estimator)
    if is_from_diffprivlib(final_estimator(estimator)):
        declared({})
    return declared


def refuse_non_private(estimator: Any) -> NoReturn:
    """Raise ``ParameterError``: neither the estimator nor the user states what one fit leaks."""
    final = final_estimator(estimator)
    name = type(final).__name__
    private = "PrivateSoftmax" if is_classifier(final) else "AdaSSPRegressor" if is_regressor(final) else None
    problem = (
        f"{name} is not differentially private"
        if type(final).__module__.startswith("sklearn.")
        else f"`mechanism` is required: {name} does not state what one fit leaks"
    )
    advice = "Pass mechanism=..." if private is None else f"Use {private}, or pass mechanism=..."
    raise ParameterError(f"{problem}. {advice} to state what one fit leaks.")


def declared_notes(estimator: Any, searched: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the estimator's certificate notes, and one more if they depend on parameters that are ``searched``."""
    final = final_estimator(estimator)
    if is_from_diffprivlib(final):
        return diffprivlib_mechanism(clone(final)).notes
    if "insecure_seed" in final.get_params(deep=False):
        final = clone(final).set_params(insecure_seed=None)  # each trial of a search gets its own seed
    names = sorted({name.rpartition("__")[2] for name in searched} & getattr(final, "noted", frozenset()))
    return (*getattr(final, "notes", ()), *((VARIED_NOTE.format(names=", ".join(names)),) if names else ()))


def is_from_diffprivlib(estimator: Any) -> bool:
    """Return whether the estimator is one of diffprivlib, which does not declare its mechanism itself."""
    return type(estimator).__module__.startswith("diffprivlib.models.")


class MechanismArguments(NamedTuple):
    """The arguments ``mechanism`` and ``mechanism_of`` for ``tune``, and the mechanism of each candidate for the objective."""

    mechanism: Any
    mechanism_of: Any
    declared: DeclaredMechanism | None


def mechanism_arguments(
    mechanism: Any, mechanism_of: Any, declared: DeclaredMechanism | None, validation: Validation, space: Space
) -> MechanismArguments:
    """Combine the user's mechanism, the declared one and the noise of a hold-out count.

    A given mechanism is that of the training. With a hold-out, a trial releases both parts, each on its own records.
    """
    if declared is not None and validation.score == COVERED_SCORE:
        # The declared mechanism is that of the fit alone. The score uses the records once more.
        mechanism, declared = _check_score_covered(mechanism, declared, space), None
    if declared is not None and (_is_function(mechanism) or mechanism_of is not None):
        # The user's functions replace the declared mechanism, and are checked against it.
        mechanism = functools.partial(_at_least_declared, mechanism, declared) if _is_function(mechanism) else mechanism or declared
        mechanism_of = None if mechanism_of is None else functools.partial(_at_least_declared, mechanism_of, declared)
        declared = None
    if isinstance(validation.score, NoisyCount):
        noise = validation.score.noise
        mechanism_of = None if mechanism_of is None else functools.partial(_with_count_noise, mechanism_of, noise)
        if isinstance(mechanism, Mechanism) and not (isinstance(mechanism, Disjoint) and noise in mechanism.parts):
            mechanism = Disjoint((mechanism, noise))
    return MechanismArguments(mechanism, mechanism_of, declared)


def _check_score_covered(given: Any, declared: DeclaredMechanism, space: Space) -> Any:
    """Return the mechanism; refuse it if it certainly does not cover both the fit and a score on the training data."""
    if _is_function(given):
        return functools.partial(_more_than_fit, given, declared)
    for number in range(_CHECKED_CANDIDATES):
        _more_than_fit(given, declared, space.draw(Stream(derive_key(bytes(32), "look", number))))
    return given


@plan_id("sklearn_more_than_fit")
def _more_than_fit(given: Any, declared: DeclaredMechanism, candidate: Candidate) -> Any:
    mechanism = given(candidate) if _is_function(given) else given
    fit = declared(candidate)
    parts = mechanism.parts if isinstance(mechanism, Composed) else (mechanism,)
    same_kind = [part for part in parts if type(part) is type(fit)]
    if mechanism is None or leaks_at_most(mechanism, fit) or (same_kind and not any(leaks_at_most(fit, part) for part in same_kind)):
        raise ParameterError(
            "`mechanism` must cover both the fit and the score if `validation` is 'covered', "
            f"got {'none' if mechanism is None else format_value(str(mechanism))}. The fit alone is {fit}"
        )
    return mechanism


@plan_id("sklearn_at_least_declared")
def _at_least_declared(given: Callable[[Candidate], Any], declared: DeclaredMechanism, candidate: Candidate) -> Any:
    """Return what the user's function states, unless it leaks less than the declared mechanism."""
    mechanism = given(candidate)
    if isinstance(mechanism, Mechanism) and not leaks_at_most(declared(candidate), mechanism):
        raise ParameterError(
            f"`mechanism` must cover the estimator's own mechanism {declared(candidate)}, got {format_value(str(mechanism))}"
        )
    return mechanism


@plan_id("sklearn_with_count_noise")
def _with_count_noise(training: Callable[[Candidate], Mechanism], noise: Mechanism, candidate: Candidate) -> Mechanism:
    return Disjoint((training(candidate), noise))


def _is_function(given: Any) -> bool:
    return callable(given) and not isinstance(given, Mechanism)


def plan_name(estimator: Any, **parts: Any) -> str:
    """Return a name for the plan: the estimator's class and a hash of all its parameters and of the other parts of a trial."""
    described = json.dumps(_describe({"estimator": estimator, **parts}), sort_keys=True)
    return f"{type(estimator).__name__} {sha256(described.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def _describe(value: Any) -> Any:
    """Return a JSON value: arrays as hashes, functions and other objects as names."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, BaseEstimator) and not isinstance(value, type):
        return {"class": name_in_plan(type(value)), "parameters": _describe(value.get_params(deep=False))}
    if isinstance(value, Mapping):
        return {str(name): _describe(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_describe(part) for part in value]
    return _describe_array(value) if isinstance(value, np.ndarray | np.generic) else name_in_plan(value)


def _describe_array(value: Any) -> Any:
    if value.ndim == 0 or value.dtype.hasobject:
        return _describe(value.tolist())
    return {"array": str(value.dtype), "shape": list(value.shape), "sha256": sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}
