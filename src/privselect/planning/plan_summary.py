"""A plan as people read it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.rounding import format_down, format_up
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.planning.plan import Plan

_OTHERS = {
    "paper": "by the paper's bound",
    "renyi": "by Renyi divergences",
    "composition": "with every run released",
    "full_release": "with every score released",
}


def summary(plan: Plan) -> str:
    """One line for each thing that a plan says; text forms stay whole, to be copied."""
    lines = list(_lines(plan))
    width = max(len(what) for what, _ in lines)
    return "\n".join(f"{what:{width}}  {said}" for what, said in lines)


def _lines(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "mechanism", str(plan.mechanism)
    yield "law of K", "one trial" if plan.count is None else str(plan.count)
    yield "budget", f"epsilon {write_value(plan.epsilon)} at delta {write_value(plan.delta)}"
    yield "certified", f"epsilon {format_up(float(plan.cost.upper), 6)}{_at_least(plan)}"
    if plan.parameter is not None and plan.value is not None:
        yield plan.parameter, f"{write_value(plan.value)}"
    if plan.feasible is not None:
        yield "  all that meet it", ", ".join(_stretch(*stretch) for stretch in plan.feasible)
    for name, value in plan.instead.items():
        yield f"  {_OTHERS[name]}", plan.notes[name] if value is None else f"{write_value(value)}{_times(value, plan.value)}"
    yield from _trials(plan)


def _trials(plan: Plan) -> Iterator[tuple[str, str]]:
    if plan.count is None:
        return
    said = plan.trials()
    quantiles = ", ".join(f"{k} or fewer with {100 * float(q):g}%" for q, k in said["quantiles"].items())
    yield "trials", f"{said['expected']:.6g} expected; {quantiles}"
    if said["probability_of_zero"] > 0.0:
        yield "  none at all", f"with {_percent(said['probability_of_zero'])}; then a fixed symbol is released"
    best = ", ".join(f"best {100 * float(tau):g}% with {_percent(chance)}" for tau, chance in said["chance_of_best"].items())
    yield "some trial in the", best


def _at_least(plan: Plan) -> str:
    lower = plan.cost.lower
    return "" if lower is None else f", and no less than {format_down(float(lower), 6)}"


def _percent(chance: float) -> str:
    return f"{format_down(100.0 * chance, 1)}%" if chance >= 1e-3 else f"{100.0 * chance:.2g}%"


def _stretch(first: int, last: int | None) -> str:
    return f"{first} and more" if last is None else f"{first}" if first == last else f"{first} to {last}"


def _times(value: float, exact: float | None) -> str:
    return f"  ({value / exact:.3g} times that)" if exact and exact > 0.0 < value else ""
