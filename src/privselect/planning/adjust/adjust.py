"""Calculate how many DP-SGD steps each candidate noise level may take."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from privselect._util.rich_tables import rich_table
from privselect._util.rounding import format_up
from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import OPEN_UNIT, Range, check_number, format_value
from privselect.counts.base import Count
from privselect.errors import NotCoveredError, ParameterError
from privselect.planning.adjust.cor_adjust import cor_adjust_steps, thresholds_for_base, thresholds_for_total
from privselect.planning.adjust.mixture import SelectionCost, check_candidates, mixture_steps
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rich.table import Table

    from privselect.interval import Interval
    from privselect.mechanisms import Mixture
    from privselect.planning.adjust.cor_adjust import Thresholds

_EPSILONS = Range(0.0, LARGEST_EPSILON, low_open=True, high_open=False)


@dataclass(frozen=True, slots=True)
class CandidateSteps:
    """The number of steps of one candidate; ``cor_adjust_steps`` is None if ``cor:adjust`` does not apply."""

    noise_multiplier: float
    probability: Fraction
    share: Fraction
    cor_adjust_steps: int | None
    steps: int

    @property
    def gain(self) -> float | None:
        """The relative number of additional steps by the mixture: 0.5 is half as many again."""
        return None if self.cor_adjust_steps is None else self.steps / self.cor_adjust_steps - 1.0

    def as_dict(self) -> dict[str, object]:
        """Return JSON data, with probability and share as exact fractions."""
        return {**asdict(self), "probability": str(self.probability), "share": str(self.share), "gain": self.gain}


@dataclass(frozen=True, slots=True)
class AdjustResult:
    """Numbers of steps for the budget (epsilon, delta) of the whole selection.

    - ``mechanism``: the mixture of all candidates with their steps.
    - ``cost``: the certified epsilon of the selection over ``mechanism``.
    - ``thresholds``, ``cor_adjust_cost``: the thresholds of ``cor:adjust``, and the certified epsilon with its numbers of steps. Both
      are None if ``cor:adjust`` does not apply, for the reason in ``note``.
    """

    count: Count
    delta: float
    epsilon: float
    mechanism: Mixture
    candidates: tuple[CandidateSteps, ...]
    cost: Interval
    thresholds: Thresholds | None
    cor_adjust_cost: Interval | None
    note: str | None

    @property
    def selection(self) -> Selection:
        """The selection of the best of K trials of the mixture."""
        return Selection(self.mechanism, self.count)

    def as_dict(self) -> dict[str, object]:
        """Return JSON data."""
        bound = self.thresholds
        return {
            "delta": self.delta,
            "epsilon": self.epsilon,
            "count": str(self.count),
            "mechanism": str(self.mechanism),
            "cost": self.cost.as_dict(),
            "candidates": [candidate.as_dict() for candidate in self.candidates],
            "cor_adjust": None
            if bound is None or self.cor_adjust_cost is None
            else {
                "epsilon_base": bound.epsilon_base,
                "thresholds": [{"epsilon": epsilon, "delta": delta} for epsilon, delta in bound.points],
                "epsilon": bound.epsilon,
                "cost": self.cor_adjust_cost.as_dict(),
            },
            "note": self.note,
        }

    def table(self) -> Table:
        """Return a rich table: a row for each candidate, and the costs below it."""
        headings = ("noise", "probability", "share of delta", "cor:adjust", "mixture", "gain")
        rows = (
            (
                f"{row.noise_multiplier:g}",
                _format_fraction(row.probability),
                _format_fraction(row.share),
                "-" if row.cor_adjust_steps is None else str(row.cor_adjust_steps),
                str(row.steps),
                "-" if row.gain is None else f"{row.gain:+.1%}",
            )
            for row in self.candidates
        )
        title = f"steps at epsilon = {format_up(self.epsilon)}, delta = {write_value(self.delta)}, {self.count}"
        return rich_table(headings, rows, title=title, caption="\n".join(self._cost_lines()), right=headings)

    def _cost_lines(self) -> list[str]:
        lines = [f"mixture: certified epsilon {format_up(float(self.cost.upper))}"]
        if self.thresholds is None or self.cor_adjust_cost is None:
            return [*lines, str(self.note)]
        exact, delta = format_up(float(self.cor_adjust_cost.upper)), write_value(self.delta)
        points = " and ".join(f"({epsilon:.4f}, {at:.3e})" for epsilon, at in self.thresholds.points)
        return [
            *lines,
            f"cor:adjust: epsilon {format_up(self.thresholds.epsilon)} by the corollary, certified epsilon {exact}",
            f"thresholds of cor:adjust: {points}",
            f"on the profile of a ({self.thresholds.epsilon_base:.4f}, {delta})-DP Gaussian",
        ]


def adjust(  # noqa: PLR0913 - all keyword-only
    *,
    noise_multipliers: Sequence[float],
    sampling_probability: float,
    count: Count,
    delta: float,
    epsilon: float | None = None,
    epsilon_base: float | None = None,
    probabilities: Sequence[float | Fraction] | None = None,
    shares: Sequence[float | Fraction] | None = None,
) -> AdjustResult:
    """Calculate the largest numbers of steps by ``cor:adjust``, and by the exact cost of the **Mixture** at the same total epsilon.

    Each trial draws one of ``noise_multipliers`` by ``probabilities`` (exact, uniform by default) and trains with its number of
    steps. Give exactly one of these:

    - ``epsilon_base``: the paper's epsilon_Q, the cost of a single candidate at delta. ``cor:adjust`` gives the total epsilon.
    - ``epsilon``: the total, the cost of the selection at delta. ``cor:adjust`` then uses the thresholds with this total.

    ``cor:adjust`` limits every candidate to two points of its profile, whichever candidate is drawn. The mixture uses the probability
    of each candidate and the exact accountant. It divides delta by ``shares`` (relative, equal by default): among candidates with
    equal probability, twice the share is twice the delta. See :func:`mixture_steps` for the proof and the heuristics.

    ``cor:adjust`` covers uncapped truncated negative binomial K only. For other laws of K, give ``epsilon``.
    """
    candidates = check_candidates(noise_multipliers, sampling_probability, probabilities, shares)
    if not isinstance(count, Count):
        raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(count)}")
    at = check_number("delta", delta, OPEN_UNIT)
    if (epsilon is None) == (epsilon_base is None):
        raise ParameterError(f"one of `epsilon` and `epsilon_base` must be given, got {'neither' if epsilon is None else 'both'}")
    cost = SelectionCost(candidates, count, at)
    thresholds, by_cor_adjust, note = None, None, None
    try:
        if epsilon_base is not None:
            base = check_number("epsilon_base", epsilon_base, _EPSILONS)
            thresholds = thresholds_for_base(base, at, count)
            budget = thresholds.epsilon
            if budget > LARGEST_EPSILON:
                raise ParameterError(f"`epsilon_base` must give a total epsilon of at most {LARGEST_EPSILON:g}, got {base:g}")
        else:
            budget = check_number("epsilon", epsilon, _EPSILONS)
            thresholds = thresholds_for_total(budget, at, count)
        by_cor_adjust = tuple(cor_adjust_steps(candidates, index, thresholds) for index in range(len(candidates.noise_multipliers)))
    except NotCoveredError as reason:
        if epsilon_base is not None:
            raise NotCoveredError(f"{reason}; the mixture needs the total `epsilon` instead") from None
        thresholds, note = None, str(reason)  # the mixture does not need cor:adjust
    return _result(cost, budget, thresholds, by_cor_adjust, note)


def _result(
    cost: SelectionCost, epsilon: float, thresholds: Thresholds | None, by_cor_adjust: tuple[int, ...] | None, note: str | None
) -> AdjustResult:
    candidates, steps = cost.candidates, mixture_steps(cost, epsilon)
    certified = cost.epsilon(steps)
    if not float(certified.upper) <= epsilon:
        raise ArithmeticError("the steps found exceed the budget they were found for")
    other_steps: tuple[int | None, ...] = (None,) * len(steps) if by_cor_adjust is None else by_cor_adjust
    rows = zip(candidates.noise_multipliers, candidates.probabilities, candidates.shares, other_steps, steps, strict=True)
    return AdjustResult(
        count=cost.count,
        delta=cost.delta,
        epsilon=epsilon,
        mechanism=candidates.mixture(steps),
        candidates=tuple(CandidateSteps(*row) for row in rows),
        cost=certified,
        thresholds=thresholds,
        cor_adjust_cost=None if by_cor_adjust is None else cost.epsilon(by_cor_adjust),
        note=note,
    )


def _format_fraction(value: Fraction) -> str:
    return str(value) if value.denominator < 10_000 else f"{float(value):.4g}"
