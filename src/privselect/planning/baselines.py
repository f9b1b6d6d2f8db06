"""The value that each other bound needs to meet the same budget, solved for in the same way as the exact one."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from privselect.errors import NotCoveredError, ParameterError
from privselect.noisy_max import NoisyMax
from privselect.noisy_max.accounting.bounds import BOUNDS
from privselect.open_spec import OpenSpec
from privselect.pairs.compose import ACCURACY
from privselect.planning.search import BudgetSearch, InfeasibleError, UnconstrainedError
from privselect.selection.compare import composed_epsilon, composition_runs, paper_bound, renyi_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.planning.open_problem import OpenProblem

SELECTION_BASELINES = ("paper", "renyi", "composition")
NOISY_MAX_BASELINES = ("paper", "renyi", "full_release")
_TOLERANCE = 1e-3  # baselines are for display only


def solve_baselines(
    problem: OpenProblem, search: BudgetSearch, value: float, delta: float
) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the value that each other bound needs instead of ``value`` (None if there is none), and notes with the reasons."""
    found: dict[str, float | None] = {}
    notes: dict[str, str] = {}
    # A mechanism that changes from step to step has to be composed at each step; a fixed one is composed once.
    accuracy = _TOLERANCE if isinstance(problem.stages.mechanism, OpenSpec) else ACCURACY
    for name in _names(problem, value):
        bound, range_ = _bound(problem, name, delta, accuracy), search.search_range
        if name == "composition" and problem.unknown.parameter == "mean":
            range_ = dataclasses.replace(range_, integer=True, safest=max(range_.safest, 1))  # a number of runs
        other = BudgetSearch(bound, range_, search.budget, accuracy, _TOLERANCE, exact_integers=False)
        try:
            found[name] = other.solve(_start(problem, name, search, value), search.elasticity)
        except NotCoveredError as reason:
            found[name], notes[name] = None, str(reason)
        except InfeasibleError as error:
            found[name], notes[name] = None, f"no value tried meets the budget, not {error}"
        except UnconstrainedError as error:
            found[name], notes[name] = None, f"every value tried meets the budget, {error}"
        except ParameterError as error:
            found[name], notes[name] = None, f"no solution: {error}"
    return found, notes


def _names(problem: OpenProblem, value: float) -> tuple[str, ...]:
    """Return the bounds that are solved for."""
    stages = problem.stages
    if stages.is_two_stage:  # each value tried would take as long as the plan itself; `privselect compare` has the other bounds
        return ()
    if stages.count is not None:
        return SELECTION_BASELINES
    return NOISY_MAX_BASELINES if isinstance(problem.whole(value), NoisyMax) else ()


def _start(problem: OpenProblem, name: str, search: BudgetSearch, value: float) -> float:
    """Return the exact solution; for full composition a larger one, because epsilon grows with the root of the number of runs."""
    count = problem.fill(value).closed().count
    if name != "composition" or count is None or not isinstance(problem.stages.mechanism, OpenSpec):
        return value
    grown = max(0.5 * math.sqrt(composition_runs(count)), 1.0)
    range_ = search.search_range
    return range_.from_log(range_.to_log(value) + range_.safe_direction * math.log(grown) / search.elasticity)


def _bound(problem: OpenProblem, name: str, delta: float, accuracy: float) -> Callable[[float], float]:
    def bound(value: float) -> float:
        closed = problem.fill(value).closed()
        mechanism, count = closed.mechanism, closed.count
        if count is None:
            return _noisy_max_bound(mechanism, name, delta)
        if name == "paper":
            return paper_bound(mechanism, count, delta, accuracy)
        if name == "renyi":
            return renyi_bound(mechanism, count, delta, accuracy)
        try:
            return composed_epsilon(mechanism, composition_runs(count), delta, accuracy)
        except NotCoveredError:  # too many runs to compose: far above any budget
            return math.inf

    return bound


def _noisy_max_bound(mechanism: object, name: str, delta: float) -> float:
    if not isinstance(mechanism, NoisyMax):
        raise NotCoveredError("one trial alone: no law of K was given")
    if name == "full_release" and mechanism.accounting.single_release is None:
        raise NotCoveredError("this noise does not protect a release of all scores, at any scale")
    bound = BOUNDS[name](mechanism, delta)
    return math.inf if bound is None else bound
