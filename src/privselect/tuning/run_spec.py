"""The specification of a run, fixed before the data is touched, and its hash."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.certificates.canonical import digest
from privselect.errors import AbortedError, ParameterError, PrivselectError
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.release import to_json_bytes
from privselect.tuning.scores import NoisyCount
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.trial import TrialSetup
from privselect.tuning.trial_mechanism import leaks_at_most, mechanism_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.tuning.exports import Export
    from privselect.tuning.scores import Score
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.trial_mechanism import MechanismOf

_VALIDATION_DRAWS = 200  # candidates drawn to check a space before K is drawn


@dataclass(frozen=True, repr=False)
class RunSpec:
    """A trial, the distribution of its candidates and the law of K. Its hash identifies a run; the budget is not part of it."""

    objective: Callable[..., Any]
    space: Space
    mechanism: Mechanism  # of a whole trial, score included
    count: Count
    score: Score
    export: Export | None = None
    fallback: bytes | None = None
    mechanism_of: MechanismOf | None = None  # if the mechanism above dominates what each candidate runs
    mixture_of: MechanismOf | None = None  # if the mechanism above is the mixture of what the candidates run

    def as_dict(self) -> dict[str, Any]:
        """Return the values that are hashed; they are written next to the release, for a reviewer to hash again."""
        return {
            "objective": objective_name(self.objective),
            "space": self.space.as_dict(),
            "mechanism": str(self.mechanism),
            "mechanism_of": None if self.mechanism_of is None else objective_name(self.mechanism_of),
            "count": str(self.count),
            "score": self.score.as_dict() if isinstance(self.score, NoisyCount) else self.score,
            "export": None if self.export is None else self.export.name,
            "fallback": None if self.fallback is None else "sha256:" + sha256(self.fallback).hexdigest(),
        }

    def digest(self) -> str:
        """Return the hash that identifies runs of this specification."""
        return digest(self.as_dict())

    def holdout_key(self) -> bytes:
        """Return the public key that splits off the hold-out, the same in every run, so a record is always on the same side."""
        return bytes.fromhex(self.digest().removeprefix("sha256:"))

    @property
    def define_by_run(self) -> bool:
        """Whether the objective draws its own candidate, which only the trial then knows."""
        return isinstance(self.space, DefineByRunSpace)

    @property
    def checks_candidates(self) -> bool:
        """Whether the mechanism of each candidate is checked."""
        return self.mechanism_of is not None or self.mixture_of is not None

    def trial_setup(self, data: Any, score: Score, **limits: Any) -> TrialSetup:
        """Split off the hold-out, and return what a worker needs to run trials. A candidate that only the trial knows is checked there."""
        data, scorer = score.split(data, self.holdout_key()) if isinstance(score, NoisyCount) else (data, None)
        check = self.candidate_fault if self.define_by_run and self.checks_candidates else None
        return TrialSetup(self.objective, data, scorer, self.export, define_by_run=self.define_by_run, candidate_fault=check, **limits)

    def check_candidate(self, candidate: Candidate) -> None:
        """Stop the run at a candidate that may leak more than declared; a define-by-run candidate is checked in its trial."""
        if not self.define_by_run and (fault := self.candidate_fault(candidate)) is not None:
            raise AbortedError(f"{fault}; nothing is released") from None

    def candidate_fault(self, candidate: Candidate) -> str | None:
        """Return why a candidate may leak more than declared, or None. The text names no candidate, because that could reveal K."""
        try:
            return self._candidate_fault(candidate)
        except Exception:  # noqa: BLE001 - from the user's function
            return "the mechanism of a candidate could not be determined"

    def _candidate_fault(self, candidate: Candidate) -> str | None:
        if self.mixture_of is not None:
            mechanism = mechanism_for(self.mixture_of, candidate)
            if not leaks_at_most(mechanism, mechanism_for(self.mixture_of, self.space.finite_part(candidate))):
                return "the mechanism of a candidate may leak more than the one accounted for; pass a mechanism that covers all candidates"
        if self.mechanism_of is not None and not leaks_at_most(mechanism_for(self.mechanism_of, candidate), self.mechanism):
            return f"a candidate of the space runs a mechanism that may leak more than the declared {format_value(str(self.mechanism))}"
        return None

    def validate_space(self) -> None:
        """Draw candidates unrelated to those of the run, so errors in the space are found before K is drawn."""
        keys = [derive_key(bytes(32), "look", number) for number in range(_VALIDATION_DRAWS)]
        candidates = [self._draw_for_validation(key) for key in keys]
        # A space that keeps a state, such as a walk over a grid, or has its own generator, draws another candidate the second time.
        if candidates != [self._draw_for_validation(key) for key in reversed(keys)][::-1]:
            raise ParameterError("`space` must take all its randomness from `suggest`: the same randomness gave different candidates")
        for candidate in () if self.define_by_run else candidates:
            try:
                fault = self._candidate_fault(candidate)
            except PrivselectError:
                raise
            except Exception as error:
                raise ParameterError(
                    f"`mechanism_of` must return the mechanism of every candidate, got {type(error).__name__}: {error} "
                    f"for {format_value(candidate)}"
                ) from error
            if fault is not None:
                raise ParameterError(fault)

    def _draw_for_validation(self, key: bytes) -> Candidate:
        try:
            candidate = self.space.draw(Stream(key))
            to_json_bytes(candidate)
        except PrivselectError:
            raise
        except Exception as error:
            raise ParameterError(
                f"`space` must draw candidates that can be written as JSON, got {type(error).__name__}: {error}"
            ) from error
        return candidate


def objective_name(objective: Any) -> str:
    """Return ``module:function``. A partial has its function's name; an objective with ``runs`` has both names."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    inner = getattr(objective, "runs", None)
    if inner is None:
        return name_in_plan(objective)
    return f"{name_in_plan(objective)}({inner if isinstance(inner, str) else objective_name(inner)})"
