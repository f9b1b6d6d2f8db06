"""Details of a solved question: a comparison with other bounds, the plan file and a draft certificate."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BOUND_STYLES
from privselect._util.rounding import round_up
from privselect.certificates.certify import certify
from privselect.errors import NotCoveredError, ParameterError
from privselect.planning.baselines import solve_baselines
from privselect.planning.plan import check_plan, plan
from privselect.planning.plan_file import plan_file_of
from privselect.planning.plan_result import Problem
from privselect.planning.plan_toml import plan_text
from privselect.planning.search import BudgetSearch
from privselect.selection.compare import composition_runs
from privselect.web.curves import OTHER_BOUNDS
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.mechanisms import Mechanism
    from privselect.planning.plan_result import Plan
    from privselect.planning.stages import OpenStages
    from privselect.selection.two_stages import Stages
    from privselect.web.question import ParsedQuestion, SolvedQuestion

_DELTA_FACTORS = (1.0, 1.001, 1.01, 1.1, 2.0)
_ONE_TRIAL = "no law of K is given"
_LABELS = {name: label for name, (label, _) in BOUND_STYLES.items()} | {"search": "search alone", "final": "final training alone"}

# -- comparison --------------------------------------------------------------------------------------------------------------


def compare(question: ParsedQuestion, solved: SolvedQuestion, value: float) -> dict[str, Any]:
    """Return one row per bound, the exact one first, and one row for each part alone."""
    stages = solved.stages
    exact = float(solved.whole.epsilon_fast(solved.delta, accuracy=ACCURACY).upper)
    rows = [_row("exact", exact, exact, value if question.problem is not None else None, None)]
    others = _rows_of_bounds(question, solved, value, exact) if stages.is_selection else _rows_of_stages(stages, solved.delta, exact)
    alone = float(stages.one_trial.epsilon_fast(solved.delta, accuracy=ACCURACY).upper)
    return {"unknown": question.unknown, "rows": [*rows, *others, _row("base", alone, exact, None, None)]}


def _rows_of_bounds(question: ParsedQuestion, solved: SolvedQuestion, value: float, exact: float) -> Iterator[dict[str, Any]]:
    mechanism, count = solved.stages.mechanism, solved.stages.count
    required, notes = _required_values(question, solved, value)
    for name, bound in OTHER_BOUNDS.items():
        note = notes.get(name)
        try:
            epsilon = math.nan if count is None else bound(mechanism, count, solved.delta)
            note = _ONE_TRIAL if count is None else note
        except NotCoveredError as reason:
            epsilon, note = math.nan, str(reason)
        yield _row(name, epsilon, exact, required.get(name), note)


def _rows_of_stages(stages: Stages, delta: float, exact: float) -> Iterator[dict[str, Any]]:
    """Yield the release of all trials and of the final training, then each stage alone."""
    if stages.count is not None:
        runs = composition_runs(stages.count)
        visible = replace(stages, count=None, visible=runs).whole
        note = f"{runs} trials{'' if stages.final is None else ' and the final training'}, every output released"
        yield _row("composition", _epsilon(visible, delta), exact, None, note)
    if stages.final is not None:
        yield _row("search", _epsilon(stages.search, delta), exact, None, None)
        yield _row("final", _epsilon(stages.final, delta), exact, None, None)


def _epsilon(mechanism: Mechanism, delta: float) -> float:
    return float(mechanism.epsilon_fast(delta, accuracy=ACCURACY).upper)


def _required_values(question: ParsedQuestion, solved: SolvedQuestion, value: float) -> tuple[dict[str, float | None], dict[str, str]]:
    """Return the value that each bound requires instead of the solved number, and notes."""
    problem = question.problem
    if problem is None or problem.unknown.leaks is None or solved.stages.count is None:
        return {}, {}
    search = BudgetSearch(lambda _: math.nan, problem.search_range(), solved.epsilon)  # for its range and budget only
    return solve_baselines(problem, search, value, solved.delta)


def _row(name: str, epsilon: float, exact: float, required: float | None, note: str | None) -> dict[str, Any]:
    finite = math.isfinite(epsilon)
    ratio = epsilon / exact if finite and 0.0 < exact < math.inf else None
    if not finite and note is None and not math.isnan(epsilon):
        note = "infinite"
    return {
        "name": name,
        "label": _LABELS[name],
        "epsilon": epsilon if finite else None,
        "ratio": ratio,
        "required": required,
        "note": note,
    }


# -- files: checked at full accuracy -----------------------------------------------------------------------------------------


def plan_toml(question: ParsedQuestion, solved: SolvedQuestion) -> str:
    """Return the plan file, which also contains the open question, if any."""
    return plan_text(plan_file_of(_plan(question, solved)))


def draft_certificate(question: ParsedQuestion, solved: SolvedQuestion) -> str:
    """Return a certificate in JSON. It is a draft, because the page takes no declarations."""
    if solved.epsilon == 0.0:  # plans need a positive epsilon
        delta = _slightly_larger_delta(solved) if question.delta is None else solved.delta
        return certify(**_terms(solved.stages), delta=delta, epsilon=solved.epsilon).to_json()
    found = _plan(question, solved)
    return certify(**_terms(found), delta=found.delta, epsilon=found.epsilon).to_json()


def _terms(stages: Stages | OpenStages | Plan) -> dict[str, Any]:
    """Return the search and the final training as arguments of ``certify``, ``plan`` and ``check_plan``."""
    return {name: getattr(stages, name) for name in ("mechanism", "count", "final", "visible", "subsample")}


def _plan(question: ParsedQuestion, solved: SolvedQuestion) -> Plan:
    """Return a plan with the answer of the page, or with a slightly safer one if full accuracy requires it."""
    try:
        found = check_plan(**_terms(solved.stages), epsilon=solved.epsilon, delta=solved.delta)
    except ParameterError:
        if not _is_proved(question, solved):
            raise
        return _solve_again(question, solved)
    if question.problem is None:
        return found
    return replace(found, problem=Problem.of(question.asked, final_noise=question.final_noise))


def _is_proved(question: ParsedQuestion, solved: SolvedQuestion) -> bool:
    """Return whether the page itself can prove this answer, or the client made it up."""
    if question.delta is None:
        return bool(solved.whole.delta_at(solved.epsilon).upper <= solved.delta)
    return bool(solved.whole.epsilon_fast(solved.delta, accuracy=ACCURACY).upper <= solved.epsilon)


def _solve_again(question: ParsedQuestion, solved: SolvedQuestion) -> Plan:
    """Solve the question again, at full accuracy."""
    epsilon, delta = solved.epsilon, solved.delta
    if question.problem is not None:
        return plan(**_terms(question.asked), final_noise=question.final_noise, epsilon=epsilon, delta=delta)
    if question.epsilon is None:
        epsilon = round_up(float(solved.whole.epsilon_at(delta).upper))
    else:
        delta = _slightly_larger_delta(solved)
    return check_plan(**_terms(solved.stages), epsilon=epsilon, delta=delta)


def _slightly_larger_delta(solved: SolvedQuestion) -> float:
    """Return the smallest of a few deltas from the solved one on at which the certified epsilon meets the question's."""
    for factor in _DELTA_FACTORS:
        delta = round_up(solved.delta * factor)
        if delta < 1.0 and solved.whole.epsilon_at(delta).upper <= solved.epsilon:
            return delta
    return solved.delta
