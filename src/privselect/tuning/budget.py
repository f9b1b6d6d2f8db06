"""A run that is stated by its budget: solve for the open noise before anything is drawn, or find the solution of an earlier run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from privselect.certificates.canonical import digest
from privselect.certificates.certificate import Certificate
from privselect.errors import ParameterError
from privselect.interval import Interval
from privselect.mechanisms import DiscreteGaussian, Disjoint, Mechanism
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.open_spec import UNKNOWN, OpenSpec
from privselect.planning.default_law import default_count
from privselect.planning.plan import plan
from privselect.planning.plan_result import Plan, Problem
from privselect.planning.split import read_split
from privselect.planning.stages import read_stages
from privselect.text_forms import parse
from privselect.tuning.run_registry import find_run_of_problem
from privselect.tuning.scores import NoisyCount

if TYPE_CHECKING:
    from pathlib import Path

    from privselect.counts import Count
    from privselect.tuning.scores import Score


@dataclass(frozen=True)
class BudgetTerms:
    """What the caller states about mechanisms, law of K and budget; noise may be open, and the law of K may be missing."""

    mechanism: Mechanism | OpenSpec  # of a whole search trial
    count: Count | OpenSpec | None
    final: Mechanism | OpenSpec | None
    subsample: Fraction | None
    final_noise: float | None
    split: str | None
    epsilon: float | None
    delta: float
    visible: int | None = None  # the number of trials of a visible search, which has no law of K

    @property
    def is_open(self) -> bool:
        """Whether a number is open."""
        return any(isinstance(part, OpenSpec) for part in (self.mechanism, self.count, self.final))

    def problem(self, identity: dict[str, Any]) -> str | None:
        """Return the hash that finds an earlier run of the same open problem; None if everything is stated.

        The solution is not part of it: another version of privselect may solve for slightly different noise, and a run that was
        killed must be found all the same.
        """
        if not self.is_open and (self.count is not None or self.visible is not None):
            return None
        stated = {name: None if (value := getattr(self, name)) is None else str(value) for name in ("mechanism", "count", "final")}
        split = {"final_noise": self.final_noise, "split": self.split}
        return digest({**identity, **stated, **split, "epsilon": self.epsilon, "delta": self.delta})


def read_terms(  # noqa: PLR0913 - the parts of a budget
    trial: Mechanism | OpenSpec,
    score: Score,
    *,
    count: Any,
    final: Any,
    subsample: Any,
    final_noise: Any,
    split: Any,
    epsilon: float | None,
    delta: float,
    visible: int | None = None,
) -> BudgetTerms:
    """Read the law of K and the final training; add the noise of a noisy count to a trial that is still open."""
    whole_trial = _with_count(trial, score) if isinstance(score, NoisyCount) else trial
    stages = read_stages(whole_trial, count, final, visible=visible, subsample=subsample)
    read_split(final_noise, split, stages)  # refuses two open stages without a rule, and a rule without two open stages
    law = None if count is None else stages.count
    return BudgetTerms(stages.mechanism, law, stages.final, stages.subsample, final_noise, split, epsilon, delta, stages.visible)


def _with_count(trial: Mechanism | OpenSpec, score: NoisyCount) -> Mechanism | OpenSpec:
    """Return an open trial with the noise of its noisy count; a trial that is stated in full must contain the noise already."""
    is_disjoint = isinstance(trial, Disjoint) or (isinstance(trial, OpenSpec) and trial.spec_class is Disjoint)
    if is_disjoint or (isinstance(trial, Mechanism) and score.sigma is not None):
        return trial
    sigma = UNKNOWN if score.sigma is None else score.sigma
    return Disjoint((trial, DiscreteGaussian(sigma=sigma, neighbours=ADD_REMOVE)))  # type: ignore[arg-type]  # an open part makes an OpenSpec


def solve_terms(terms: BudgetTerms, folder: str | Path | None, problem: str | None) -> Plan | None:
    """Return the plan of an open problem, taken from an earlier run of it if the folder of ledgers has one; None if nothing is open."""
    if problem is None:
        return None
    earlier = None if folder is None else find_run_of_problem(folder, problem)
    if earlier is not None:
        stages = read_stages(terms.mechanism, terms.count, terms.final, visible=terms.visible, subsample=terms.subsample)
        asked = Problem.of(stages, final_noise=terms.final_noise, split=terms.split)
        return replace(plan_of_certificate(Certificate.from_json(earlier)), problem=asked)
    if not terms.is_open:
        return None  # only the law of K is missing
    if terms.epsilon is None:
        raise ParameterError("`epsilon` is required to solve for a number that is left open as ?, got none")
    return plan(
        terms.mechanism,
        default_count() if terms.count is None and terms.visible is None else terms.count,
        final=terms.final,
        visible=terms.visible,
        subsample=terms.subsample,
        final_noise=terms.final_noise,
        split=terms.split,
        epsilon=terms.epsilon,
        delta=terms.delta,
    )


def plan_of_certificate(certificate: Certificate) -> Plan:
    """Return the plan that a certificate is about, with its certified cost."""
    terms, total = certificate.plan, certificate.total
    return Plan(
        parse(terms.mechanism),
        None if terms.count is None else parse(terms.count),
        terms.epsilon,
        terms.delta,
        Interval(total.lower, total.upper),
        final=terms.final_training,
        visible=terms.visible,
        subsample=None if terms.subsample is None else Fraction(terms.subsample),
    )


def solved_sigma(trial: Mechanism) -> float | None:
    """Return the noise of the count in a solved trial, None if there is none."""
    parts = trial.parts if isinstance(trial, Disjoint) else ()
    return next((part.sigma for part in reversed(parts) if isinstance(part, DiscreteGaussian)), None)
