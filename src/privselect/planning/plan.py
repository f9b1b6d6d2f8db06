"""From a budget to what it allows: one open number of a mechanism or a law of K, solved for and rounded to the safe side."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from privselect._util.validation import OPEN_UNIT, POSITIVE, check_number, format_value
from privselect.counts.base import LARGEST_COUNT, Count
from privselect.errors import ParameterError
from privselect.open_spec import OpenSpec
from privselect.pairs.compose import ACCURACY
from privselect.planning.baselines import instead
from privselect.planning.open_problem import question, read_count, read_mechanism, together
from privselect.planning.search.budget_search import AnythingMeetsItError, NothingMeetsItError, Search
from privselect.planning.search.integer_scan import climbed, runs_that
from privselect.planning.success_probability import chance_of_best
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from privselect.interval import Interval
    from privselect.mechanisms.base import Mechanism
    from privselect.planning.fast_options import Quickly
    from privselect.planning.open_problem import Question
    from privselect.planning.search.search_range import Axis

SHARES = (0.01, 0.05, 0.1)
QUANTILES = (0.5, 0.9, 0.99)
_ROUGH = 1e-2
_ELASTICITY = 0.2  # of epsilon in the mean number of trials, about
_ELASTICITY_NEARBY = 0.7  # of epsilon in most parameters, about
_MOST_CLIMBED = 10**6  # trials
_NEVER_CAPPED = 1e-12  # chance of a K that is as good as none


@dataclass(frozen=True, slots=True)
class Plan:
    """A mechanism and a law of K that meet a budget (epsilon, delta), and what was solved for to get there.

    ``cost`` is the certified epsilon at delta, ``asked`` the question's two texts, ``instead`` the value that each other bound would
    have forced (None where it gives none, ``notes`` says why), ``feasible`` every stretch of values that meets the budget where the
    unknown is a cap, with None for no end.
    """

    mechanism: Mechanism
    count: Count | None
    epsilon: float
    delta: float
    cost: Interval
    parameter: str | None = None
    value: float | None = None
    asked: tuple[str, str | None] | None = None
    instead: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    notes: Mapping[str, str] = dataclasses.field(default_factory=dict)
    feasible: tuple[tuple[int, int | None], ...] | None = None

    @property
    def whole(self) -> Mechanism:
        """The winner of that many trials, or the mechanism alone."""
        return together(self.mechanism, self.count)

    def chance(self, tau: float) -> float:
        """The chance that at least one trial is in the best share ``tau`` of the search space."""
        return chance_of_best(self.count, tau)

    def trials(self) -> dict[str, Any]:
        """What the law of K says beforehand: its mean, quantiles, the chance of no trial, and of a trial among the best."""
        law = self.count
        return {
            "expected": 1.0 if law is None else law.expected(),
            "quantiles": {str(q): 1 if law is None else law.quantile(q) for q in QUANTILES},
            "probability_of_zero": 0.0 if law is None else law.probability_of_zero(),
            "chance_of_best": {str(tau): self.chance(tau) for tau in SHARES},
        }

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "mechanism": str(self.mechanism),
            "count": None if self.count is None else str(self.count),
            "epsilon": self.cost.as_dict(),
            "delta": self.delta,
            "budget": self.epsilon,
            "solved": None if self.parameter is None else {"parameter": self.parameter, "value": self.value},
            "asked": None if self.asked is None else {"mechanism": self.asked[0], "count": self.asked[1]},
            "feasible": None if self.feasible is None else [list(stretch) for stretch in self.feasible],
            "instead": dict(self.instead),
            "notes": dict(self.notes),
            "trials": self.trials(),
        }

    def summary(self) -> str:
        """As lines for people."""
        from privselect.planning.plan_summary import summary

        return summary(self)


def plan(
    mechanism: Mechanism | OpenSpec | str,
    count: Count | OpenSpec | str | None = None,
    *,
    epsilon: float,
    delta: float,
    quickly: Quickly | None = None,
) -> Plan:
    """Solve for the one open number (``?`` in a text, ``UNKNOWN`` in Python) under a budget for everything that is released.

    The answer is the least safe value found at which the certified epsilon is at most the budget: the least noise, the most steps or
    trials. A number is rounded to seven digits to the safe side, and what was certified is the rounded one. A cap, along which epsilon
    rises and falls, is scanned; its answer is the greatest that meets the budget, or, where all from some cap on do, the least of these.
    ``k`` and ``n``, along which it mostly rises, are climbed from below up to the first that costs too much.

    ``quickly`` is for those who wait: see there. What the other bounds would have forced is then left out.
    """
    asked = question(mechanism, count)
    budget, at = check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    accuracy, axis = ACCURACY, asked.axis()
    if quickly is not None:
        accuracy, axis = quickly.accuracy, quickly.kept(axis)

    def price(value: float) -> Interval:
        return asked.whole(value).epsilon_about(at, accuracy=accuracy)

    if asked.hole.leaks is None:
        return _scanned(asked, axis, budget, at, price)
    costs: dict[float, Interval] = {}

    def bound(value: float) -> float:
        if value not in costs:
            costs[value] = price(value)
        return float(costs[value].upper)

    search = Search(bound, axis, budget) if quickly is None else Search(bound, axis, budget, accuracy, 0.1 * accuracy, to_the_last=False)
    try:
        if asked.hole.leaks == "mostly more":
            value: float = _climbed(bound, axis, budget)
        else:
            near = None if quickly is None else quickly.start(axis)
            value = search.solve(*(_rough_start(asked, axis, budget, at) if near is None else (near, _ELASTICITY_NEARBY)))
    except (NothingMeetsItError, AnythingMeetsItError) as error:
        raise _refusal(asked, axis, budget, at, error) from None
    forced, notes = instead(asked, search, value, at) if quickly is None else ({}, {})
    return _answer(asked, value, costs[value], budget, at, instead=forced, notes=notes)


def checked(mechanism: Mechanism | str, count: Count | str | None = None, *, epsilon: float, delta: float) -> Plan:
    """A plan without an unknown: the cost of what is described, refused where it exceeds the budget."""
    trial, law = read_mechanism(mechanism), None if count is None else read_count(count)
    budget, at = check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    if isinstance(trial, OpenSpec) or isinstance(law, OpenSpec):
        raise ParameterError(f"no number must be left open here, got {format_value(trial)} and {format_value(law)}")
    cost = together(trial, law).epsilon_at(at)
    if not cost.upper <= budget:
        met = f"epsilon {write_value(budget)} at delta {write_value(at)}"
        raise ParameterError(f"the plan must meet its budget, {met}, got an epsilon of {format_value(cost.upper)}")
    return Plan(trial, law, budget, at, cost)


def upper_end(mechanism: Mechanism, delta: float) -> float:
    """The certified epsilon."""
    return float(mechanism.epsilon_at(delta).upper)


def _rough_start(asked: Question, axis: Axis, budget: float, delta: float) -> tuple[float, float]:
    """Where the search begins, and the elasticity there: what bounds that cost a fraction say."""
    if not isinstance(asked.mechanism, OpenSpec):
        return axis.start, _ELASTICITY  # what one trial leaks is composed once, and the rest is quick

    def roughly(value: float) -> float:
        return float(asked.whole(value).epsilon_about(delta, accuracy=_ROUGH).upper)

    rough = Search(roughly, axis, budget, _ROUGH, _ROUGH, to_the_last=False)
    try:
        return rough.solve(axis.start), rough.elasticity
    except NothingMeetsItError:
        return axis.safest, rough.elasticity
    except AnythingMeetsItError:
        return axis.last, rough.elasticity


def _climbed(bound: Callable[[float], float], axis: Axis, budget: float) -> int:
    """The greatest number up to which each that was looked at meets the budget: further up, some may meet it again."""
    low, high = int(axis.safest), min(int(axis.last), _MOST_CLIMBED)
    value = climbed(lambda place: bound(place) <= budget, low, high)
    if value < low:
        raise NothingMeetsItError(f"even {axis.shown(low)}")
    if value == high:
        raise AnythingMeetsItError(f"even {axis.shown(high)}")
    return value


def _answer(asked: Question, value: float, cost: Interval, budget: float, delta: float, **more: Any) -> Plan:
    if not cost.upper <= budget:
        raise ArithmeticError("the solution does not meet the budget")  # the search saw that it does
    texts = (str(asked.mechanism), None if asked.count is None else str(asked.count))
    return Plan(*asked.parts(value), budget, delta, cost, asked.hole.parameter, value, texts, **more)


def _scanned(asked: Question, axis: Axis, budget: float, delta: float, price: Callable[[float], Interval]) -> Plan:
    least, top = _capped_range(asked)
    stretches = runs_that(lambda cap: bool(price(cap).upper <= budget), least, top)
    endless = bool(stretches) and stretches[-1][1] == top and upper_end(together(*asked.without()), delta) <= budget
    feasible: tuple[tuple[int, int | None], ...] = (*stretches[:-1], (stretches[-1][0], None)) if endless else stretches
    if not feasible:
        axis = dataclasses.replace(axis, safest=least)
        raise _refusal(asked, axis, budget, delta, NothingMeetsItError(f"none from {least} on"))
    first, last = feasible[-1]
    if last is None and first == least:
        raise _refusal(asked, axis, budget, delta, AnythingMeetsItError(f"any from {least} on"))
    cap = first if last is None else last
    return _answer(asked, cap, price(cap), budget, delta, feasible=feasible)


def _capped_range(asked: Question) -> tuple[int, int]:
    """The least cap that the law allows, and one beyond which hardly anything is cut off."""
    uncapped = cast("Count", asked.hole.owner.emptied())
    top = min(max(uncapped.quantile(1.0 - _NEVER_CAPPED), 1), LARGEST_COUNT)
    low, high = 0, top  # the least cap is found by asking: a law refuses those below
    while high - low > 1:
        middle = (low + high) // 2
        try:
            asked.parts(middle)
        except ParameterError:
            low = middle
        else:
            high = middle
    return high, top


def _refusal(asked: Question, axis: Axis, budget: float, delta: float, error: ParameterError) -> ParameterError:
    target = f"epsilon {write_value(budget)} at delta {write_value(delta)}"
    if isinstance(error, AnythingMeetsItError):
        return type(error)(f"the budget of {target} is met by every `{axis.name}` looked at, {error}: there is nothing to solve for")
    mechanism, count = asked.parts(axis.safest)
    alone, cost = upper_end(mechanism, delta), upper_end(together(mechanism, count), delta)
    safest, refused = axis.shown(axis.safest), f"no `{axis.name}` looked at meets {target}: even with"
    if count is not None and alone > budget:
        return type(error)(f"{refused} K = 1 and {safest} epsilon is {format_value(alone)}")
    return type(error)(f"{refused} {safest} epsilon is {format_value(cost)}")
