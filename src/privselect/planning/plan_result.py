"""A solved plan: the mechanisms of both stages, the certified cost, and what the law of K says about the number of trials."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from privselect._util.rounding import format_down, format_up
from privselect._util.validation import OPEN_UNIT, check_number
from privselect.counts.fixed import Fixed
from privselect.errors import ParameterError
from privselect.selection.two_stages import search_then_train
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from fractions import Fraction

    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.mechanisms.base import Mechanism
    from privselect.planning.stages import OpenStages

TOP_FRACTIONS = (0.01, 0.05, 0.1)
QUANTILES = (0.5, 0.9, 0.99)

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_SMALLEST = 1e-20  # below it phi' is constant for every law of K with a mean up to 1e15
_PANELS = 160

_BASELINE_LABELS = {
    "paper": "by the paper's bound",
    "renyi": "by Renyi divergences",
    "composition": "with every run released",
    "full_release": "with every score released",
}


class Solved(NamedTuple):
    """An open number of a plan and its solution; ``stage`` is "search" or "final"."""

    stage: str
    parameter: str
    value: float


@dataclass(frozen=True, slots=True)
class Problem:
    """The text forms that a plan was solved from, with open numbers written as ``?``, and the rule that divided the budget."""

    mechanism: str
    count: str | None = None
    final: str | None = None
    final_noise: float | None = None
    split: str | None = None

    @classmethod
    def of(cls, stages: OpenStages, *, final_noise: float | None = None, split: str | None = None) -> Problem:
        """Return the problem of stages with open numbers."""
        count, final = (None if part is None else str(part) for part in (stages.count, stages.final))
        return cls(str(stages.mechanism), count, final, final_noise, split)


@dataclass(frozen=True, slots=True)
class Plan:
    """A search, and a final training after it, that meet the budget (epsilon, delta), and the numbers that were solved for.

    - ``mechanism``, ``count``: one search trial and the law of K; ``count`` is None for a visible search, or for one trial alone.
    - ``cost``: the certified epsilon at delta.
    - ``solved``: each open number with its solution.
    - ``final``, ``visible``, ``subsample``: the final training, the number of visible trials, the probability of a record to be in
      the sample of the search; None if there is none.
    - ``problem``: what the plan was solved from.
    - ``reasons``: what was chosen and why, for people.
    - ``baselines``: the value that each other bound needs for the same budget; None if there is none, for a reason in ``notes``.
    - ``feasible_ranges``: if the parameter is a cap, every range (first, last) that meets the budget; ``last`` is None if unbounded.
    """

    mechanism: Mechanism
    count: Count | None
    epsilon: float
    delta: float
    cost: Interval
    solved: tuple[Solved, ...] = ()
    final: Mechanism | None = None
    visible: int | None = None
    subsample: Fraction | None = None
    problem: Problem | None = None
    reasons: tuple[str, ...] = ()
    baselines: Mapping[str, float | None] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    feasible_ranges: tuple[tuple[int, int | None], ...] | None = None

    @property
    def search(self) -> Mechanism:
        """Everything that the search releases, as one mechanism."""
        return search_then_train(self.mechanism, self.count, visible=self.visible, subsample=self.subsample)

    @property
    def whole(self) -> Mechanism:
        """Everything that is released, as one mechanism."""
        return search_then_train(self.mechanism, self.count, self.final, visible=self.visible, subsample=self.subsample)

    @property
    def value(self) -> float | None:
        """The solution of the only open number, or None if nothing was open."""
        if len(self.solved) > 1:
            raise ParameterError(f"the plan was solved for {len(self.solved)} numbers: read `solved`, got a request for `value`")
        return self.solved[0].value if self.solved else None

    @property
    def law(self) -> Count | None:
        """The law of the number of trials: for a visible search, the fixed number; None for one trial alone."""
        return self.count if self.visible is None else Fixed(self.visible)

    def success_probability(self, tau: float) -> float:
        """Return the probability that at least one of independent trials is in the best fraction ``tau`` of the search space."""
        return success_probability(self.law, tau)

    def trials(self) -> dict[str, Any]:
        """Return the mean and quantiles of K, the probability of K = 0, and success probabilities."""
        law = self.law
        return {
            "expected": 1.0 if law is None else law.expected(),
            "quantiles": {str(q): 1 if law is None else law.quantile(q) for q in QUANTILES},
            "probability_of_zero": 0.0 if law is None else law.probability_of_zero(),
            "success_probability": {str(tau): self.success_probability(tau) for tau in TOP_FRACTIONS},
        }

    def as_dict(self) -> dict[str, object]:
        """Return the plan as JSON data."""
        return {
            "mechanism": str(self.mechanism),
            "count": None if self.count is None else str(self.count),
            "visible": self.visible,
            "subsample": None if self.subsample is None else str(self.subsample),
            "final": None if self.final is None else str(self.final),
            "epsilon": self.cost.as_dict(),
            "delta": self.delta,
            "budget": self.epsilon,
            "solved": [one._asdict() for one in self.solved],
            "reasons": list(self.reasons),
            "problem": None if self.problem is None else asdict(self.problem),
            "feasible_ranges": None if self.feasible_ranges is None else [list(range_) for range_ in self.feasible_ranges],
            "baselines": dict(self.baselines),
            "notes": dict(self.notes),
            "trials": self.trials(),
        }

    def summary(self) -> str:
        """Return the plan as lines of text; text forms are complete, so they can be copied."""
        lines = list(_summary_lines(self))
        width = max(len(label) for label, _ in lines)
        return "\n".join(f"{label:{width}}  {text}" for label, text in lines)


def survival_function(count: Count, last: int) -> list[float]:
    """Return ``P(K >= k)`` for k from 0 to ``last``."""
    below = np.concatenate([[0.0], np.cumsum(np.exp(count.log_pmf(np.arange(last))))])
    return [float(one) for one in np.clip(1.0 - below, 0.0, 1.0)]


def success_probability(count: Count | None, tau: float) -> float:
    """Return the probability that at least one of K trials is in the best fraction ``tau`` of the search space; None is one trial.

    It is ``1 - phi(1-tau)``, the integral of ``phi'(1-u)`` over [0, tau]; the integrand is smooth in log u.
    """
    fraction = check_number("tau", tau, OPEN_UNIT)
    if count is None:
        return fraction
    edges = np.concatenate([[0.0], np.geomspace(_SMALLEST * fraction, fraction, _PANELS)])
    half, middle = 0.5 * np.diff(edges), 0.5 * (edges[1:] + edges[:-1])
    values = np.exp(count.log_dpgf(middle[:, None] + half[:, None] * _NODES))
    return min(float((values @ _WEIGHTS) @ half), 1.0)


def _summary_lines(plan: Plan) -> Iterator[tuple[str, str]]:
    lower = "" if plan.cost.lower is None else f", and at least {format_down(float(plan.cost.lower), 6)}"
    two_stage = plan.final is not None
    yield "search trial" if two_stage else "mechanism", str(plan.mechanism)
    if plan.visible is not None:
        yield "visible trials", f"{plan.visible}, all released; each candidate may depend on earlier results"
    else:
        yield "law of K", "one trial" if plan.count is None else str(plan.count)
    if plan.subsample is not None:
        yield "search sample", f"each record with probability {plan.subsample}, drawn once for all trials"
    if plan.final is not None:
        yield "final training", str(plan.final)
    yield "budget", f"epsilon {write_value(plan.epsilon)} at delta {write_value(plan.delta)}"
    yield "certified", f"epsilon {format_up(float(plan.cost.upper), 6)}{lower}"
    for one in plan.solved:
        yield f"{one.stage} {one.parameter}" if two_stage else one.parameter, f"{write_value(one.value)}"
    for reason in plan.reasons:
        yield "  reason", reason
    if plan.feasible_ranges is not None:
        yield "  feasible values", ", ".join(_format_range(*range_) for range_ in plan.feasible_ranges)
    for name, value in plan.baselines.items():
        yield f"  {_BASELINE_LABELS[name]}", plan.notes[name] if value is None else f"{write_value(value)}{_ratio(value, plan.value)}"
    if plan.law is not None:
        yield from _trial_lines(plan)


def _trial_lines(plan: Plan) -> Iterator[tuple[str, str]]:
    trials = plan.trials()
    if plan.visible is None:
        quantiles = ", ".join(f"{k} at {100 * float(q):g}%" for q, k in trials["quantiles"].items())
        yield "trials", f"{trials['expected']:.6g} expected; quantiles of K: {quantiles}"
        if trials["probability_of_zero"] > 0.0:
            yield "  P(no trial)", f"{_percent(trials['probability_of_zero'])}; a fixed symbol is then released"
    success = ", ".join(f"{_percent(value)} for the best {100 * float(tau):g}%" for tau, value in trials["success_probability"].items())
    label, condition = ("  P(good trial)", "") if plan.visible is None else ("P(good trial)", ", if drawn independently")
    yield label, f"{success} of candidates{condition}"


def _percent(probability: float) -> str:
    return f"{format_down(100.0 * probability, 1)}%" if probability >= 1e-3 else f"{100.0 * probability:.2g}%"


def _format_range(first: int, last: int | None) -> str:
    return f"{first} and more" if last is None else f"{first}" if first == last else f"{first} to {last}"


def _ratio(value: float, exact: float | None) -> str:
    return f"  (factor {value / exact:.3g})" if exact and exact > 0.0 < value else ""
