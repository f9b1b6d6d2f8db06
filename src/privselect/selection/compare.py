"""Every bound on one selection, or on a search and a final training, compared with one trial alone and with plain composition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.rich_tables import rich_table
from privselect._util.rounding import finite_or_none, format_down, format_up
from privselect._util.safe_search import LARGEST_EPSILON, solve_epsilon
from privselect._util.validation import OPEN_UNIT, check_number, format_value
from privselect.counts import Binomial, Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError, ParameterError
from privselect.interval import Interval
from privselect.mechanisms import Mechanism
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.pairs.compose import ACCURACY
from privselect.selection.bounds.liu_talwar import liu_talwar_epsilon
from privselect.selection.bounds.paper_bounds import cor_binomial_to_poisson_epsilon, thm_hs_bin_epsilon, thm_negbin_epsilon
from privselect.selection.bounds.pointwise import pointwise_delta
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.bounds.renyi_bounds import privacy_profile_of, selection_renyi_curve
from privselect.selection.selection import Selection
from privselect.selection.two_stages import Stages, search_then_train, stages_of
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction
    from pathlib import Path

    from numpy.typing import NDArray
    from rich.table import Table

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Profile = Callable[[Floats], Floats]

_MAX_RUNS, _MAX_MEAN_LOSS = 10**6, 100.0  # plain composition beyond these has no useful guarantee

_ONE_TRIAL = "one trial alone: no law of K was given"
_SELECTION_ONLY = "only for a selection alone"
_ALL_RELEASED = "every search trial released, candidates chosen freely"

MEANINGS = {
    "exact": "the worst mechanism, the worst score",
    "pointwise": "each outcome at its own worst rank",
    "ratio": "one factor, the largest, for all outcomes",
    "paper": "privacy profiles (Koskela, Redberg, Wang)",
    "renyi": "Renyi divergences (Papernot, Steinke)",
    "liu_talwar": "one point of the profile (Liu, Talwar)",
    "composition": "another mechanism: every run released",
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Epsilon at one delta by every bound; ``bounds`` holds None if a bound does not apply, and ``notes`` gives the reason.

    ``base`` is one search trial alone, and ``final_alone`` the final training alone. All bounds are on both stages together.
    """

    mechanism: Mechanism
    count: Count | None
    delta: float
    base: Interval
    bounds: Mapping[str, Interval | float | None]
    selection_gap: float | None
    composition_runs: int | None
    notes: Mapping[str, str]
    visible: int | None = None
    subsample: Fraction | None = None
    final: Mechanism | None = None
    final_alone: Interval | None = None

    @property
    def whole(self) -> Mechanism:
        """Everything that is released, as one mechanism."""
        return search_then_train(self.mechanism, self.count, self.final, visible=self.visible, subsample=self.subsample)

    def as_dict(self) -> dict[str, object]:
        """Return the comparison for JSON, with None for an infinite bound; its note gives the reason."""
        return {
            "delta": self.delta,
            "mechanism": str(self.mechanism),
            "count": None if self.count is None else str(self.count),
            "visible": self.visible,
            "subsample": None if self.subsample is None else str(self.subsample),
            "final": None if self.final is None else str(self.final),
            "base_epsilon": self.base.as_dict(),
            "final_epsilon": None if self.final_alone is None else self.final_alone.as_dict(),
            "bounds": {
                name: bound.as_dict() if isinstance(bound, Interval) else finite_or_none(bound) for name, bound in self.bounds.items()
            },
            "selection_gap": finite_or_none(self.selection_gap),
            "composition_runs": self.composition_runs,
            "notes": dict(self.notes),
        }

    def table(self) -> Table:
        """Return a rich table: each bound with its epsilon, its ratio to the exact bound, and its meaning."""
        exact = _upper(self.bounds["exact"])
        staged = self.final is not None
        rows = [_alone_row("one search trial" if staged else "one trial", "no selection", self.base, exact)]
        if self.final_alone is not None:
            rows.append(_alone_row("final training", "alone, without a search", self.final_alone, exact))
        for name, bound in self.bounds.items() if self.whole != self.mechanism else ():
            usual = _ALL_RELEASED if name == "exact" and self.visible is not None else MEANINGS[name]
            meaning = usual if bound is not None and math.isfinite(_upper(bound)) else self.notes[name]
            epsilon = "-" if bound is None else format_up(_upper(bound))
            rows.append((name, epsilon, _format_quotient(bound, exact), meaning + _format_lower(bound)))
        gap = self.selection_gap
        return rich_table(
            ("bound", "epsilon", "/ exact", "meaning"),
            rows,
            title=f"epsilon at delta = {write_value(self.delta)} of {self.whole}",
            caption=None
            if gap is None
            else f"gap of the selection step (upper/lower - 1): {gap:.1e}; composition: {self.composition_runs} runs",
            right=("epsilon", "/ exact"),
            wrap=("meaning",),
            bold=2 if staged else 1,  # the exact bound
        )

    def plot(self, path: str | Path, over: str | None = None) -> None:
        """Draw the bounds over a range of E K (``over="mean"``) or of delta into a .png, .pdf or .svg file."""
        from privselect.selection.plots import save_comparison_plot

        save_comparison_plot(self.whole, delta=self.delta, path=path, over=over)


def compare(mechanism: Mechanism | Stages, *, delta: float) -> Comparison:
    """Compute every bound on the epsilon of a selection at this delta, or of a search and a final training.

    For any other mechanism, compute epsilon only. The stages may be given instead of the mechanism that they make.
    """
    if not isinstance(mechanism, Mechanism | Stages):
        raise ParameterError(f"`mechanism` must be a mechanism or a selection, got {format_value(mechanism)}")
    at = check_number("delta", delta, OPEN_UNIT)
    if isinstance(mechanism, Stages):
        return compare(mechanism.whole, delta=at) if isinstance(mechanism.whole, Selection) else _compare_stages(mechanism, at)
    if not isinstance(mechanism, Selection):
        return _compare_stages(stages_of(mechanism), at)
    base, count = mechanism.mechanism, mechanism.count
    bounds: dict[str, Interval | float | None] = {"exact": mechanism.epsilon_at(at)}
    notes: dict[str, str] = {}
    for name, bound in BOUNDS.items():
        try:
            bounds[name] = bound(base, count, at)
        except NotCoveredError as reason:
            bounds[name], notes[name] = None, str(reason)
    for name, value in bounds.items():
        if value is not None and math.isinf(_upper(value)):
            notes[name] = f"infinite: no epsilon below {LARGEST_EPSILON:g} is proved at delta {at:g}"
    if math.isinf(_upper(bounds["renyi"])) and not np.isfinite(base.renyi_at(1.001)):
        notes["renyi"] = "infinite: a trial may reveal everything, so its Renyi divergences are infinite"
    runs = composition_runs(count)
    if "composition" not in notes:
        notes["composition"] = f"another mechanism, not a bound on this one: {runs} run{'s' if runs > 1 else ''}, every output released"
    return Comparison(base, count, at, base.epsilon_at(at), bounds, mechanism.selection_gap(at), runs, notes)


def _compare_stages(stages: Stages, delta: float) -> Comparison:
    from privselect.selection.staged_bounds import STAGED_BOUNDS

    mechanism, trial = stages.whole, stages.mechanism
    bounds = dict[str, Interval | float | None](dict.fromkeys(MEANINGS))
    if trial == mechanism:
        return Comparison(trial, None, delta, trial.epsilon_at(delta), bounds, None, None, dict.fromkeys(MEANINGS, _ONE_TRIAL))
    bounds["exact"] = mechanism.epsilon_at(delta)
    notes = dict.fromkeys(("pointwise", "ratio", "liu_talwar"), _SELECTION_ONLY)
    for name, bound in STAGED_BOUNDS.items():
        try:
            bounds[name] = value = bound(stages, delta)
        except NotCoveredError as reason:
            notes[name] = str(reason)
        else:
            if math.isinf(value):
                notes[name] = f"infinite: no epsilon below {LARGEST_EPSILON:g} is proved at delta {delta:g}"
    runs = None if stages.count is None else composition_runs(stages.count)
    if "composition" not in notes:
        notes["composition"] = (
            f"another mechanism, not a bound on this one: {runs} search trials, every output released, then the final training"
        )
    return Comparison(
        trial,
        stages.count,
        delta,
        stages.one_trial.epsilon_at(delta),
        bounds,
        None,
        runs,
        notes,
        visible=stages.visible,
        subsample=stages.subsample,
        final=stages.final,
        final_alone=None if stages.final is None else stages.final.epsilon_at(delta),
    )


# -- one function per bound: epsilon at delta, or NotCoveredError with the reason -----------------------------------------
# Each takes the maximum over the cases of a trial: all trials of a run are of one case.

_PAPER_BOUNDS: dict[type[Count], Callable[[Profile, Count, float], float]] = {
    TruncatedNegativeBinomial: thm_negbin_epsilon,
    Binomial: thm_hs_bin_epsilon,
    Poisson: cor_binomial_to_poisson_epsilon,
}


def pointwise_bound(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Return epsilon by **Pointwise**, the maximum over both orders of the neighbours."""

    def epsilon(pair: DominatingPair) -> float:
        return solve_epsilon(lambda epsilon: pointwise_delta(pair, count, epsilon), delta, tolerance=1e-6)

    return max(epsilon(bracket.upper) for bracket in mechanism.brackets)


def ratio_bound(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Return epsilon by **Ratio**, the maximum over both orders of the neighbours."""
    return max(ratio_epsilon(bracket.upper, count, delta) for bracket in mechanism.brackets)


def paper_bound(mechanism: Mechanism, count: Count, delta: float, accuracy: float = ACCURACY) -> float:
    """Return epsilon by the paper's bound for this law of K: thm:negbin, thm:hs_bin or cor:binomial_to_poisson."""
    if count.cap is not None:
        raise NotCoveredError("the paper has no bound for a capped law of K")
    for family, bound in _PAPER_BOUNDS.items():
        if isinstance(count, family):
            return max(bound(privacy_profile_of(case, accuracy), count, delta) for case in mechanism.cases)
    raise NotCoveredError(f"the paper has no bound for {count.text_name} K")


def renyi_bound(mechanism: Mechanism, count: Count, delta: float, accuracy: float = ACCURACY) -> float:
    """Return epsilon by Papernot and Steinke's bound, converted by lem:rdp_to_dp."""
    return max(lem_rdp_to_dp_epsilon(selection_renyi_curve(case, count, accuracy), delta) for case in mechanism.cases)


def liu_talwar_bound(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Return epsilon by Liu and Talwar's bound."""
    if count.cap is not None or not isinstance(count, TruncatedNegativeBinomial) or count.eta != 1.0:
        raise NotCoveredError("Liu and Talwar cover uncapped geometric K")
    return max(liu_talwar_epsilon(privacy_profile_of(case), count, delta) for case in mechanism.cases)


def composition_bound(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Return epsilon of ``ceil(E K)`` runs, every output released: another mechanism, not a bound on the selection.

    Claim: ``runs`` independent trials are (epsilon, delta)-DP together at the epsilon where the ``runs``-fold composition of each
    dominating pair falls to delta. Holds when the runs are independent trials and the number of runs is fixed beforehand.
    Label: Plain composition.
    """
    return composed_epsilon(mechanism, composition_runs(count), delta)


def composed_epsilon(mechanism: Mechanism, runs: int, delta: float, accuracy: float = ACCURACY) -> float:
    """Return epsilon of this number of runs, every output released."""
    if runs == 1:
        return _upper(mechanism.epsilon_at(delta))
    require_composable(mechanism, runs)
    return max(float(pair.epsilon_at(delta, side=1)) for pair in _composed_pairs(mechanism, runs, accuracy))


def require_composable(mechanism: Mechanism, runs: int) -> None:
    """Raise NotCoveredError if this number of runs, every output released, has no useful guarantee."""
    mean_loss = sum(times * max(_mean_loss(bracket.upper) for bracket in step.brackets) for step, times in mechanism.composition_steps())
    if runs > _MAX_RUNS or runs * mean_loss > _MAX_MEAN_LOSS:
        raise NotCoveredError(f"{runs} runs, every output released, leak too much: no epsilon is computed")


BOUNDS: dict[str, Callable[[Mechanism, Count, float], float]] = {
    "pointwise": pointwise_bound,
    "ratio": ratio_bound,
    "paper": paper_bound,
    "renyi": renyi_bound,
    "liu_talwar": liu_talwar_bound,
    "composition": composition_bound,
}


def composition_runs(count: Count) -> int:
    """Return ``ceil(E K)``, at least 1; rounding errors are ignored, for example in a mean of 1/(1/3)."""
    return max(math.ceil(count.expected() * (1.0 - 1e-12)), 1)


@lru_cache(maxsize=8)
def _composed_pairs(mechanism: Mechanism, runs: int, accuracy: float) -> tuple[DominatingPair, ...]:
    return mechanism.composed_pairs(runs, accuracy)


def _mean_loss(pair: DominatingPair) -> float:
    return float(pair.p @ pair.losses)


def _upper(bound: Interval | float | None) -> float:
    if bound is None:
        return math.nan
    return float(bound.upper if isinstance(bound, Interval) else bound)


def _alone_row(name: str, meaning: str, epsilon: Interval, exact: float) -> tuple[str, str, str, str]:
    return name, format_up(_upper(epsilon)), _format_quotient(epsilon, exact), meaning + _format_lower(epsilon)


def _format_lower(bound: Interval | float | None) -> str:
    lower = float(bound.lower) if isinstance(bound, Interval) and bound.lower is not None else math.nan
    return f", >= {format_down(lower)}" if math.isfinite(lower) else ""


def _format_quotient(bound: Interval | float | None, exact: float) -> str:
    quotient = _upper(bound) / exact if exact > 0.0 else math.nan
    return f"{quotient:.3f}" if math.isfinite(quotient) else ""
