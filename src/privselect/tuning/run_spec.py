"""The specification of a run, fixed before the data is touched, and its hash."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from privselect.certificates.canonical import digest
from privselect.tuning.candidate_checks import CandidateChecks
from privselect.tuning.ledger import FINAL, SEARCH
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.scores import NoisyCount
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.subsample import HOLDOUT, TRAINING, draw_sample
from privselect.tuning.told import Told, told_names
from privselect.tuning.trial import TrialSetup

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.tuning.exports import Export
    from privselect.tuning.scores import Score
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.transfer import Transfer
    from privselect.tuning.trial_mechanism import MechanismOf, TrialMechanism


@dataclass(frozen=True, repr=False)
class FinalTraining:
    """The second stage of a run: one training on all records, with a candidate that is a function of the winner's."""

    mechanism: Mechanism
    transfer: Transfer
    mechanism_of: MechanismOf | None = None  # what the objective states that it runs in it for each candidate


@dataclass(frozen=True, repr=False)
class RunSpec:
    """A trial, the distribution of its candidates, the law of K and the final training.

    The hash of a specification identifies a run; the budget is not part of it.
    """

    objective: Callable[..., Any]
    space: Space
    trial: TrialMechanism
    count: Count
    score: Score
    export: Export | None = None
    fallback: bytes | None = None
    final: FinalTraining | None = None  # None: the best trial itself is released
    subsample: Fraction | None = None  # the probability of each record to be in the sample of the search; None for all records

    def as_dict(self) -> dict[str, Any]:
        """Return the values that are hashed; they are written next to the release, for a reviewer to hash again."""
        mechanism_of = self.trial.mechanism_of
        return {
            "objective": objective_name(self.objective),
            "space": self.space.as_dict(),
            "mechanism": str(self.mechanism),
            "mechanism_of": None if mechanism_of is None else objective_name(mechanism_of),
            "count": str(self.count),
            "score": self.score.as_dict() if isinstance(self.score, NoisyCount) else self.score,
            "export": None if self.export is None else self.export.name,
            "fallback": None if self.fallback is None else "sha256:" + sha256(self.fallback).hexdigest(),
            "subsample": None if self.subsample is None else str(self.subsample),
            "final": None if self.final is None else str(self.final.mechanism),
            "transfer": None if self.final is None else self.final.transfer.name,
        }

    def digest(self) -> str:
        """Return the hash that identifies runs of this specification."""
        return digest(self.as_dict())

    def holdout_key(self) -> bytes:
        """Return the public key that splits off the hold-out, the same in every run, so a record is always on the same side."""
        return bytes.fromhex(self.digest().removeprefix("sha256:"))

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of a whole search trial, score included."""
        return self.trial.mechanism

    @property
    def visible(self) -> int | None:
        """The number of trials if all of them are shown; None for a search that releases only the best of K trials."""
        return None

    @property
    def final_mechanism(self) -> Mechanism | None:
        """The mechanism of the final training; None without one."""
        return None if self.final is None else self.final.mechanism

    @property
    def define_by_run(self) -> bool:
        """Whether the objective draws its own candidate, which only the trial then knows."""
        return isinstance(self.space, DefineByRunSpace)

    @property
    def checks(self) -> CandidateChecks:
        """The checks of candidates."""
        return CandidateChecks(self.space, self.trial, self.final)

    @property
    def told(self) -> tuple[str, ...]:
        """The keywords that the objective takes."""
        return told_names(self.objective)

    # -- what the workers need ------------------------------------------------------------------------------------------------

    def search_setup(self, data: Any, score: Score, secret: bytes, **limits: Any) -> TrialSetup:
        """Split off the hold-out, draw the sample, and return what a worker needs to run search trials."""
        holdout = None
        if isinstance(score, NoisyCount):
            data, holdout = score.split(data, self.holdout_key())
        if self.subsample is not None:
            data = draw_sample(data, self.subsample, secret, TRAINING)
            holdout = None if holdout is None else draw_sample(holdout, self.subsample, secret, HOLDOUT)
        training = self.trial.training(self.score)
        if self.define_by_run and callable(training):
            training = self.trial.covering_training(self.score)  # the candidate is not known when the trial is told
        checks = self.checks
        return TrialSetup(
            self.objective,
            data,
            score.scorer(holdout) if isinstance(score, NoisyCount) else None,
            self.export if self.final is None else None,  # what a search trial trained is not released if a final training follows
            define_by_run=self.define_by_run,
            candidate_fault=checks.safe_search_fault if self.define_by_run and checks.any_mechanism else None,
            told=self._told(SEARCH, training),
            **limits,
        )

    def final_setup(self, final: FinalTraining, data: Any, **limits: Any) -> TrialSetup:
        """Return what a worker needs for the final training on all records."""
        return TrialSetup(
            self.objective,
            data,
            None,
            self.export,
            define_by_run=self.define_by_run,
            candidate_fault=self.checks.safe_final_fault if self.define_by_run and final.mechanism_of is not None else None,
            told=self._told(FINAL, final.mechanism),
            is_final=True,
            **limits,
        )

    def _told(self, stage: str, training: Mechanism | MechanismOf) -> Told | None:
        names = self.told
        return Told(stage, training, names) if names else None

    def final_candidate(self, transferred: Candidate) -> Candidate:
        """Return a candidate of the final training in the form in which a worker gets it."""
        return self.space.final_candidate(transferred) if isinstance(self.space, DefineByRunSpace) else transferred


def objective_name(objective: Any) -> str:
    """Return ``module:function``. A partial has its function's name; an objective with ``runs`` has both names."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    inner = getattr(objective, "runs", None)
    if inner is None:
        return name_in_plan(objective)
    return f"{name_in_plan(objective)}({inner if isinstance(inner, str) else objective_name(inner)})"
