"""The answer to a question, within what a page can show of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.digits import rounded_up
from privselect.interval import Interval
from privselect.planning.chance import at_least
from privselect.planning.plan import Plan, plan
from privselect.planning.question import together
from privselect.planning.quickly import Quickly
from privselect.web import snippets
from privselect.web.asked import Asked, Settled, about
from privselect.web.limits import ACCURACY, LEAST_DELTA, MOST_STEPS, MOST_TRIALS
from privselect.web.sentence import proved, sentence, shown_value

if TYPE_CHECKING:
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism

_MOST_PLACES, _FEW_PLACES = 400, 100
_MOST = {"mean": MOST_TRIALS, "n": MOST_TRIALS, "k": MOST_TRIALS, "steps": MOST_STEPS, "times": MOST_STEPS}
_SLACKS = (1.0, 1.0002, 1.001, 1.003, 1.01, 1.05)
_TAIL = 0.005  # of the law that is not drawn


def answer(asked: Asked, near: float | None = None) -> dict[str, Any]:
    """What was asked for, how it was proved, and what the law of K says; ``near`` is where to look first."""
    with about(None):
        value, interval = _solved(asked, near)
        found = None if value is None else asked.settled(value)
        known = found or asked
        return {
            "sentence": sentence(asked, found, math.inf if value is None else value),
            "proved": proved(asked, found, interval),
            "unknown": asked.unknown,
            "value": value,
            "shown": None if value is None else shown_value(asked, value),
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
        return (rounded_up(upper) if math.isfinite(upper) else None), interval
    interval = whole.delta_at(asked.epsilon)
    return _least_delta(whole, asked.epsilon, float(interval.upper)), interval


def _least_delta(whole: Mechanism, epsilon: float, upper: float) -> float | None:
    """``upper``, or as little more as lets the epsilon at it, found by itself and rounded on its own, be the one that was asked."""
    for slack in _SLACKS:
        delta = max(rounded_up(upper * slack), LEAST_DELTA)
        if delta >= 1.0:
            return None
        if whole.epsilon_at(delta).upper <= epsilon:
            return delta
    return max(rounded_up(upper), LEAST_DELTA)


def _numbers(asked: Asked, known: Asked | Settled, interval: Interval) -> dict[str, Any]:
    mechanism, count, delta = known.mechanism, known.count, known.delta
    cost = Interval(None, asked.epsilon) if asked.delta is None and asked.epsilon is not None else interval
    alone = None if delta is None else mechanism.epsilon_about(delta, accuracy=ACCURACY).as_dict()
    described = Plan(mechanism, count, 1.0, delta or 0.5, cost)  # type: ignore[arg-type]  # nothing is open; the budget is not looked at
    return {"cost": cost.as_dict(), "base": alone, "trials": described.trials(), "law": _law(count)}  # type: ignore[arg-type]


def _law(count: Count | None) -> dict[str, list[float]] | None:
    """``P(K >= k)`` at places enough for a drawing."""
    if count is None:
        return None
    top = count.quantile(1.0 - _TAIL)
    if top <= _MOST_PLACES:
        return {"k": list(range(1, top + 2)), "at_least": at_least(count, top + 1)[1:]}
    shares = np.linspace(0.0, 1.0 - _TAIL, _FEW_PLACES)[1:]
    places = [count.quantile(float(share)) for share in shares]
    return {"k": [1, *places], "at_least": [1.0 - count.probability_of_zero(), *(1.0 - shares).tolist()]}
