"""Answer requests in a worker process."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import round_up
from privselect.interval import Interval
from privselect.planning.design.design import design
from privselect.planning.plan import plan
from privselect.planning.plan_result import Plan, survival_function
from privselect.planning.search_range import FastOptions
from privselect.report.charts import survival_steps
from privselect.selection.two_stages import Stages
from privselect.web import details
from privselect.web.advice import compare_ways
from privselect.web.answer_text import answer_sentence, proof_sentence, python_code, shell_command, value_text
from privselect.web.curves import curves
from privselect.web.limits import ACCURACY, MAX_STEPS, MAX_TRIALS, MIN_DELTA
from privselect.web.question import SolvedQuestion, blame_field, parse_closed_mechanism, parse_question

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.web.question import ParsedQuestion
    from privselect.web.schemas import AdviceRequest, AnswerRequest, DesignRequest, SolvedRequest

_LARGEST = {"mean": MAX_TRIALS, "n": MAX_TRIALS, "k": MAX_TRIALS, "steps": MAX_STEPS, "times": MAX_STEPS}
_MAX_STEPS_DRAWN = 400  # of a survival function
_TAIL = 0.005  # probability of the tail that is not drawn


def handle(kind: str, request: Any) -> Any:
    """Return the answer to one request, or raise ``RefusedError``."""
    with blame_field(None):
        return _HANDLERS[kind](request)


def _answer(request: AnswerRequest) -> dict[str, Any]:
    question = parse_question(request)
    value, interval = _solve(question, request.search_start)
    solved = None if value is None else question.solve_with(value)
    text = None if value is None else value_text(question, value, interval)
    known = solved or question
    stages = known.stages
    return {
        "sentence": answer_sentence(question, solved, text),
        "proof": proof_sentence(question, solved, interval),
        "unknown": question.unknown,
        "value": value,
        "value_text": text,
        "final_value": question.final_value,
        "mechanism": str(stages.mechanism),
        **{name: _text_or_none(getattr(stages, name)) for name in ("count", "final", "subsample")},
        "visible": stages.visible,
        "epsilon": known.epsilon,
        "delta": known.delta,
        **_numbers(question, known, interval),
        "python": python_code(question),
        "command": shell_command(question),
    }


def _curves(request: SolvedRequest) -> dict[str, Any]:
    return curves(parse_question(request, request.final_value).solve_with(request.value))


def _compare(request: SolvedRequest) -> dict[str, Any]:
    question = parse_question(request, request.final_value)
    return details.compare(question, question.solve_with(request.value), request.value)


def _plan(request: SolvedRequest) -> str:
    question = parse_question(request, request.final_value)
    return details.plan_toml(question, question.solve_with(request.value))


def _certificate(request: SolvedRequest) -> str:
    question = parse_question(request, request.final_value)
    return details.draft_certificate(question, question.solve_with(request.value))


def _design(request: DesignRequest) -> dict[str, Any]:
    mechanism = parse_closed_mechanism(request.mechanism)
    goal = request.model_dump(exclude={"mechanism"})
    return design(mechanism, **goal).as_dict()


def _advise(request: AdviceRequest) -> dict[str, Any]:
    return compare_ways(request.mechanism, request.epsilon, request.delta)


_HANDLERS: dict[str, Callable[[Any], Any]] = {
    "answer": _answer,
    "curves": _curves,
    "compare": _compare,
    "design": _design,
    "advise": _advise,
    "plan": _plan,
    "certificate": _certificate,
}


def _text_or_none(part: object) -> str | None:
    return None if part is None else str(part)


def _solve(question: ParsedQuestion, search_start: float | None) -> tuple[float | None, Interval]:
    """Return the unknown, or None if it is infinite, and the interval that proves it."""
    stages = question.stages
    if question.problem is not None:
        fast = FastOptions(ACCURACY, search_start, _LARGEST.get(question.unknown))
        more: dict[str, Any] = {"final": stages.final, "visible": stages.visible, "subsample": stages.subsample, "fast": fast}
        found = plan(stages.mechanism, stages.count, epsilon=question.budget.epsilon, delta=question.budget.delta, **more)
        return found.value, found.cost
    whole = stages.closed().whole
    if question.epsilon is None:
        interval = whole.epsilon_fast(question.budget.delta, accuracy=ACCURACY)
        upper = float(interval.upper)
        return (round_up(upper) if math.isfinite(upper) else None), interval
    interval = whole.delta_at(question.epsilon)
    delta = max(round_up(float(interval.upper)), MIN_DELTA)
    return (delta if delta < 1.0 else None), interval


def _numbers(question: ParsedQuestion, known: ParsedQuestion | SolvedQuestion, interval: Interval) -> dict[str, Any]:
    """Return what is known about the costs and the number of trials. A question without an answer has no open text form."""
    stages, delta = known.stages, known.delta
    closed = stages if isinstance(stages, Stages) else stages.closed()
    cost = interval if question.delta is not None else _cost(known)
    described = Plan(closed.mechanism, closed.count, 1.0, delta or 0.5, cost, visible=closed.visible)  # its budget is not used
    return {
        "cost": cost.as_dict(),
        "base": _epsilon(closed.one_trial, delta),
        "final_alone": _epsilon(closed.final, delta),
        "trials": described.trials(),
        "survival": None if closed.count is None else survival_points(closed.count),
    }


def _epsilon(mechanism: Mechanism | None, delta: float | None) -> dict[str, Any] | None:
    return None if mechanism is None or delta is None else mechanism.epsilon_fast(delta, accuracy=ACCURACY).as_dict()


def _cost(known: ParsedQuestion | SolvedQuestion) -> Interval:
    """Return epsilon at the solved delta. It may differ slightly from the question's epsilon, because each is rounded."""
    if not isinstance(known, SolvedQuestion):
        return Interval(None, math.inf)  # no delta below 1 was found
    return known.whole.epsilon_fast(known.delta, accuracy=ACCURACY)


def survival_points(count: Count) -> dict[str, list[float]]:
    """Return ``P(K >= k)`` at enough integers for a chart. Each value also holds for the integers since the previous k."""
    top = count.quantile(1.0 - _TAIL)
    if top <= _MAX_STEPS_DRAWN:
        return {"k": list(range(1, top + 2)), "probability": survival_function(count, top + 1)[1:]}
    places, beyond = zip(*survival_steps(count), strict=True)
    last = 0.0 if count.largest == places[-1] else beyond[-1]
    return {"k": [*places[1:], places[-1] + 1.0], "probability": [*beyond[:-1], last]}
