"""How many DP-SGD steps each candidate noise level may take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.validation import OPEN_UNIT, Range, check_number, format_value
from privselect.counts.base import Count
from privselect.errors import NotCoveredError, ParameterError
from privselect.planning.adjust.adjust_result import Adjustment, Allowance
from privselect.planning.adjust.cor_adjust_steps import paper_steps
from privselect.planning.adjust.dpsgd_candidates import Price, check_candidates
from privselect.planning.adjust.mixture_steps import mixture_steps
from privselect.planning.adjust.thresholds import thresholds_for_base, thresholds_for_total
from privselect.selection.safe_search import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from privselect.planning.adjust.dpsgd_candidates import Candidates
    from privselect.planning.adjust.thresholds import Thresholds

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
) -> Adjustment:
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
    price = Price(candidates, count, at)
    if epsilon_base is not None:
        return _from_base(price, check_number("epsilon_base", epsilon_base, _EPSILONS))
    return _from_total(price, check_number("epsilon", epsilon, _EPSILONS))


def _from_base(price: Price, epsilon_base: float) -> Adjustment:
    try:
        bound = thresholds_for_base(epsilon_base, price.delta, price.count)
        if bound.epsilon > LARGEST_EPSILON:
            raise ParameterError(f"`epsilon_base` must make a total of at most {LARGEST_EPSILON:g}, got {epsilon_base:g}")
        allowed = _all_paper_steps(price.candidates, bound)
    except NotCoveredError as reason:
        raise NotCoveredError(f"{reason}; the mixture needs the total `epsilon` instead") from None
    return _adjustment(price, bound.epsilon, bound, allowed, None)


def _from_total(price: Price, epsilon: float) -> Adjustment:
    try:
        bound = thresholds_for_total(epsilon, price.delta, price.count)
        allowed = _all_paper_steps(price.candidates, bound)
    except NotCoveredError as reason:
        # The mixture does not need it.
        return _adjustment(price, epsilon, None, None, str(reason))
    return _adjustment(price, epsilon, bound, allowed, None)


def _all_paper_steps(candidates: Candidates, thresholds: Thresholds) -> tuple[int, ...]:
    return tuple(paper_steps(candidates, place, thresholds) for place in range(len(candidates.noise_multipliers)))


def _adjustment(
    price: Price, epsilon: float, thresholds: Thresholds | None, by_paper: tuple[int, ...] | None, note: str | None
) -> Adjustment:
    candidates, steps = price.candidates, mixture_steps(price, epsilon)
    spent = price.of(steps)
    if not float(spent.upper) <= epsilon:
        raise ArithmeticError("the steps found exceed the budget they were found for")  # never to pass for an answer
    beside: tuple[int | None, ...] = (None,) * len(steps) if by_paper is None else by_paper
    rows = zip(candidates.noise_multipliers, candidates.probabilities, candidates.shares, beside, steps, strict=True)
    return Adjustment(
        count=price.count,
        delta=price.delta,
        epsilon=epsilon,
        mechanism=candidates.mixture(steps),
        candidates=tuple(Allowance(*row) for row in rows),
        spent=spent,
        thresholds=thresholds,
        paper_spent=None if by_paper is None else price.of(by_paper),
        note=note,
    )
