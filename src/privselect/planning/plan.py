"""Plan a search, and a final training after it, under one privacy budget: solve for the open numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import format_digits_down, format_digits_up
from privselect._util.validation import OPEN_UNIT, POSITIVE, check_number, format_value
from privselect.errors import ParameterError
from privselect.mechanisms.base import Mechanism
from privselect.open_spec import OpenSpec
from privselect.planning.baselines import solve_baselines
from privselect.planning.open_problem import problem_of
from privselect.planning.plan_result import Plan, Problem, Solved
from privselect.planning.solve import Budget, certified_epsilon, solve
from privselect.planning.split import apply_split, describe_final_noise, read_split
from privselect.planning.stages import disjoint_parts, fill_parts, read_stages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from fractions import Fraction

    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.planning.open_problem import OpenProblem
    from privselect.planning.search_range import FastOptions
    from privselect.planning.solve import Solution
    from privselect.planning.stages import OpenStages

_CHECK = 1e-2  # accuracy at which a final training is first compared with the budget


def plan(  # noqa: PLR0913 - the two stages, the rule that divides the budget, and the budget
    mechanism: Mechanism | OpenSpec | str,
    count: Count | OpenSpec | str | None = None,
    *,
    final: Mechanism | OpenSpec | str | None = None,
    visible: int | None = None,
    subsample: Fraction | float | str | None = None,
    final_noise: float | None = None,
    split: str | None = None,
    epsilon: float,
    delta: float,
    fast: FastOptions | None = None,
) -> Plan:
    """Solve for the open number (``?`` in a text form, ``UNKNOWN`` in Python) under the budget (epsilon, delta).

    - ``mechanism``, ``count``: one search trial, and the law of K of a secret search, which releases only the best trial.
    - ``visible``: the number of trials of a visible search, which releases every trial, instead of ``count``.
    - ``final``: the final training with the winner's candidate. Without ``count`` and ``visible``, K has the `default_count`.
    - ``subsample``: the probability of each record to be in the one sample that all search trials share.

    The budget covers everything that is released. The solution is the riskiest value found whose certified epsilon is within the
    budget: the least noise, the most steps or trials. It is rounded to seven digits on the safe side, and the rounded value is the
    one that was certified. Along a cap, epsilon rises and falls: caps are scanned. The solution is the largest feasible cap, or the
    smallest one of an unbounded feasible range. Along ``k`` and ``n``, epsilon mostly rises: they grow from 1 up to the first
    value that exceeds the budget.

    One number may be open, with two exceptions. If both stages are open, ``final_noise=1.07`` gives the final training 1.07 times
    the noise that it would need alone with the whole budget, and the search gets the rest; ``split="auto"`` is the rule of
    `planning.split.FINAL_NOISE`. Parts of a ``disjoint(...)`` search trial may each have an open number, because each part may use
    the whole budget.

    ``fast`` trades accuracy for speed and leaves out the baselines.
    """
    stages = read_stages(mechanism, count, final, visible=visible, subsample=subsample)
    budget = Budget(check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT), fast)
    factor = read_split(final_noise, split, stages)
    asked = Problem.of(stages, final_noise=final_noise, split=split)
    solved: list[Solved] = []
    reasons: list[str] = []
    if stages.final is not None and count is None and visible is None:
        reasons.append(f"law of K: {stages.count}, the default")
    if factor is not None and isinstance(stages.final, OpenSpec):
        found = apply_split(stages.final, factor, budget)
        stages = replace(stages, final=found.mechanism)
        solved.append(Solved("final", found.parameter, found.value))
        reasons.append(describe_final_noise(found, factor, auto=split is not None))
    elif isinstance(stages.final, Mechanism):
        reasons.append(_check_final(stages.final, budget))
    problems = _problems(stages)
    solutions = [solve(problem, budget) for problem in problems]
    solved += [Solved(problem.stage, problem.unknown.parameter, found.value) for problem, found in zip(problems, solutions, strict=True)]
    if stages.is_two_stage or len(problems) > 1:
        reasons += map(_describe, problems, solutions)
    results: dict[str, Any] = {"solved": tuple(solved), "problem": asked, "reasons": tuple(reasons)}
    if len(problems) == 1:
        baselines, notes = _baselines(problems[0], solutions[0], budget)
        results |= {"baselines": baselines, "notes": notes, "feasible_ranges": solutions[0].feasible_ranges}
        return _plan_of(problems[0].fill(solutions[0].value), budget, solutions[0].cost, **results)
    filled = replace(stages, mechanism=fill_parts(stages.mechanism, iter([found.value for found in solutions])))
    cost = filled.closed().whole.epsilon_fast(budget.delta, accuracy=budget.accuracy)
    if not cost.upper <= budget.epsilon:
        raise ArithmeticError("the parts meet the budget one by one, but not together")  # the cost is that of the largest
    return _plan_of(filled, budget, cost, **results)


def check_plan(  # noqa: PLR0913 - the two stages and the budget
    mechanism: Mechanism | str,
    count: Count | str | None = None,
    *,
    final: Mechanism | str | None = None,
    visible: int | None = None,
    subsample: Fraction | float | str | None = None,
    epsilon: float,
    delta: float,
) -> Plan:
    """Return the plan of mechanisms and a law of K without an open parameter, and check that it meets the budget."""
    stages = read_stages(mechanism, count, final, visible=visible, subsample=subsample)
    budget = Budget(check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT))
    if stages.is_open:
        raise ParameterError(f"a plan to check must have no open number, got {format_value(stages.describe())}")
    stages.check_relations()
    if isinstance(stages.final, Mechanism):
        _check_final(stages.final, budget)
    cost = stages.closed().whole.epsilon_at(budget.delta)
    if not cost.upper <= budget.epsilon:
        raise ParameterError(f"the plan must meet its budget, {budget}, got an epsilon of {format_value(cost.upper)}")
    return _plan_of(stages, budget, cost)


def plan_or_check(mechanism: Any, count: Any = None, *, final_noise: float | None = None, split: str | None = None, **terms: Any) -> Plan:
    """Return `plan` of the arguments if a number is open, else `check_plan`."""
    names = ("final", "visible", "subsample")
    stages = read_stages(mechanism, count, **{name: terms.get(name) for name in names})
    if stages.is_open:
        return plan(mechanism, count, final_noise=final_noise, split=split, **terms)
    read_split(final_noise, split, stages)  # raises if one is given
    return check_plan(mechanism, count, **terms)


def _plan_of(stages: OpenStages, budget: Budget, cost: Interval, **results: Any) -> Plan:
    closed = stages.closed()
    names: dict[str, Any] = {"final": closed.final, "visible": closed.visible, "subsample": closed.subsample}
    return Plan(closed.mechanism, closed.count, budget.epsilon, budget.delta, cost, **names, **results)


def _problems(stages: OpenStages) -> list[OpenProblem]:
    """Return the problems to solve, each with the whole budget: one, or one for each part of a disjoint search trial."""
    parts = disjoint_parts(stages.mechanism)
    if len(parts) > 1 and len(stages.open_in_search) == len(parts) and not stages.open_in_final:
        # Neighbours differ in one record, which lies in one part: each part costs what it costs alone.
        return [problem_of(replace(stages, mechanism=part)) for part in parts]
    return [problem_of(stages)]


def _check_final(final: Mechanism, budget: Budget) -> str:
    """Refuse a final training that exceeds the budget alone; return what it costs as a sentence."""
    alone = float(final.epsilon_fast(budget.delta, accuracy=_CHECK).upper)
    if alone >= budget.epsilon and (alone := certified_epsilon(final, budget.delta)) >= budget.epsilon:
        raise ParameterError(
            f"`final` must cost less than the budget, {budget}, got {format_value(str(final))} with epsilon {format_digits_up(alone, 4)}"
        )
    return f"final training: as given; alone it costs at most epsilon {format_digits_up(alone, 3)}"


def _describe(problem: OpenProblem, found: Solution) -> str:
    """Return what was chosen for one open number, and why."""
    safe_direction = problem.search_range().safe_direction
    value = (format_digits_up if safe_direction > 0 else format_digits_down)(found.value, 4, shortest=True)
    extreme = "smallest" if safe_direction > 0 else "largest"
    what = "final training" if problem.stage == "final" else "search"
    rest = "the whole budget" if problem.stages.final is None else "the rest of the budget"
    return f"{what}: {problem.unknown.parameter} {value}, the {extreme} that {rest} allows"


def _baselines(problem: OpenProblem, found: Solution, budget: Budget) -> tuple[Mapping[str, float | None], Mapping[str, str]]:
    if budget.fast is not None or found.search is None:
        return {}, {}
    return solve_baselines(problem, found.search, found.value, budget.delta)
