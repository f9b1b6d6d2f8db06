"""Compare the ways to tune a training under one budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect.planning.advice import NO_TUNING, advise, released_noise
from privselect.planning.split import FINAL_NOISE
from privselect.text_forms import write_value
from privselect.web.question import blame_field

if TYPE_CHECKING:
    from privselect.planning.plan_result import Plan

_TOP_FRACTION = 0.1


def compare_ways(mechanism: str, epsilon: float, delta: float) -> dict[str, Any]:
    """Return the noises of each way, and the question that plans it on the page."""
    with blame_field("mechanism"):
        found = advise(mechanism, epsilon=epsilon, delta=delta)
    alone = released_noise(found.plans[NO_TUNING])
    return {
        "parameter": found.plans[NO_TUNING].solved[0].parameter,
        "recommended": found.recommended,
        "reason": found.reason,
        "caution": found.caution,
        "ways": [{"way": way, **_way(plan, alone)} for way, plan in found.plans.items()],
    }


def _way(plan: Plan, alone: float) -> dict[str, Any]:
    noise, tunes = released_noise(plan), plan.law is not None
    search = next((one.value for one in plan.solved if one.stage == "search"), None)
    return {
        "search_noise": search if tunes else None,
        "released_noise": noise,
        "extra_noise": noise / alone - 1.0,
        "trials": None if not tunes else str(plan.count) if plan.visible is None else f"{plan.visible} visible",
        "good_candidate": plan.success_probability(_TOP_FRACTION) if tunes else None,
        "question": _question(plan),
    }


def _question(plan: Plan) -> dict[str, Any]:
    """Return the fields of the question whose answer is this plan."""
    problem = plan.problem
    if problem is None:
        raise TypeError("a way to tune has a problem")  # it was solved for an open noise
    return {
        "mechanism": problem.mechanism,
        "count": problem.count,
        "visible": plan.visible,
        "final": problem.final,
        "final_noise": None if plan.final is None else FINAL_NOISE,
        "epsilon": write_value(plan.epsilon),
        "delta": write_value(plan.delta),
    }
