"""How many DP-SGD steps each candidate noise level may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import format_up
from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import OPEN_UNIT, Range, check_number, format_value
from privselect.counts.base import Count
from privselect.errors import MissingExtraError, NotCoveredError, ParameterError
from privselect.planning.adjust.cor_adjust import cor_adjust_steps, thresholds_for_base, thresholds_for_total
from privselect.planning.adjust.mixture import SelectionCost, check_candidates, mixture_steps
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from rich.table import Table

    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.mechanisms import Mixture
    from privselect.planning.adjust.cor_adjust import Thresholds
    from privselect.planning.adjust.mixture import Candidates


_EPSILONS = Range(0.0, LARGEST_EPSILON, low_open=True, high_open=False)


def adjust(  # noqa: PLR0913 - a question of that many parts, all by name
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
    """The greatest numbers of steps by ``cor:adjust``, and as a **Mixture** at the same total epsilon.

    Each trial draws one of ``noise_multipliers``, by ``probabilities`` (exact, uniform by default), and trains with its number of
    steps. Give one of the two:

    - ``epsilon_base``, the paper's epsilon_Q: what a single candidate may cost at delta. The total is then what ``cor:adjust`` says.
    - ``epsilon``, the total: what the selection may cost at delta. ``cor:adjust`` then has the thresholds whose total that is.

    ``cor:adjust`` holds every candidate to two points of its profile, whichever is drawn. The mixture knows how often each is
    drawn, spends the budget by the exact accountant, and divides delta by ``shares`` (in proportion, equal by default): among
    candidates drawn equally often, twice the share is twice the delta that candidate spends. See :func:`mixture_steps` for why that
    is sound, and what in it is heuristic.

    ``cor:adjust`` covers uncapped truncated negative binomial laws only. For others give the total.
    """
    candidates = check_candidates(noise_multipliers, sampling_probability, probabilities, shares)
    if not isinstance(count, Count):
        raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(count)}")
    at = check_number("delta", delta, OPEN_UNIT)
    if (epsilon is None) == (epsilon_base is None):
        raise ParameterError(f"one of `epsilon` and `epsilon_base` must be given, got {'neither' if epsilon is None else 'both'}")
    price = SelectionCost(candidates, count, at)
    if epsilon_base is not None:
        return _from_base(price, check_number("epsilon_base", epsilon_base, _EPSILONS))
    return _from_total(price, check_number("epsilon", epsilon, _EPSILONS))


def _from_base(price: SelectionCost, epsilon_base: float) -> AdjustResult:
    try:
        bound = thresholds_for_base(epsilon_base, price.delta, price.count)
        if bound.epsilon > LARGEST_EPSILON:
            raise ParameterError(f"`epsilon_base` must make a total of at most {LARGEST_EPSILON:g}, got {epsilon_base:g}")
        allowed = _all_paper_steps(price.candidates, bound)
    except NotCoveredError as reason:
        raise NotCoveredError(f"{reason}; the mixture needs the total `epsilon` instead") from None
    return _adjustment(price, bound.epsilon, bound, allowed, None)


def _from_total(price: SelectionCost, epsilon: float) -> AdjustResult:
    try:
        bound = thresholds_for_total(epsilon, price.delta, price.count)
        allowed = _all_paper_steps(price.candidates, bound)
    except NotCoveredError as reason:
        # The mixture does not need it.
        return _adjustment(price, epsilon, None, None, str(reason))
    return _adjustment(price, epsilon, bound, allowed, None)


def _all_paper_steps(candidates: Candidates, thresholds: Thresholds) -> tuple[int, ...]:
    return tuple(cor_adjust_steps(candidates, place, thresholds) for place in range(len(candidates.noise_multipliers)))


def _adjustment(
    price: SelectionCost, epsilon: float, thresholds: Thresholds | None, by_paper: tuple[int, ...] | None, note: str | None
) -> AdjustResult:
    candidates, steps = price.candidates, mixture_steps(price, epsilon)
    spent = price.of(steps)
    if not float(spent.upper) <= epsilon:
        raise ArithmeticError("the steps found exceed the budget they were found for")  # never to pass for an answer
    beside: tuple[int | None, ...] = (None,) * len(steps) if by_paper is None else by_paper
    rows = zip(candidates.noise_multipliers, candidates.probabilities, candidates.shares, beside, steps, strict=True)
    return AdjustResult(
        count=price.count,
        delta=price.delta,
        epsilon=epsilon,
        mechanism=candidates.mixture(steps),
        candidates=tuple(CandidateSteps(*row) for row in rows),
        spent=spent,
        thresholds=thresholds,
        paper_spent=None if by_paper is None else price.of(by_paper),
        note=note,
    )


@dataclass(frozen=True, slots=True)
class CandidateSteps:
    """The steps of one candidate; ``cor_adjust_steps`` is None where ``cor:adjust`` does not apply."""

    noise_multiplier: float
    probability: Fraction
    share: Fraction
    cor_adjust_steps: int | None
    steps: int

    @property
    def saving(self) -> float | None:
        """How many more steps the mixture allows, relative: 0.5 is half as many again."""
        return None if self.paper_steps is None else self.steps / self.paper_steps - 1.0

    def as_dict(self) -> dict[str, object]:
        """For JSON; probability and share as exact fractions."""
        return {
            "noise_multiplier": self.noise_multiplier,
            "probability": str(self.probability),
            "share": str(self.share),
            "paper_steps": self.paper_steps,
            "steps": self.steps,
            "saving": self.saving,
        }


@dataclass(frozen=True, slots=True)
class AdjustResult:
    """Steps for a budget: ``epsilon`` is that of the whole selection at ``delta``, and ``spent`` what ``mechanism`` costs of it.

    ``thresholds`` are those of ``cor:adjust`` and ``paper_spent`` is what its numbers of steps cost in truth; both are None where it
    does not apply, and ``note`` says why.
    """

    count: Count
    delta: float
    epsilon: float
    mechanism: Mixture
    candidates: tuple[CandidateSteps, ...]
    spent: Interval
    thresholds: Thresholds | None
    paper_spent: Interval | None
    note: str | None

    @property
    def selection(self) -> Selection:
        """What is released: the best of K trials, each of the mixture."""
        return Selection(self.mechanism, self.count)

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        bound = self.thresholds
        return {
            "delta": self.delta,
            "epsilon": self.epsilon,
            "count": str(self.count),
            "mechanism": str(self.mechanism),
            "spent_epsilon": self.spent.as_dict(),
            "candidates": [candidate.as_dict() for candidate in self.candidates],
            "cor_adjust": None
            if bound is None or self.paper_spent is None
            else {
                "epsilon_base": bound.epsilon_base,
                "thresholds": [{"epsilon": epsilon, "delta": delta} for epsilon, delta in bound.points],
                "epsilon": bound.epsilon,
                "spent_epsilon": self.paper_spent.as_dict(),
            },
            "note": self.note,
        }

    def table(self) -> Table:
        """A rich table: a row for each candidate, and below it what either way costs."""
        try:
            from rich.box import SIMPLE_HEAD
            from rich.table import Table
        except ModuleNotFoundError:
            raise MissingExtraError("the table needs rich; install it with: pip install 'privselect[cli]'") from None
        table = Table(
            title=f"steps at epsilon = {format_up(self.epsilon)}, delta = {write_value(self.delta)}, {self.count}",
            title_justify="left",
            caption="\n".join(self._said()),
            caption_justify="left",
            box=SIMPLE_HEAD,
        )
        for heading in ("noise", "probability", "share of delta", "cor:adjust", "mixture", "more"):
            table.add_column(heading, justify="right", no_wrap=True)
        for row in self.candidates:
            table.add_row(
                f"{row.noise_multiplier:g}",
                _fraction(row.probability),
                _fraction(row.share),
                "-" if row.paper_steps is None else str(row.paper_steps),
                str(row.steps),
                "-" if row.saving is None else f"{row.saving:+.1%}",
            )
        return table

    def _said(self) -> list[str]:
        said = [f"mixture: its steps cost {format_up(float(self.spent.upper))}"]
        if self.thresholds is None or self.paper_spent is None:
            return [*said, str(self.note)]
        points = " and ".join(f"({epsilon:.4f}, {delta:.3e})" for epsilon, delta in self.thresholds.points)
        return [
            *said,
            f"cor:adjust: {format_up(self.thresholds.epsilon)} by its bound; its steps cost {format_up(float(self.paper_spent.upper))}",
            f"its thresholds: {points}",
            f"on the profile of a ({self.thresholds.epsilon_base:.4f}, {write_value(self.delta)})-DP Gaussian",
        ]


def _fraction(value: Fraction) -> str:
    return str(value) if value.denominator < 10_000 else f"{float(value):.4g}"
