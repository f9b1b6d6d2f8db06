"""What is run on the data, described before the data is touched, and its hash."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from privselect._util.validation import format_value
from privselect.certificates.canonical import digest
from privselect.errors import AbortedError, ParameterError, PrivselectError
from privselect.mechanisms import Disjoint, Mechanism, Mixture
from privselect.tuning.dominates import leaks_at_most
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.randomness.key_derivation import Stream, derived
from privselect.tuning.release import written
from privselect.tuning.scores import NoisyCount, Score
from privselect.tuning.space import Space, Suggested

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count
    from privselect.tuning.exports import Export
    from privselect.tuning.space import Candidate

    MechanismOf = Callable[[Candidate], Mechanism]

_LOOKED_AT = 200  # draws of a space that are looked at before K is drawn


@dataclass(frozen=True, repr=False)
class Recipe:
    """A trial, the law of its candidates and the law of K. Its hash is what a run is known by: the budget and words are not part of it."""

    objective: Callable[..., Any]
    space: Space
    mechanism: Mechanism  # of a whole trial, the score included
    count: Count
    score: Score
    export: Export | None = None
    fallback: bytes | None = None
    mechanism_of: MechanismOf | None = None  # where the mechanism above only dominates what a candidate runs
    mixed: MechanismOf | None = None  # where the mechanism above is the mixture of what this says

    def plain(self) -> dict[str, Any]:
        """As JSON has it; written beside the release, for a reviewer to hash."""
        return {
            "objective": objective_name(self.objective),
            "space": self.space.plain(),
            "mechanism": str(self.mechanism),
            "mechanism_of": None if self.mechanism_of is None else objective_name(self.mechanism_of),
            "count": str(self.count),
            "score": self.score.plain() if isinstance(self.score, NoisyCount) else self.score,
            "export": None if self.export is None else self.export.name,
            "fallback": None if self.fallback is None else "sha256:" + sha256(self.fallback).hexdigest(),
        }

    def digest(self) -> str:
        """The hash by which a run of it is known."""
        return digest(self.plain())

    def split_key(self) -> bytes:
        """Of a hold-out that is split off: public, and the same in every run of the plan, so that a record is always on the same side."""
        return bytes.fromhex(self.digest().removeprefix("sha256:"))

    @property
    def suggested(self) -> bool:
        """Whether only a trial knows its candidate."""
        return isinstance(self.space, Suggested)

    @property
    def judges(self) -> bool:
        """Whether a candidate can be at fault."""
        return self.mechanism_of is not None or self.mixed is not None

    @property
    def judge(self) -> Callable[[Candidate], str | None] | None:
        """What a trial asks of a candidate that only it knows."""
        return self.fault if self.suggested and self.judges else None

    def check(self, candidate: Candidate) -> None:
        """Refuse a candidate that is at fault; one that only the trial knows is judged there."""
        if not self.suggested and (fault := self.fault(candidate)) is not None:
            raise AbortedError(f"{fault}; nothing is released") from None

    def fault(self, candidate: Candidate) -> str | None:
        """Why what a candidate runs is not certain to leak at most what is declared; not which one it is, that would be a word about K."""
        try:
            return self._fault(candidate)
        except Exception:  # noqa: BLE001 - a function of the user's
            return "the mechanism of a candidate could not be found"

    def _fault(self, candidate: Candidate) -> str | None:
        if self.mixed is not None and not leaks_at_most(_of(self.mixed, candidate), _of(self.mixed, self.space.finite_part(candidate))):
            return "the mechanism of a candidate is not certain to leak at most the one that was accounted for; give one that covers all"
        if self.mechanism_of is not None and not leaks_at_most(_of(self.mechanism_of, candidate), self.mechanism):
            return f"a candidate of the space runs a mechanism that {format_value(str(self.mechanism))} is not certain to cover"
        return None

    def look_at_space(self) -> None:
        """A few hundred draws that have nothing to do with those of the run, so that what is wrong with a space shows before K is drawn."""
        keys = [derived(bytes(32), "look", number) for number in range(_LOOKED_AT)]
        candidates = [self._looked_at(key) for key in keys]
        # A space that keeps a state, as one that walks a grid does, or has a generator of its own, draws another one the second time.
        if candidates != [self._looked_at(key) for key in reversed(keys)][::-1]:
            raise ParameterError("`space` must take all its randomness from `suggest`, and draw the same from the same: it does not")
        for candidate in () if self.suggested else candidates:
            try:
                fault = self._fault(candidate)
            except PrivselectError:
                raise
            except Exception as error:
                raise ParameterError(
                    f"the mechanism of every candidate must be found, got {type(error).__name__}: {error} for {format_value(candidate)}"
                ) from error
            if fault is not None:
                raise ParameterError(fault)

    def _looked_at(self, key: bytes) -> Candidate:
        try:
            candidate = self.space.draw(Stream(key))
            written(candidate)
        except PrivselectError:
            raise
        except Exception as error:
            raise ParameterError(
                f"`space` must draw candidates that can be written as JSON, got {type(error).__name__}: {error}"
            ) from error
        return candidate


class Accounted(NamedTuple):
    """The mechanism of a whole trial, and how each candidate is held against it; fields of a :class:`Recipe`."""

    mechanism: Mechanism
    mechanism_of: MechanismOf | None
    mixed: MechanismOf | None


def accounted(given: Any, mechanism_of: MechanismOf | None, objective: Any, score: Score, space: Space) -> Accounted:
    """From what the user says, and from what the objective says of itself by ``mechanism`` or, for each candidate, ``mechanism_of``."""
    own = _own_function(objective, given, mechanism_of)
    if given is None and own is not None and getattr(objective, "mechanism", None) is None:
        given = own
    mechanism = trial_mechanism(given, objective, score, space)
    if given is not None and not isinstance(given, Mechanism):
        return Accounted(mechanism, mechanism_of, given)
    if mechanism_of is None and own is not None:
        if _is_mixture(mechanism, own, score, space):
            return Accounted(mechanism, None, own)
        mechanism_of = functools.partial(_whole_trial, own, score)
    return Accounted(mechanism, mechanism_of, None)


def _own_function(objective: Any, given: Any, mechanism_of: Any) -> MechanismOf | None:
    """What the objective says of each candidate; another function beside it would leave that unchecked."""
    own = getattr(objective, "mechanism_of", None)
    if mechanism_of is not None and not callable(mechanism_of):
        raise ParameterError(f"`mechanism_of` must be a function of the candidate, got {format_value(mechanism_of)}")
    if not callable(own):
        return None
    for name, function in (("mechanism", None if isinstance(given, Mechanism) else given), ("mechanism_of", mechanism_of)):
        if callable(function) and function != own:
            raise ParameterError(
                f"`{name}` must be left out where the objective itself says by `mechanism_of` what each candidate runs, got "
                "another function; a mechanism that covers all may be given"
            )
    return cast("MechanismOf", own)


def _is_mixture(mechanism: Mechanism, own: MechanismOf, score: Score, space: Space) -> bool:
    """Whether the mechanism is the mixture of what the candidates run, where that can be had."""
    try:
        return mechanism == trial_mechanism(own, None, score, space)
    except Exception:  # noqa: BLE001 - a function of the user's, on a part of a candidate; each whole one is looked at later
        return False


def _whole_trial(training: MechanismOf, score: Score, candidate: Candidate) -> Mechanism:
    return _with_score(_of(training, candidate), score)


def trial_mechanism(given: Mechanism | MechanismOf | None, objective: Any, score: Score, space: Space) -> Mechanism:
    """The mechanism of a whole trial: as given, as the objective knows it, or the mixture of what the candidates run.

    The mixture is over hyperparameters with finitely many values; of the others, which are drawn independently, it must not depend.
    """
    own = getattr(objective, "mechanism", None)
    if given is None:
        if not isinstance(own, Mechanism):
            raise ParameterError("`mechanism` must say what one trial leaks, as the objective does not tell, got none")
        return _with_score(own, score)
    if isinstance(given, Mechanism):
        _check_own(own, given, score)
        return _check_score(given, score)
    if not callable(given):
        raise ParameterError(
            f"`mechanism` must be a mechanism such as gaussian(sigma=4), or a function of the candidate, got {format_value(given)}"
        )
    listed = space.listed()
    if listed is None:
        raise ParameterError(
            "`mechanism` must be one that covers every candidate where the space is a function, or has too many candidates to list; give "
            "the function of the candidate as `mechanism_of`"
        )
    try:
        parts = [(weight, _of(given, candidate)) for weight, candidate in listed]
    except KeyError as error:
        finite = ", ".join(listed[0][1]) or "none"
        raise ParameterError(
            f"`mechanism` as a function must look at hyperparameters with finitely many values alone, which are {finite}, got one that "
            f"asks for {format_value(error.args[0] if error.args else None)}; give one that covers all, and the function as `mechanism_of`"
        ) from None
    except PrivselectError:
        raise
    except Exception as error:
        raise ParameterError(f"`mechanism` must be a function that succeeds, got {type(error).__name__}: {error}") from error
    for _, part in parts:
        _check_own(own, part, score)
    return _with_score(_mixture(parts), score)  # the noise on the hold-out is the same for every candidate


def _mixture(parts: list[tuple[Fraction, Mechanism]]) -> Mechanism:
    weights: dict[Mechanism, Fraction] = {}
    for weight, mechanism in parts:
        weights[mechanism] = weights.get(mechanism, Fraction(0)) + weight
    if len(weights) == 1:
        return next(iter(weights))
    return Mixture(cast("Any", tuple((weight, mechanism) for mechanism, weight in weights.items())))


def _of(function: MechanismOf, candidate: Candidate) -> Mechanism:
    mechanism = function(dict(candidate))
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"the mechanism of a candidate must be a mechanism, got {format_value(mechanism)}")
    return mechanism


def _with_score(training: Mechanism, score: Score) -> Mechanism:
    """A record is trained on or held out, never both: the two parts are disjoint."""
    return Disjoint((training, score.noise)) if isinstance(score, NoisyCount) else training


def _check_score(given: Mechanism, score: Score) -> Mechanism:
    noise = [_is_noise(part, score) for part in given.parts] if isinstance(given, Disjoint) and isinstance(score, NoisyCount) else []
    if isinstance(score, NoisyCount) and (not any(noise) or len(noise) < 2):
        raise ParameterError(
            f"`mechanism` must be disjoint(what training leaks, discrete_gaussian(sigma={score.sigma:g})) where the score is a noisy count "
            f"on held-out records, got {format_value(str(given))}"
        )
    return given


def _is_noise(part: Mechanism, score: NoisyCount) -> bool:
    from privselect.mechanisms import DiscreteGaussian

    return isinstance(part, DiscreteGaussian) and part.sigma == score.sigma


def _check_own(own: object, given: Mechanism, score: Score) -> None:
    """What an objective says of itself and what is accounted for must not differ."""
    if not isinstance(own, Mechanism):
        return
    parts = given.parts if isinstance(given, Disjoint) and isinstance(score, NoisyCount) else (given,)
    if not any(leaks_at_most(own, part) for part in parts):
        raise ParameterError(f"`mechanism` must cover what the objective says that it runs, {own}, got {format_value(str(given))}")


def objective_name(objective: Any) -> str:
    """``module:function``; of a partial, that of the function; of an objective made of another one, or of a named thing, both."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    inner = getattr(objective, "runs", None)
    if inner is None:
        return name_in_plan(objective)
    return f"{name_in_plan(objective)}({inner if isinstance(inner, str) else objective_name(inner)})"
