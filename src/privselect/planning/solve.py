"""Solve for one open number under a budget, and certify the solution."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, cast

from privselect._util.rounding import format_digits_up
from privselect._util.safe_search import smallest_integer_where
from privselect.counts.base import LARGEST_COUNT
from privselect.open_spec import OpenSpec
from privselect.pairs.compose import ACCURACY
from privselect.planning.search import BudgetSearch, InfeasibleError, UnconstrainedError, feasible_ranges, largest_feasible
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.counts.base import Count
    from privselect.errors import ParameterError
    from privselect.interval import Interval
    from privselect.mechanisms.base import Mechanism
    from privselect.planning.open_problem import OpenProblem
    from privselect.planning.search_range import FastOptions, SearchRange

_ROUGH = 1e-2  # accuracy of the search for a starting value
_TWO_STAGE_ROUGH = 1e-3  # the same with two stages, because the search adds little to the cost of the final training
_TWO_STAGE_TOLERANCE = 1e-4  # part of the budget that may stay unused with two stages: each evaluation takes longer
_ELASTICITY = 0.2  # approximate d log(epsilon) / d log(mean number of trials)
_ELASTICITY_NEARBY = 0.7  # and for most other parameters
_MOST_TRIALS = 10**6  # tried for `k` and `n`
NOISES = {"noise_multiplier", "sigma", "scale"}
_NEVER_CAPPED = 1e-12  # probability of K above the largest cap that is tried


class Solution(NamedTuple):
    """A value that meets the budget, its certified epsilon, and the search that found it (None for a cap)."""

    value: float
    cost: Interval
    search: BudgetSearch | None
    feasible_ranges: tuple[tuple[int, int | None], ...] | None = None


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget (epsilon, delta), and the options of interactive use."""

    epsilon: float
    delta: float
    fast: FastOptions | None = None

    @property
    def accuracy(self) -> float:
        """The relative accuracy of a certified epsilon."""
        return ACCURACY if self.fast is None else self.fast.accuracy

    def __str__(self) -> str:
        return f"epsilon {write_value(self.epsilon)} at delta {write_value(self.delta)}"


def solve(problem: OpenProblem, budget: Budget) -> Solution:
    """Return the riskiest value found whose certified epsilon is within the budget.

    The value is rounded on the safe side, and the rounded value is the one that was certified. Along a cap, epsilon rises and falls:
    caps are scanned. Along ``k`` and ``n``, epsilon mostly rises: they grow from 1 up to the first value that exceeds the budget.
    """
    search_range = problem.search_range()
    task = _Task(problem, search_range if budget.fast is None else budget.fast.restrict(search_range), budget)
    if problem.unknown.leaks is None:
        return _scan_caps(task)
    search = task.new_search()
    try:
        if problem.unknown.leaks == "mostly more":
            value: float = _climb(task)
        else:
            start = None if budget.fast is None else budget.fast.start_in(search_range)
            value = search.solve(*(_rough_start(task) if start is None else (start, _ELASTICITY_NEARBY)))
    except (InfeasibleError, UnconstrainedError) as error:
        raise task.explain(error) from None
    return task.solution(value, search)


def certified_epsilon(mechanism: Mechanism, delta: float) -> float:
    """Return the certified upper bound on epsilon."""
    return float(mechanism.epsilon_at(delta).upper)


@dataclass(frozen=True, slots=True)
class _Task:
    """An open problem, the values that may be tried, the budget, and the epsilons computed so far."""

    problem: OpenProblem
    search_range: SearchRange
    budget: Budget
    costs: dict[float, Interval] = field(default_factory=dict)

    def new_search(self) -> BudgetSearch:
        """Return the search for the solution, with the tolerance that one evaluation can afford."""
        if self.budget.fast is not None:
            accuracy = self.budget.accuracy
            return BudgetSearch(self.upper_epsilon, self.search_range, self.budget.epsilon, accuracy, 0.1 * accuracy, exact_integers=False)
        search = BudgetSearch(self.upper_epsilon, self.search_range, self.budget.epsilon)
        if self.problem.stages.is_two_stage:
            search.tolerance = _TWO_STAGE_TOLERANCE
        return search

    def cost(self, value: float) -> Interval:
        """Return the certified epsilon with ``value`` for the open parameter."""
        if value not in self.costs:
            self.costs[value] = self.problem.whole(value).epsilon_fast(self.budget.delta, accuracy=self.budget.accuracy)
        return self.costs[value]

    def upper_epsilon(self, value: float) -> float:
        """Return the upper bound on epsilon with ``value`` for the open parameter."""
        return float(self.cost(value).upper)

    def meets_budget(self, value: int) -> bool:
        """Return whether the upper bound is within the budget."""
        return self.upper_epsilon(value) <= self.budget.epsilon

    def solution(self, value: float, search: BudgetSearch | None, ranges: tuple[tuple[int, int | None], ...] | None = None) -> Solution:
        """Return the solution with ``value`` for the open parameter."""
        cost = self.cost(value)
        if not cost.upper <= self.budget.epsilon:
            raise ArithmeticError("the solution does not meet the budget")  # the search has checked that it does
        return Solution(value, cost, search, ranges)

    def explain(self, error: ParameterError) -> ParameterError:
        """Return the error with the budget, the parameter and the epsilon at its safest value."""
        name, safest, delta = self.search_range.name, self.search_range.safest, self.budget.delta
        if isinstance(error, UnconstrainedError):
            return type(error)(f"the budget of {self.budget} is met by every `{name}` tried, {error}: there is nothing to solve for")
        stages = self.problem.fill(safest).closed()
        one_trial = certified_epsilon(dataclasses.replace(stages, count=None).whole, delta)
        where, refused = self.search_range.format(safest), f"no `{name}` tried meets {self.budget}: even with"
        if stages.count is not None and one_trial > self.budget.epsilon:
            return type(error)(f"{refused} K = 1 and {where} epsilon is {format_digits_up(one_trial, 4)}")
        return type(error)(f"{refused} {where} epsilon is {format_digits_up(certified_epsilon(stages.whole, delta), 4)}")


def _rough_start(task: _Task) -> tuple[float, float]:
    """Return a starting value and the elasticity there, from inaccurate bounds that are much faster."""
    search_range, stages = task.search_range, task.problem.stages
    if not isinstance(stages.mechanism, OpenSpec) and not stages.is_two_stage:
        return search_range.start, _ELASTICITY  # the mechanism is fixed and composed only once: no need for a rough search
    accuracy = _TWO_STAGE_ROUGH if stages.is_two_stage else _ROUGH

    def rough_epsilon(value: float) -> float:
        return float(task.problem.whole(value).epsilon_fast(task.budget.delta, accuracy=accuracy).upper)

    rough = BudgetSearch(rough_epsilon, search_range, task.budget.epsilon, accuracy, accuracy, exact_integers=False)
    try:
        return rough.solve(_first_value(task)), rough.elasticity
    except InfeasibleError:
        return search_range.safest, rough.elasticity
    except UnconstrainedError:
        return search_range.riskiest, rough.elasticity


def _first_value(task: _Task) -> float:
    """Return the noise of the final training for an open noise of the search, because both are similar; else the usual first value."""
    search_range, stages = task.search_range, task.problem.stages
    given = None if isinstance(stages.final, OpenSpec) else getattr(stages.final, search_range.name, None)
    if task.problem.stage == "search" and search_range.name in NOISES and isinstance(given, int | float):
        return float(given)
    return search_range.start


def _climb(task: _Task) -> int:
    """Return the number of trials up to which every number tried meets the budget; some larger ones may meet it again."""
    search_range = task.search_range
    low, high = int(search_range.safest), min(int(search_range.riskiest), _MOST_TRIALS)
    value = largest_feasible(task.meets_budget, low, high)
    if value < low:
        raise InfeasibleError(f"even {search_range.format(low)}")
    if value == high:
        raise UnconstrainedError(f"even {search_range.format(high)}")
    return value


def _scan_caps(task: _Task) -> Solution:
    problem = task.problem
    smallest, top = _cap_range(problem)
    ranges = feasible_ranges(task.meets_budget, smallest, top)
    unbounded = bool(ranges) and ranges[-1][1] == top and certified_epsilon(problem.whole(None), task.budget.delta) <= task.budget.epsilon
    feasible: tuple[tuple[int, int | None], ...] = (*ranges[:-1], (ranges[-1][0], None)) if unbounded else ranges
    if not feasible:
        restricted = dataclasses.replace(task, search_range=dataclasses.replace(task.search_range, safest=smallest))
        raise restricted.explain(InfeasibleError(f"none from {smallest} on"))
    first, last = feasible[-1]
    if last is None and first == smallest:
        raise task.explain(UnconstrainedError(f"any from {smallest} on"))
    return task.solution(first if last is None else last, None, feasible)


def _cap_range(problem: OpenProblem) -> tuple[int, int]:
    """Return the smallest cap that the law of K allows, and one that K almost never exceeds."""
    uncapped = cast("Count", problem.unknown.owner.without_unknowns())
    top = min(max(uncapped.quantile(1.0 - _NEVER_CAPPED), 1), LARGEST_COUNT)
    return smallest_integer_where(problem.is_allowed, 0, top), top
