"""What is run on the data, described before the data is touched, and its hash."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

from privselect.certificates.canonical import digest
from privselect.errors import AbortedError, ParameterError, PrivselectError
from privselect.mechanisms import Disjoint, Mechanism, Mixture
from privselect.parameters import shown
from privselect.tuning.domination import leaks_at_most
from privselect.tuning.release import written
from privselect.tuning.scores import NoisyCount, Score
from privselect.tuning.space import Space, named
from privselect.tuning.streams import Stream, derived

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

    def plain(self) -> dict[str, Any]:
        """As JSON has it; written beside the release, for a reviewer to hash."""
        return {
            "objective": objective_name(self.objective),
            "space": self.space.plain(),
            "mechanism": str(self.mechanism),
            "mechanism_of": None if self.mechanism_of is None else named(self.mechanism_of),
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

    def check(self, candidate: Candidate) -> None:
        """Refuse a candidate whose own mechanism is not certain to leak at most what is declared."""
        try:
            covered = self._covers(candidate)
        except Exception:  # noqa: BLE001 - a function of the user's
            raise AbortedError("the mechanism of a candidate could not be found; nothing is released") from None
        if not covered:
            # Not which one, nor how many were looked at: that would be a word about K.
            raise AbortedError(self._uncovered())

    def _covers(self, candidate: Candidate) -> bool:
        return self.mechanism_of is None or leaks_at_most(_of(self.mechanism_of, candidate), self.mechanism)

    def _uncovered(self) -> str:
        return f"a candidate of the space runs a mechanism that {shown(str(self.mechanism))} is not certain to cover"

    def look_at_space(self) -> None:
        """A few hundred draws that have nothing to do with those of the run, so that what is wrong with a space shows before K is drawn."""
        keys = [derived(bytes(32), "look", number) for number in range(_LOOKED_AT)]
        candidates = [self._looked_at(key) for key in keys]
        # A space that keeps a state, as one that walks a grid does, or has a generator of its own, draws another one the second time.
        if candidates != [self._looked_at(key) for key in reversed(keys)][::-1]:
            raise ParameterError("`space` must take all its randomness from `suggest`, and draw the same from the same: it does not")
        if not all(self._covers(candidate) for candidate in candidates):
            raise ParameterError(self._uncovered())

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


def trial_mechanism(given: Mechanism | MechanismOf | None, objective: Any, score: Score, space: Space) -> Mechanism:
    """The mechanism of a whole trial: as given, as the objective knows it, or, for a finite space, the mixture of its candidates'."""
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
            f"`mechanism` must be a mechanism such as gaussian(sigma=4), or a function of the candidate, got {shown(given)}"
        )
    listed = space.listed()
    if listed is None:
        raise ParameterError(
            "`mechanism` must be one that covers every candidate where the space is not finite or too large to list; give the function "
            "of the candidate as `mechanism_of`"
        )
    parts = [(weight, _of(given, candidate)) for weight, candidate in listed]
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
        raise ParameterError(f"the mechanism of a candidate must be a mechanism, got {shown(mechanism)}")
    return mechanism


def _with_score(training: Mechanism, score: Score) -> Mechanism:
    """A record is trained on or held out, never both: the two parts are disjoint."""
    return Disjoint((training, score.noise)) if isinstance(score, NoisyCount) else training


def _check_score(given: Mechanism, score: Score) -> Mechanism:
    noise = [_is_noise(part, score) for part in given.parts] if isinstance(given, Disjoint) and isinstance(score, NoisyCount) else []
    if isinstance(score, NoisyCount) and (not any(noise) or len(noise) < 2):
        raise ParameterError(
            f"`mechanism` must be disjoint(what training leaks, discrete_gaussian(sigma={score.sigma:g})) where the score is a noisy count "
            f"on held-out records, got {shown(str(given))}"
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
        raise ParameterError(f"`mechanism` must cover what the objective says that it runs, {own}, got {shown(str(given))}")


def objective_name(objective: Any) -> str:
    """``module:function``; of a partial, that of the function."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    return named(objective)
