"""The answer to a question, within what a page can show of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import round_up
from privselect.interval import Interval
from privselect.planning.fast_options import Quickly
from privselect.planning.open_problem import together
from privselect.planning.plan import Plan, plan
from privselect.planning.success_probability import at_least
from privselect.report.survival_curve import survival
from privselect.web import snippets
from privselect.web.answer_text import proved, sentence, shown_value
from privselect.web.limits import ACCURACY, LEAST_DELTA, MOST_STEPS, MOST_TRIALS
from privselect.web.parse_question import Asked, Settled, about

if TYPE_CHECKING:
    from privselect.counts import Count

_MOST_PLACES = 400
_MOST = {"mean": MOST_TRIALS, "n": MOST_TRIALS, "k": MOST_TRIALS, "steps": MOST_STEPS, "times": MOST_STEPS}
_TAIL = 0.005  # of the law that is not drawn


def answer(asked: Asked, near: float | None = None) -> dict[str, Any]:
    """What was asked for, how it was proved, and what the law of K says; ``near`` is where to look first."""
    with about(None):
        value, interval = _solved(asked, near)
        found = None if value is None else asked.settled(value)
        shown = None if value is None else shown_value(asked, value, interval)
        known = found or asked
        return {
            "sentence": sentence(asked, found, shown),
            "proved": proved(asked, found, interval),
            "unknown": asked.unknown,
            "value": value,
            "shown": shown,
            "mechanism": str(known.mechanism),
            "count": None if known.count is None else str(known.count),
            "epsilon": known.epsilon,
            "delta": known.delta,
            **_numbers(asked, known, interval),
            "python": snippets.python(asked),
            "command": snippets.command(asked),
        }


def _solved(asked: Asked, near: float | None) -> tuple[float | None, Interval]:
    """The unknown, None where it is infinite, and the interval that proves it."""
    if asked.open is not None:
        budget, at = float(asked.epsilon or 0.0), float(asked.delta or 0.0)
        quickly = Quickly(ACCURACY, near, _MOST.get(asked.unknown))
        solved = plan(asked.mechanism, asked.count, epsilon=budget, delta=at, quickly=quickly)
        return solved.value, solved.cost
    whole = together(asked.mechanism, asked.count)  # type: ignore[arg-type]  # nothing is open in them
    if asked.epsilon is None:
        interval = whole.epsilon_about(float(asked.delta or 0.0), accuracy=ACCURACY)
        upper = float(interval.upper)
        return (round_up(upper) if math.isfinite(upper) else None), interval
    interval = whole.delta_at(asked.epsilon)
    delta = max(round_up(float(interval.upper)), LEAST_DELTA)
    return (delta if delta < 1.0 else None), interval


def _numbers(asked: Asked, known: Asked | Settled, interval: Interval) -> dict[str, Any]:
    mechanism, count, delta = known.mechanism, known.count, known.delta
    cost = interval if asked.delta is not None else _cost(known)
    alone = None if delta is None else mechanism.epsilon_about(delta, accuracy=ACCURACY).as_dict()
    described = Plan(mechanism, count, 1.0, delta or 0.5, cost)  # type: ignore[arg-type]  # nothing is open; the budget is not looked at
    return {"cost": cost.as_dict(), "base": alone, "trials": described.trials(), "law": _law(count)}  # type: ignore[arg-type]


def _cost(known: Asked | Settled) -> Interval:
    """Epsilon at the delta that was solved for, which is a little less than the one asked for, or rounded on its own a little more."""
    if not isinstance(known, Settled):
        return Interval(None, math.inf)  # no delta below 1 was found
    return known.whole.epsilon_about(known.delta, accuracy=ACCURACY)


def _law(count: Count | None) -> dict[str, list[float]] | None:
    """``P(K >= k)`` at places enough for a drawing: each holds from the place before it up to its own."""
    if count is None:
        return None
    top = count.quantile(1.0 - _TAIL)
    if top <= _MOST_PLACES:
        return {"k": list(range(1, top + 2)), "at_least": at_least(count, top + 1)[1:]}
    places, beyond = zip(*survival(count), strict=True)
    last = 0.0 if count.largest == places[-1] else beyond[-1]
    return {"k": [*places[1:], places[-1] + 1.0], "at_least": [*beyond[:-1], last]}
