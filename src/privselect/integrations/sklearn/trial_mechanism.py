"""What a trial of a search leaks: by what the user says, held against what the estimator says of itself."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, clone

from privselect._util.validation import format_value
from privselect.certificates.model import COVERED_SCORE
from privselect.errors import ParameterError
from privselect.integrations.sklearn.pipeline import private_part
from privselect.mechanisms import Composed, Disjoint, Mechanism
from privselect.text_forms import parse
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.scores import NoisyCount
from privselect.tuning.trial_mechanism import leaks_at_most

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from privselect.integrations.sklearn.validation import Validation
    from privselect.tuning.space import Candidate, Space


_LOOKED_AT = 50  # candidates, none of the run's


class Account(NamedTuple):
    """What ``tune`` is given as ``mechanism`` and ``mechanism_of``, and what the objective says of each candidate."""

    mechanism: Any
    mechanism_of: Any
    own: MechanismOf | None


def account(search: Any, own: MechanismOf | None, validation: Validation, space: Space) -> Account:
    """A mechanism is that of the training; with a hold-out that of a whole trial is both parts, each on records of its own."""
    mechanism = parse(search.mechanism) if isinstance(search.mechanism, str) else search.mechanism
    mechanism_of = search.mechanism_of
    if own is not None and validation.score == COVERED_SCORE:
        # What the estimator says is its fit, and the score is one more look at the records.
        mechanism, own = _with_the_score(mechanism, own, space), None
    if own is not None and (_is_function(mechanism) or mechanism_of is not None):
        # In the place of the estimator's word, which the user's must not fall short of.
        mechanism = functools.partial(_not_less, mechanism, own) if _is_function(mechanism) else mechanism or own
        mechanism_of = None if mechanism_of is None else functools.partial(_not_less, mechanism_of, own)
        own = None
    if isinstance(validation.score, NoisyCount):
        noise = validation.score.noise
        mechanism_of = None if mechanism_of is None else functools.partial(_beside, mechanism_of, noise)
        if isinstance(mechanism, Mechanism) and not (isinstance(mechanism, Disjoint) and noise in mechanism.parts):
            mechanism = Disjoint((mechanism, noise))
    return Account(mechanism, mechanism_of, own)


def _with_the_score(given: Any, own: MechanismOf, space: Space) -> Any:
    """The mechanism, refused where it is certain not to cover a score on the training data beside the fit."""
    if _is_function(given):
        return functools.partial(_more_than_the_fit, given, own)
    for number in range(_LOOKED_AT):
        _more_than_the_fit(given, own, space.draw(Stream(derive_key(bytes(32), "look", number))))
    return given


def _more_than_the_fit(given: Any, own: MechanismOf, candidate: Candidate) -> Any:
    said = given(candidate) if _is_function(given) else given
    fit = own(candidate)
    parts = said.parts if isinstance(said, Composed) else (said,)
    alike = [part for part in parts if type(part) is type(fit)]
    if said is None or leaks_at_most(said, fit) or (alike and not any(leaks_at_most(fit, part) for part in alike)):
        raise ParameterError(
            "`mechanism` must account for the score as well where `validation` is 'covered', as what the estimator says of itself is its "
            f"fit alone, {fit}; got {'none' if said is None else format_value(str(said))}"
        )
    return said


def _not_less(given: Callable[[Candidate], Any], own: MechanismOf, candidate: Candidate) -> Any:
    """What the user's function says, where that is not less than what the estimator does."""
    said = given(candidate)
    if isinstance(said, Mechanism) and not leaks_at_most(own(candidate), said):
        raise ParameterError(
            f"`mechanism` must cover what the estimator says that it runs, {own(candidate)}, got {format_value(str(said))}"
        )
    return said


def _beside(training: Callable[[Candidate], Mechanism], noise: Mechanism, candidate: Candidate) -> Mechanism:
    return Disjoint((training(candidate), noise))


def _is_function(given: Any) -> bool:
    return callable(given) and not isinstance(given, Mechanism)


VARIED = "candidates differ in {names}: what is said here of these is as the estimator was given, and the winner may have others"


@dataclass(frozen=True)
class MechanismOf:
    """What an estimator with these parameters says that it leaks; of a pipeline, its last step."""

    estimator: Any

    def __call__(self, candidate: Candidate) -> Mechanism:
        """Of a fresh clone."""
        part = private_part(clone(self.estimator).set_params(**candidate))
        if is_of_diffprivlib(part):
            from privselect.integrations.diffprivlib import mechanism_from_estimator

            return mechanism_from_estimator(part)
        mechanism = getattr(part, "mechanism", None)
        if not isinstance(mechanism, Mechanism):
            raise ParameterError("every candidate must say what its fit leaks where the estimator does, got one that has no `mechanism`")
        return mechanism


def told_mechanism(estimator: Any) -> MechanismOf | None:
    """None where the estimator says nothing of what it leaks. One of diffprivlib that is known not to keep its promise is refused."""
    part = private_part(estimator)
    told = MechanismOf(estimator)
    if is_of_diffprivlib(part):
        told({})
        return told
    return told if isinstance(getattr(part, "mechanism", None), Mechanism) else None


def told_notes(estimator: Any, searched: Iterable[str] = ()) -> tuple[str, ...]:
    """Lines for the certificate, and one where they are about parameters that are ``searched``."""
    part = private_part(estimator)
    if is_of_diffprivlib(part):
        from privselect.integrations.diffprivlib import diffprivlib_mechanism

        return diffprivlib_mechanism(clone(part)).notes
    if "insecure_seed" in part.get_params(deep=False):
        part = clone(part).set_params(insecure_seed=None)  # in a search each trial has randomness of its own in its place
    names = sorted({name.rpartition("__")[2] for name in searched} & getattr(part, "noted", frozenset()))
    return (*getattr(part, "notes", ()), *((VARIED.format(names=", ".join(names)),) if names else ()))


def strip(estimator: Any) -> None:
    """Take out of a fitted estimator what its mechanism is known not to cover."""
    part = private_part(estimator)
    if is_of_diffprivlib(part):
        from privselect.integrations import diffprivlib

        diffprivlib.strip(part)


def is_of_diffprivlib(part: Any) -> bool:
    """Whether privselect knows what the estimator leaks, where that itself does not tell."""
    return type(part).__module__.startswith("diffprivlib.models.")


def plan_name(estimator: Any, **parts: Any) -> str:
    """A name for the plan: the estimator's class, and a hash of all its parameters and of the other parts of a trial."""
    said = json.dumps(plain({"estimator": estimator, **parts}), sort_keys=True)
    return f"{type(estimator).__name__} {sha256(said.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def plain(value: Any) -> Any:
    """As JSON has it; arrays by their hash, functions and other objects by their name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, BaseEstimator) and not isinstance(value, type):
        return {"class": name_in_plan(type(value)), "parameters": plain(value.get_params(deep=False))}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return _plain_array(value) if isinstance(value, np.ndarray | np.generic) else name_in_plan(value)


def _plain_array(value: Any) -> Any:
    if value.ndim == 0 or value.dtype.hasobject:
        return plain(value.tolist())
    return {"array": str(value.dtype), "shape": list(value.shape), "sha256": sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}
