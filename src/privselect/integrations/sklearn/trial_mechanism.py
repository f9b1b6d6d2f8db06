"""What a trial of a search leaks: by what the user says, held against what the estimator says of itself."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

from privselect._util.validation import format_value
from privselect.certificates.score_privacy import COVERED
from privselect.errors import ParameterError
from privselect.mechanisms import Composed, Disjoint, Mechanism
from privselect.text_forms import parse
from privselect.tuning.dominates import leaks_at_most
from privselect.tuning.randomness.key_derivation import Stream, derived
from privselect.tuning.scores import NoisyCount

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.sklearn.declared_mechanism import MechanismOf
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
    if own is not None and validation.score == COVERED:
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
        _more_than_the_fit(given, own, space.draw(Stream(derived(bytes(32), "look", number))))
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
        raise ParameterError(f"`mechanism` must cover what the estimator says that it runs, {own(candidate)}, got {format_value(str(said))}")
    return said


def _beside(training: Callable[[Candidate], Mechanism], noise: Mechanism, candidate: Candidate) -> Mechanism:
    return Disjoint((training(candidate), noise))


def _is_function(given: Any) -> bool:
    return callable(given) and not isinstance(given, Mechanism)
