"""Solve for the one open parameter of a mechanism or a law of K under a privacy budget."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from privselect._util.safe_search import smallest_integer_where
from privselect._util.validation import OPEN_UNIT, POSITIVE, check_number, format_value
from privselect.counts.base import LARGEST_COUNT
from privselect.errors import ParameterError
from privselect.open_spec import OpenSpec
from privselect.pairs.compose import ACCURACY
from privselect.planning.baselines import solve_baselines
from privselect.planning.open_problem import read_count, read_mechanism, read_problem
from privselect.planning.plan_result import Plan
from privselect.planning.search import BudgetSearch, InfeasibleError, UnconstrainedError, feasible_ranges, largest_feasible
from privselect.selection.selection import selection_of
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.mechanisms.base import Mechanism
    from privselect.planning.open_problem import FastOptions, OpenProblem, SearchRange

_ROUGH = 1e-2  # accuracy of the search for a starting value
_ELASTICITY = 0.2  # approximate d log(epsilon) / d log(mean number of trials)
_ELASTICITY_NEARBY = 0.7  # and for most other parameters
_MOST_TRIALS = 10**6  # tried for `k` and `n`
_NEVER_CAPPED = 1e-12  # probability of K above the largest cap that is tried


def plan(
    mechanism: Mechanism | OpenSpec | str,
    count: Count | OpenSpec | str | None = None,
    *,
    epsilon: float,
    delta: float,
    fast: FastOptions | None = None,
) -> Plan:
    """Solve for the one open parameter (``?`` in a text form, ``UNKNOWN`` in Python) under the budget (epsilon, delta).

    The budget covers everything that is released. The solution is the riskiest value found whose certified epsilon is within the
    budget: the least noise, the most steps or trials. It is rounded to seven digits on the safe side, and the rounded value is the
    one that was certified. Along a cap, epsilon rises and falls: caps are scanned. The solution is the largest feasible cap, or the
    smallest one of an unbounded feasible range. Along ``k`` and ``n``, epsilon mostly rises: they grow from 1 up to the first
    value that exceeds the budget.

    ``fast`` trades accuracy for speed and leaves out the baselines.
    """
    problem = read_problem(mechanism, count)
    budget, at = check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    accuracy, search_range = ACCURACY, problem.search_range()
    if fast is not None:
        accuracy, search_range = fast.accuracy, fast.restrict(search_range)
    task = _Task(problem, search_range, budget, at, accuracy)
    if problem.unknown.leaks is None:
        return _scan_caps(task)
    search = BudgetSearch(task.upper_epsilon, search_range, budget)
    if fast is not None:
        search = BudgetSearch(task.upper_epsilon, search_range, budget, accuracy, 0.1 * accuracy, exact_integers=False)
    try:
        if problem.unknown.leaks == "mostly more":
            value: float = _climb(task)
        else:
            start = None if fast is None else fast.start_in(search_range)
            value = search.solve(*(_rough_start(task) if start is None else (start, _ELASTICITY_NEARBY)))
    except (InfeasibleError, UnconstrainedError) as error:
        raise task.explain(error) from None
    baselines, notes = solve_baselines(problem, search, value, at) if fast is None else ({}, {})
    return task.solution(value, baselines=baselines, notes=notes)


def check_plan(mechanism: Mechanism | str, count: Count | str | None = None, *, epsilon: float, delta: float) -> Plan:
    """Return the plan of a mechanism and a law of K without an open parameter, and check that it meets the budget."""
    trial, law = read_mechanism(mechanism), None if count is None else read_count(count)
    budget, at = check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    if isinstance(trial, OpenSpec) or isinstance(law, OpenSpec):
        raise ParameterError(f"`mechanism` and `count` must have no open number, got {format_value(trial)} and {format_value(law)}")
    cost = selection_of(trial, law).epsilon_at(at)
    if not cost.upper <= budget:
        limit = f"epsilon {write_value(budget)} at delta {write_value(at)}"
        raise ParameterError(f"the plan must meet its budget, {limit}, got an epsilon of {format_value(cost.upper)}")
    return Plan(trial, law, budget, at, cost)


@dataclass(frozen=True, slots=True)
class _Task:
    """An open problem, the values that may be tried, the budget, and the epsilons computed so far."""

    problem: OpenProblem
    search_range: SearchRange
    epsilon: float
    delta: float
    accuracy: float
    costs: dict[float, Interval] = field(default_factory=dict)

    def cost(self, value: float) -> Interval:
        """Return the certified epsilon with ``value`` for the open parameter."""
        if value not in self.costs:
            self.costs[value] = self.problem.selection(value).epsilon_fast(self.delta, accuracy=self.accuracy)
        return self.costs[value]

    def upper_epsilon(self, value: float) -> float:
        """Return the upper bound on epsilon with ``value`` for the open parameter."""
        return float(self.cost(value).upper)

    def meets_budget(self, value: int) -> bool:
        """Return whether the upper bound is within the budget."""
        return self.upper_epsilon(value) <= self.epsilon

    def solution(self, value: float, **results: Any) -> Plan:
        """Return the plan with ``value`` for the open parameter."""
        cost, problem = self.cost(value), self.problem
        if not cost.upper <= self.epsilon:
            raise ArithmeticError("the solution does not meet the budget")  # the search has checked that it does
        texts = (str(problem.mechanism), None if problem.count is None else str(problem.count))
        return Plan(*problem.parts(value), self.epsilon, self.delta, cost, problem.unknown.parameter, value, texts, **results)

    def explain(self, error: ParameterError) -> ParameterError:
        """Return the error with the budget, the parameter and the epsilon at its safest value."""
        name, safest = self.search_range.name, self.search_range.safest
        target = f"epsilon {write_value(self.epsilon)} at delta {write_value(self.delta)}"
        if isinstance(error, UnconstrainedError):
            return type(error)(f"the budget of {target} is met by every `{name}` tried, {error}: there is nothing to solve for")
        mechanism, count = self.problem.parts(safest)
        one_trial, cost = _certified(mechanism, self.delta), _certified(selection_of(mechanism, count), self.delta)
        where, refused = self.search_range.format(safest), f"no `{name}` tried meets {target}: even with"
        if count is not None and one_trial > self.epsilon:
            return type(error)(f"{refused} K = 1 and {where} epsilon is {format_value(one_trial)}")
        return type(error)(f"{refused} {where} epsilon is {format_value(cost)}")


def _certified(mechanism: Mechanism, delta: float) -> float:
    return float(mechanism.epsilon_at(delta).upper)


def _rough_start(task: _Task) -> tuple[float, float]:
    """Return a starting value and the elasticity there, from inaccurate bounds that are much faster."""
    search_range = task.search_range
    if not isinstance(task.problem.mechanism, OpenSpec):
        return search_range.start, _ELASTICITY  # the mechanism is fixed and composed only once: no need for a rough search

    def rough_epsilon(value: float) -> float:
        return float(task.problem.selection(value).epsilon_fast(task.delta, accuracy=_ROUGH).upper)

    rough = BudgetSearch(rough_epsilon, search_range, task.epsilon, _ROUGH, _ROUGH, exact_integers=False)
    try:
        return rough.solve(search_range.start), rough.elasticity
    except InfeasibleError:
        return search_range.safest, rough.elasticity
    except UnconstrainedError:
        return search_range.riskiest, rough.elasticity


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


def _scan_caps(task: _Task) -> Plan:
    problem = task.problem
    smallest, top = _cap_range(problem)
    ranges = feasible_ranges(task.meets_budget, smallest, top)
    unbounded = bool(ranges) and ranges[-1][1] == top and _certified(problem.selection(None), task.delta) <= task.epsilon
    feasible: tuple[tuple[int, int | None], ...] = (*ranges[:-1], (ranges[-1][0], None)) if unbounded else ranges
    if not feasible:
        restricted = dataclasses.replace(task, search_range=dataclasses.replace(task.search_range, safest=smallest))
        raise restricted.explain(InfeasibleError(f"none from {smallest} on"))
    first, last = feasible[-1]
    if last is None and first == smallest:
        raise task.explain(UnconstrainedError(f"any from {smallest} on"))
    return task.solution(first if last is None else last, feasible_ranges=feasible)


def _cap_range(problem: OpenProblem) -> tuple[int, int]:
    """Return the smallest cap that the law of K allows, and one that K almost never exceeds."""
    uncapped = cast("Count", problem.unknown.owner.without_unknowns())
    top = min(max(uncapped.quantile(1.0 - _NEVER_CAPPED), 1), LARGEST_COUNT)
    return smallest_integer_where(problem.is_allowed, 0, top), top
