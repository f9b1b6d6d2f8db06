"""The mechanism of a whole trial, score included, and whether a candidate leaks at most what it states."""

from __future__ import annotations

import dataclasses
import functools
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.mechanisms import DiscreteGaussian, Disjoint, Mechanism, Mixture
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.scores import NoisyCount

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.scores import Score
    from privselect.tuning.space import Candidate, Space

    MechanismOf = Callable[[Candidate], Mechanism]


class TrialMechanism(NamedTuple):
    """The mechanism of a whole trial, and how each candidate is checked against it."""

    mechanism: Mechanism
    mechanism_of: MechanismOf | None  # if the mechanism above dominates what this states for each candidate
    mixture_of: MechanismOf | None  # if the mechanism above is the mixture of what this states for each candidate

    def training(self, score: Score) -> Mechanism | MechanismOf:
        """Return the mechanism of training in a trial, without the noise of the score; a function if it depends on the candidate."""
        function = self.mixture_of or self.mechanism_of
        return self.covering_training(score) if function is None else functools.partial(_training_of, function, score)

    def covering_training(self, score: Score) -> Mechanism:
        """Return the mechanism that covers training in every trial, without the noise of the score."""
        return _without_score_noise(self.mechanism, score)


def resolve_mechanism(given: Any, mechanism_of: MechanismOf | None, objective: Any, score: Score, space: Space) -> TrialMechanism:
    """Find the mechanism from the user's arguments and the objective's attributes ``mechanism`` and ``mechanism_of``."""
    own = _own_mechanism_of(objective, given, mechanism_of)
    if given is None and own is not None and getattr(objective, "mechanism", None) is None:
        given = own
    mechanism = trial_mechanism(given, objective, score, space)
    if given is not None and not isinstance(given, Mechanism):
        return TrialMechanism(mechanism, mechanism_of, given)
    if mechanism_of is None and own is not None:
        if _is_mixture_of(own, mechanism, score, space):
            return TrialMechanism(mechanism, None, own)
        mechanism_of = functools.partial(_mechanism_with_score, own, score)
    return TrialMechanism(mechanism, mechanism_of, None)


def trial_mechanism(given: Mechanism | MechanismOf | None, objective: Any, score: Score, space: Space) -> Mechanism:
    """Return the mechanism of a whole trial: the given one, the objective's own, or the mixture over the candidates.

    The mixture is over hyperparameters with finitely many values. A function must not use the others, which are drawn independently.
    """
    own = getattr(objective, "mechanism", None)
    if given is None:
        if not isinstance(own, Mechanism):
            raise ParameterError(
                "`mechanism` is required: the objective does not state what one trial leaks. Pass mechanism=..., such as gaussian(sigma=4)"
            )
        return _add_score_noise(own, score)
    if isinstance(given, Mechanism):
        _check_covers_own(own, given, score)
        return _check_has_score_noise(given, score)
    if not callable(given):
        raise ParameterError(
            f"`mechanism` must be a mechanism such as gaussian(sigma=4), or a function of the candidate, got {format_value(given)}"
        )
    parts = _mechanisms_by_weight(given, space)
    for _, part in parts:
        _check_covers_own(own, part, score)
    return _add_score_noise(_mixture(parts), score)  # the noise on the hold-out is the same for every candidate


def final_mechanism_of(objective: Any, final: Mechanism) -> MechanismOf | None:
    """Return what the objective states that it runs in the final training of a candidate, None if it states nothing that depends on it.

    That is its ``final_mechanism_of``, or else its ``mechanism_of``. Refuse a final mechanism that does not cover its ``mechanism``.
    """
    for name in ("final_mechanism_of", "mechanism_of"):
        if callable(function := getattr(objective, name, None)):
            return cast("MechanismOf", function)
    own = getattr(objective, "mechanism", None)
    if isinstance(own, Mechanism) and not leaks_at_most(own, final):
        raise ParameterError(f"`final` must cover what the objective states that it runs, {own}, got {format_value(str(final))}")
    return None


def is_claimed(objective: Any, told: tuple[str, ...]) -> bool:
    """Return whether the mechanism is the user's claim: the objective neither states what it runs nor is told what to run."""
    if isinstance(claimed := getattr(objective, "mechanism_claimed", None), bool):
        return claimed
    return not states_mechanism(objective) and "mechanism" not in told


def states_mechanism(objective: Any) -> bool:
    """Return whether the objective states what it runs."""
    return isinstance(getattr(objective, "mechanism", None), Mechanism) or callable(getattr(objective, "mechanism_of", None))


def mechanism_for(mechanism_of: MechanismOf, candidate: Candidate) -> Mechanism:
    """Return the mechanism that the function states for this candidate."""
    mechanism = mechanism_of(dict(candidate))
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"the mechanism of a candidate must be a mechanism, got {format_value(mechanism)}")
    return mechanism


def leaks_at_most(mechanism: Mechanism, declared: Mechanism) -> bool:
    """Return True if ``mechanism`` certainly leaks at most what ``declared`` does, judged by their parameters alone.

    That is the case if both are of the same kind and each parameter is equal or on its safe side (more noise, fewer steps). If the
    kinds differ, or one parameter is on its unsafe side, the answer is False, whatever the truth is.
    """
    if mechanism == declared:
        return True
    if type(mechanism) is not type(declared) or mechanism.neighbours != declared.neighbours:
        return False
    fields: Any = dataclasses.fields(mechanism)  # type: ignore[arg-type]
    return all(_is_safe(field, getattr(mechanism, field.name), getattr(declared, field.name)) for field in fields)


def _is_safe(field: dataclasses.Field[Any], value: Any, declared: Any) -> bool:
    if value == declared:
        return True
    if value is None or declared is None:
        return False
    leaks = field.metadata.get("leaks")
    if leaks == "more":
        return bool(value <= declared)
    if leaks == "less":
        return bool(value >= declared)
    if field.name == "parts" and len(value) == len(declared):
        return all(
            isinstance(mine, Mechanism) and isinstance(other, Mechanism) and leaks_at_most(mine, other)
            for mine, other in zip(value, declared, strict=True)
        )
    return False


def _own_mechanism_of(objective: Any, given: Any, mechanism_of: Any) -> MechanismOf | None:
    """Return the objective's own ``mechanism_of``; refuse another function next to it, which would leave it unchecked."""
    own = getattr(objective, "mechanism_of", None)
    if mechanism_of is not None and not callable(mechanism_of):
        raise ParameterError(f"`mechanism_of` must be a function of the candidate, got {format_value(mechanism_of)}")
    if not callable(own):
        return None
    for name, function in (("mechanism", None if isinstance(given, Mechanism) else given), ("mechanism_of", mechanism_of)):
        if callable(function) and function != own:
            raise ParameterError(
                f"`{name}` must not be a function when the objective has its own `mechanism_of`, got another function. Leave it out, or "
                "pass one mechanism that covers every candidate as `mechanism`"
            )
    return cast("MechanismOf", own)


def _is_mixture_of(own: MechanismOf, mechanism: Mechanism, score: Score, space: Space) -> bool:
    """Return whether the mechanism is the mixture of what the candidates run, if that mixture can be computed."""
    try:
        return mechanism == trial_mechanism(own, None, score, space)
    except Exception:  # noqa: BLE001 - the user's function may fail on part of a candidate; whole candidates are checked later
        return False


@plan_id("mechanism_with_score")
def _mechanism_with_score(mechanism_of: MechanismOf, score: Score, candidate: Candidate) -> Mechanism:
    return _add_score_noise(mechanism_for(mechanism_of, candidate), score)


def _mechanisms_by_weight(mechanism_of: MechanismOf, space: Space) -> list[tuple[Fraction, Mechanism]]:
    """Return the mechanism of every candidate with its exact probability."""
    listed = space.listed()
    if listed is None:
        raise ParameterError(
            "`mechanism` must be one that covers every candidate when the space is a function or has too many candidates to list. Pass "
            "the function of the candidate as `mechanism_of`"
        )
    try:
        return [(weight, mechanism_for(mechanism_of, candidate)) for weight, candidate in listed]
    except KeyError as error:
        finite = ", ".join(listed[0][1]) or "none"
        raise ParameterError(
            f"`mechanism` as a function must use only hyperparameters with finitely many values ({finite}), got one that uses "
            f"{format_value(error.args[0] if error.args else None)}. Pass a mechanism that covers all, and the function as `mechanism_of`"
        ) from None
    except PrivselectError:
        raise
    except Exception as error:
        raise ParameterError(f"`mechanism` must be a function that succeeds, got {type(error).__name__}: {error}") from error


def _mixture(parts: list[tuple[Fraction, Mechanism]]) -> Mechanism:
    weights: dict[Mechanism, Fraction] = {}
    for weight, mechanism in parts:
        weights[mechanism] = weights.get(mechanism, Fraction(0)) + weight
    if len(weights) == 1:
        return next(iter(weights))
    return Mixture(cast("Any", tuple((weight, mechanism) for mechanism, weight in weights.items())))


def _training_of(mechanism_of: MechanismOf, score: Score, candidate: Candidate) -> Mechanism:
    return _without_score_noise(mechanism_for(mechanism_of, candidate), score)


def _without_score_noise(trial: Mechanism, score: Score) -> Mechanism:
    if not isinstance(score, NoisyCount) or not isinstance(trial, Disjoint):
        return trial
    noise = next((part for part in reversed(trial.parts) if isinstance(part, DiscreteGaussian) and part.sigma == score.sigma), None)
    rest = tuple(part for part in trial.parts if part is not noise)
    if noise is None or not rest:
        return trial
    return rest[0] if len(rest) == 1 else Disjoint(rest)


def _add_score_noise(training: Mechanism, score: Score) -> Mechanism:
    """Add the noise of the score. A record is trained on or held out, never both, so the two parts are disjoint."""
    return Disjoint((training, score.noise)) if isinstance(score, NoisyCount) else training


def _check_has_score_noise(given: Mechanism, score: Score) -> Mechanism:
    if not isinstance(score, NoisyCount):
        return given
    parts = given.parts if isinstance(given, Disjoint) else ()
    if len(parts) < 2 or not any(isinstance(part, DiscreteGaussian) and part.sigma == score.sigma for part in parts):
        raise ParameterError(
            f"`mechanism` must be disjoint(what training leaks, discrete_gaussian(sigma={score.sigma:g})) when the score is a noisy count "
            f"on held-out records, got {format_value(str(given))}"
        )
    return given


def _check_covers_own(own: object, given: Mechanism, score: Score) -> None:
    """Refuse a mechanism that does not cover what the objective states about itself."""
    if not isinstance(own, Mechanism):
        return
    parts = given.parts if isinstance(given, Disjoint) and isinstance(score, NoisyCount) else (given,)
    if not any(leaks_at_most(own, part) for part in parts):
        raise ParameterError(f"`mechanism` must cover what the objective states that it runs, {own}, got {format_value(str(given))}")
