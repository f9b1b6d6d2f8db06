"""Details of a solved question: curves, a comparison with other bounds, the plan file and a draft certificate."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BOUND_STYLES
from privselect._util.rounding import round_up
from privselect.certificates.certify import certify
from privselect.errors import NotCoveredError, ParameterError
from privselect.planning.baselines import solve_baselines
from privselect.planning.plan import check_plan, plan
from privselect.planning.plan_file import plan_file_of, plan_text
from privselect.planning.search import BudgetSearch
from privselect.selection.compare import composed_epsilon, composition_runs, paper_bound, renyi_bound
from privselect.selection.plots import comparison_curves, has_variable_mean
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.planning.plan_result import Plan
    from privselect.selection.plots import Bound
    from privselect.web.question import ParsedQuestion, SolvedQuestion

_POINTS, _MIN_POINTS = 13, 5
_CURVE_SECONDS = 4.0  # for each of the two
_DELTA_FACTORS = (1.0, 1.001, 1.01, 1.1, 2.0)
_ONE_TRIAL = "no law of K is given"
_TOO_SLOW = "this law of K takes too long for the page; `privselect compare --plot` draws the curve"
_TOO_LARGE = "this law of K takes too much memory for the page; `privselect compare --plot` draws the curve"


def _composition(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Bound the epsilon of releasing all runs, for the expected number of runs, at the accuracy of the page."""
    return composed_epsilon(mechanism, composition_runs(count), delta, ACCURACY)


_OTHER_BOUNDS: dict[str, Bound] = {
    "paper": partial(paper_bound, accuracy=ACCURACY),
    "renyi": partial(renyi_bound, accuracy=ACCURACY),
    "composition": _composition,
}

# -- curves ------------------------------------------------------------------------------------------------------------------


def curves(solved: SolvedQuestion) -> dict[str, Any]:
    """Compute epsilon by every bound along E K, if the law of K has a mean to vary, and the exact epsilon along delta."""
    points = _affordable_points(solved)
    note = _why_no_mean(solved.count) or (None if points >= _MIN_POINTS else _TOO_SLOW)
    along_mean = None
    if not note:
        try:
            along_mean = _curves_along(solved, "mean", points, _OTHER_BOUNDS, mean="x")
        except MemoryError:  # for larger means than that of the question
            note = _TOO_LARGE
    return {"mean": along_mean, "mean_note": note, "profile": _curves_along(solved, "delta", max(points, _MIN_POINTS), {})}


def _why_no_mean(count: Count | None) -> str | None:
    if count is None:
        return "with one trial, there is no mean of K to vary"
    return None if has_variable_mean(count) else f"a {count.text_name} law of K has no mean to vary"


def _affordable_points(solved: SolvedQuestion) -> int:
    """Return how many points fit into the time limit, by the time of one point."""
    started = time.perf_counter()
    solved.selection.epsilon_fast(min(1.01 * solved.delta, 0.999), accuracy=ACCURACY)
    return min(_POINTS, int(_CURVE_SECONDS / (time.perf_counter() - started + 1e-9)))


def _curves_along(solved: SolvedQuestion, axis: str, points: int, bounds: dict[str, Bound], **names: str) -> dict[str, Any]:
    found = comparison_curves(solved.selection, delta=solved.delta, over=axis, points=points, accuracy=ACCURACY, bounds=bounds)
    return {{"exact_upper": "exact", **names}.get(name, name): values for name, values in found.items()}


# -- comparison --------------------------------------------------------------------------------------------------------------


def compare(question: ParsedQuestion, solved: SolvedQuestion, value: float) -> dict[str, Any]:
    """Return one row per bound, the exact one first."""
    exact = float(solved.selection.epsilon_fast(solved.delta, accuracy=ACCURACY).upper)
    alone = float(solved.mechanism.epsilon_fast(solved.delta, accuracy=ACCURACY).upper)
    required, notes = _required_values(question, solved, value)
    rows = [_row("exact", exact, exact, value if question.problem is not None else None, None)]
    for name, bound in _OTHER_BOUNDS.items():
        note = notes.get(name)
        try:
            epsilon = math.nan if solved.count is None else bound(solved.mechanism, solved.count, solved.delta)
            note = _ONE_TRIAL if solved.count is None else note
        except NotCoveredError as reason:
            epsilon, note = math.nan, str(reason)
        rows.append(_row(name, epsilon, exact, required.get(name), note))
    return {"unknown": question.unknown, "rows": [*rows, _row("base", alone, exact, None, None)]}


def _required_values(question: ParsedQuestion, solved: SolvedQuestion, value: float) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the value that each bound requires instead of the solved number, and notes."""
    problem = question.problem
    if problem is None or problem.unknown.leaks is None or solved.count is None:
        return {}, {}
    search = BudgetSearch(lambda _: math.nan, problem.search_range(), solved.epsilon)  # for its range and budget only
    return solve_baselines(problem, search, value, solved.delta)


def _row(name: str, epsilon: float, exact: float, required: float | None, note: str | None) -> dict[str, Any]:
    finite = math.isfinite(epsilon)
    ratio = epsilon / exact if finite and 0.0 < exact < math.inf else None
    if not finite and note is None and not math.isnan(epsilon):
        note = "infinite"
    label = BOUND_STYLES[name][0]
    return {"name": name, "label": label, "epsilon": epsilon if finite else None, "ratio": ratio, "required": required, "note": note}


# -- files: checked at full accuracy -----------------------------------------------------------------------------------------


def plan_toml(question: ParsedQuestion, solved: SolvedQuestion) -> str:
    """Return the plan file, which also contains the open question, if any."""
    return plan_text(plan_file_of(_plan(question, solved)))


def draft_certificate(question: ParsedQuestion, solved: SolvedQuestion) -> str:
    """Return a certificate in JSON. It is a draft, because the page takes no declarations."""
    found: Plan | SolvedQuestion
    if solved.epsilon == 0.0:  # plans need a positive epsilon
        found = replace(solved, delta=_slightly_larger_delta(solved)) if question.delta is None else solved
    else:
        found = _plan(question, solved)
    return certify(found.mechanism, found.count, delta=found.delta, epsilon=found.epsilon).to_json()


def _plan(question: ParsedQuestion, solved: SolvedQuestion) -> Plan:
    """Return a plan with the answer of the page, or with a slightly safer one if full accuracy requires it."""
    try:
        found = check_plan(solved.mechanism, solved.count, epsilon=solved.epsilon, delta=solved.delta)
    except ParameterError:
        if not _is_proved(question, solved):
            raise
        return _solve_again(question, solved)
    if question.problem is None:
        return found
    return replace(found, problem=(str(question.mechanism), None if question.count is None else str(question.count)))


def _is_proved(question: ParsedQuestion, solved: SolvedQuestion) -> bool:
    """Return whether the page itself can prove this answer, or the client made it up."""
    if question.delta is None:
        return bool(solved.selection.delta_at(solved.epsilon).upper <= solved.delta)
    return bool(solved.selection.epsilon_fast(solved.delta, accuracy=ACCURACY).upper <= solved.epsilon)


def _solve_again(question: ParsedQuestion, solved: SolvedQuestion) -> Plan:
    """Solve the question again, at full accuracy."""
    mechanism, count, epsilon, delta = solved.mechanism, solved.count, solved.epsilon, solved.delta
    if question.problem is not None:
        return plan(question.mechanism, question.count, epsilon=epsilon, delta=delta)
    if question.epsilon is None:
        return check_plan(mechanism, count, epsilon=round_up(float(solved.selection.epsilon_at(delta).upper)), delta=delta)
    return check_plan(mechanism, count, epsilon=epsilon, delta=_slightly_larger_delta(solved))


def _slightly_larger_delta(solved: SolvedQuestion) -> float:
    """Return the smallest of a few deltas from the solved one on at which the certified epsilon meets the question's."""
    for factor in _DELTA_FACTORS:
        delta = round_up(solved.delta * factor)
        if delta < 1.0 and solved.selection.epsilon_at(delta).upper <= solved.epsilon:
            return delta
    return solved.delta
