"""Every bound on one selection, side by side with one trial alone and with plain composition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.rounding import format_down, format_up
from privselect._util.validation import OPEN_UNIT, check_number, format_value
from privselect.counts import Binomial, Poisson
from privselect.counts.truncated_negative_binomial import Truncated
from privselect.errors import MissingExtraError, NotCoveredError, ParameterError
from privselect.interval import Interval
from privselect.mechanisms import Mechanism
from privselect.mechanisms.renyi_to_dp import lem_rdp_to_dp_epsilon
from privselect.pairs.compose import ACCURACY
from privselect.selection.bounds.liu_talwar import liu_talwar_epsilon
from privselect.selection.bounds.paper_bounds import cor_binomial_to_poisson_epsilon, thm_hs_bin_epsilon, thm_negbin_epsilon
from privselect.selection.bounds.pointwise import pointwise_delta
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.bounds.renyi_bounds import profile_of, selection_curve
from privselect.selection.safe_search import LARGEST_EPSILON, solve_epsilon
from privselect.selection.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray
    from rich.table import Table

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Curve = Callable[[Floats], Floats]

_MOST_RUNS, _LARGEST_MEAN_LOSS = 10**6, 100.0  # plain composition beyond these is of no use to anyone

_ALONE = "one trial alone: no law of K was given"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Epsilon at one delta by every bound; ``bounds`` holds None where a bound does not apply, and ``notes`` says why."""

    mechanism: Mechanism
    count: Count | None
    delta: float
    base: Interval
    bounds: Mapping[str, Interval | float | None]
    selection_gap: float | None
    composition_runs: int | None
    notes: Mapping[str, str]

    def as_dict(self) -> dict[str, object]:
        """For JSON: None also where a bound is infinite, with a note that says so."""
        return {
            "delta": self.delta,
            "mechanism": str(self.mechanism),
            "count": None if self.count is None else str(self.count),
            "base_epsilon": self.base.as_dict(),
            "bounds": {name: _plain(bound) for name, bound in self.bounds.items()},
            "selection_gap": _plain(self.selection_gap),
            "composition_runs": self.composition_runs,
            "notes": dict(self.notes),
        }

    def table(self) -> Table:
        """A rich table: each bound with its epsilon, its ratio to the exact answer, and its meaning."""
        try:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table
        except ModuleNotFoundError:
            raise MissingExtraError("the table needs rich; install it with: pip install 'privselect[cli]'") from None
        table = Table(
            title=f"epsilon at delta = {write_value(self.delta)} of {self._whole}",
            title_justify="left",
            caption_justify="left",
            box=SIMPLE_HEAD,
        )
        table.add_column("bound", no_wrap=True)
        table.add_column("epsilon", justify="right", no_wrap=True)
        table.add_column("/ exact", justify="right", no_wrap=True)
        table.add_column("meaning")
        exact = _upper(self.bounds["exact"])
        table.add_row("one trial", _shown(self.base), _quotient(self.base, exact), f"no selection{_at_least(self.base)}")
        if self.count is None:
            return table
        for name, bound in self.bounds.items():
            meaning = MEANINGS[name] if bound is not None and math.isfinite(_upper(bound)) else self.notes[name]
            if isinstance(bound, Interval):
                meaning += _at_least(bound)
            table.add_row(name, _shown(bound), _quotient(bound, exact), meaning, style="bold" if name == "exact" else None)
        if self.selection_gap is not None:
            table.caption = (
                f"gap of the selection step (upper/lower - 1): {self.selection_gap:.1e}; composition: {self.composition_runs} runs"
            )
        return table

    def plot(self, path: str | Path, over: str | None = None) -> None:
        """Draw the bounds over a range of E K (``over="mean"``) or of delta into a .png, .pdf or .svg file."""
        from privselect.selection.plots import draw

        draw(self._whole, delta=self.delta, path=path, over=over)

    @property
    def _whole(self) -> Mechanism:
        return self.mechanism if self.count is None else Selection(self.mechanism, self.count)


MEANINGS = {
    "exact": "the worst mechanism, the worst score",
    "pointwise": "each outcome at its own worst rank",
    "ratio": "one factor, the largest, for all outcomes",
    "paper": "privacy profiles (Koskela, Redberg, Wang)",
    "renyi": "Renyi divergences (Papernot, Steinke)",
    "liu_talwar": "one point of the profile (Liu, Talwar)",
    "composition": "another mechanism: every run released",
}


def compare(mechanism: Mechanism, *, delta: float) -> Comparison:
    """Every bound on the epsilon of a selection at this delta; of any other mechanism, epsilon alone."""
    if not isinstance(mechanism, Mechanism):
        raise ParameterError(f"`mechanism` must be a mechanism or a selection, got {format_value(mechanism)}")
    at = check_number("delta", delta, OPEN_UNIT)
    if not isinstance(mechanism, Selection):
        nothing: dict[str, Interval | float | None] = dict.fromkeys(MEANINGS)
        return Comparison(mechanism, None, at, mechanism.epsilon_at(at), nothing, None, None, dict.fromkeys(MEANINGS, _ALONE))
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
            notes[name] = f"infinite: nothing below {LARGEST_EPSILON:g} proved at delta {at:g}"
    if math.isinf(_upper(bounds["renyi"])) and not np.isfinite(base.renyi_at(1.001)):
        notes["renyi"] = "infinite: a trial may leak everything, so no Renyi divergence of it is finite"
    runs = composed_runs(count)
    if "composition" not in notes:
        notes["composition"] = f"another mechanism, not a bound on this one: {runs} run{'s' if runs > 1 else ''}, every output released"
    return Comparison(base, count, at, base.epsilon_at(at), bounds, mechanism.selection_gap(at), runs, notes)


# -- one function per bound: epsilon at delta, or NotCoveredError with the reason -----------------------------------------
# Each is the greatest over the cases of a trial, one of which all trials are of.

_PAPER: dict[type[Count], Callable[[Curve, Count, float], float]] = {
    Truncated: thm_negbin_epsilon,
    Binomial: thm_hs_bin_epsilon,
    Poisson: cor_binomial_to_poisson_epsilon,
}


def pointwise(mechanism: Mechanism, count: Count, delta: float) -> float:
    """**Pointwise**, the greater of the two orders of the neighbours."""

    def at(pair: DominatingPair) -> float:
        return solve_epsilon(lambda epsilon: pointwise_delta(pair, count, epsilon), delta, tolerance=1e-6)

    return max(at(bracket.upper) for bracket in mechanism.brackets)


def ratio(mechanism: Mechanism, count: Count, delta: float) -> float:
    """**Ratio**, the greater of the two orders of the neighbours."""
    return max(ratio_epsilon(bracket.upper, count, delta) for bracket in mechanism.brackets)


def paper(mechanism: Mechanism, count: Count, delta: float, accuracy: float = ACCURACY) -> float:
    """The paper's own bound for this law of K: thm:negbin, thm:hs_bin or cor:binomial_to_poisson."""
    _refuse_cap("the paper has no bound", count)
    for law, bound in _PAPER.items():
        if isinstance(count, law):
            return max(bound(profile_of(case, accuracy), count, delta) for case in mechanism.cases)
    raise NotCoveredError(f"the paper has no bound for {count.text_name} K")


def renyi(mechanism: Mechanism, count: Count, delta: float, accuracy: float = ACCURACY) -> float:
    """Papernot and Steinke's bound, converted by lem:rdp_to_dp."""
    return max(lem_rdp_to_dp_epsilon(selection_curve(case, count, accuracy), delta) for case in mechanism.cases)


def liu_talwar(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Liu and Talwar's bound."""
    if count.cap is not None or not isinstance(count, Truncated) or count.eta != 1.0:
        raise NotCoveredError("Liu and Talwar cover uncapped geometric K")
    return max(liu_talwar_epsilon(profile_of(case), count, delta) for case in mechanism.cases)


def composition(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Plain composition of ``ceil(E K)`` runs, every output released: another mechanism, no bound on the selection.

    Claim: ``runs`` independent trials are (epsilon, delta)-DP together at the epsilon where the ``runs``-fold composition of each
    dominating pair falls to delta. Holds when every run is a trial of its own and the number of runs is fixed beforehand.
    Label: Plain composition.
    """
    return released_epsilon(mechanism, composed_runs(count), delta)


def released_epsilon(mechanism: Mechanism, runs: int, delta: float, accuracy: float = ACCURACY) -> float:
    """Epsilon of so many runs, every output released."""
    if runs == 1:
        return _upper(mechanism.epsilon_at(delta))
    mean_loss = sum(times * max(_mean_loss(bracket.upper) for bracket in step.brackets) for step, times in mechanism.as_parts())
    if runs > _MOST_RUNS or runs * mean_loss > _LARGEST_MEAN_LOSS:
        raise NotCoveredError(f"{runs} runs, every output released, leak too much to be worth computing")
    return max(float(pair.epsilon_at(delta, side=1)) for pair in _repeated(mechanism, runs, accuracy))


BOUNDS: dict[str, Callable[[Mechanism, Count, float], float]] = {
    "pointwise": pointwise,
    "ratio": ratio,
    "paper": paper,
    "renyi": renyi,
    "liu_talwar": liu_talwar,
    "composition": composition,
}


def composed_runs(count: Count) -> int:
    """``ceil(E K)``, at least 1; a mean such as 1/(1/3) counts as the whole number it is meant to be."""
    return max(math.ceil(count.expected() * (1.0 - 1e-12)), 1)


def _refuse_cap(complaint: str, count: Count) -> None:
    if count.cap is not None:
        raise NotCoveredError(f"{complaint} for a capped law of K")


@lru_cache(maxsize=8)
def _repeated(mechanism: Mechanism, runs: int, accuracy: float) -> tuple[DominatingPair, ...]:
    return mechanism.repeated(runs, accuracy)


def _mean_loss(pair: DominatingPair) -> float:
    return float(pair.p @ pair.losses)


# -- showing ---------------------------------------------------------------------------------------------------------------


def _upper(bound: Interval | float | None) -> float:
    if bound is None:
        return math.nan
    return float(bound.upper if isinstance(bound, Interval) else bound)


def _plain(bound: Interval | float | None) -> object:
    if isinstance(bound, Interval):
        return bound.as_dict()
    return bound if bound is not None and math.isfinite(bound) else None


def _shown(bound: Interval | float | None) -> str:
    value = _upper(bound)
    if bound is None:
        return "-"
    return format_up(value)


def _at_least(interval: Interval) -> str:
    lower = math.nan if interval.lower is None else float(interval.lower)
    return f", >= {format_down(lower)}" if math.isfinite(lower) else ""


def _quotient(bound: Interval | float | None, exact: float) -> str:
    quotient = _upper(bound) / exact if exact > 0.0 else math.nan
    return f"{quotient:.3f}" if math.isfinite(quotient) else ""
