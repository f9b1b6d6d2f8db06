"""What the other bounds would have forced: each solved for in the same way, from the exact solution on."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from privselect.errors import NotCoveredError, ParameterError
from privselect.noisy_max import NoisyMax
from privselect.noisy_max.accounting.bounds import BOUNDS
from privselect.open_spec import OpenSpec
from privselect.pairs.compose import ACCURACY
from privselect.planning.search.budget_search import AnythingMeetsItError, NothingMeetsItError, Search
from privselect.selection.compare import composed_runs, paper, released_epsilon, renyi

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.planning.open_problem import Question
    from privselect.planning.search.search_range import Axis

SELECTION = ("paper", "renyi", "composition")
NOISY_MAX = ("paper", "renyi", "full_release")
_NARROW = 1e-3  # these are only shown


def instead(asked: Question, search: Search, value: float, delta: float) -> tuple[dict[str, float | None], dict[str, str]]:
    """The value that each other bound would have forced in place of ``value``, None where it gives none; and notes that say why."""
    found: dict[str, float | None] = {}
    notes: dict[str, str] = {}
    # A mechanism that changes from step to step is composed anew each time; one that stays is not.
    accuracy = _NARROW if isinstance(asked.mechanism, OpenSpec) else ACCURACY
    for name in _names(asked, value):
        bound = _bound(asked, name, delta, accuracy)
        other = Search(bound, _axis(asked, name, search.axis), search.budget, accuracy, _NARROW, to_the_last=False)
        try:
            found[name] = other.solve(_start_for(asked, name, search, value), search.elasticity)
        except NotCoveredError as reason:
            found[name], notes[name] = None, str(reason)
        except NothingMeetsItError as error:
            found[name], notes[name] = None, f"nothing meets the budget, not {error}"
        except AnythingMeetsItError as error:
            found[name], notes[name] = None, f"no limit within the range searched, {error} meets the budget"
        except ParameterError as error:
            found[name], notes[name] = None, f"no answer: {error}"
    return found, notes


def _names(asked: Question, value: float) -> tuple[str, ...]:
    if asked.count is not None:
        return SELECTION
    return NOISY_MAX if isinstance(asked.whole(value), NoisyMax) else ()


def _axis(asked: Question, name: str, axis: Axis) -> Axis:
    if name == "composition" and asked.hole.parameter == "mean":
        return dataclasses.replace(axis, whole=True, safest=max(axis.safest, 1))  # so many runs
    return axis


def _start_for(asked: Question, name: str, search: Search, value: float) -> float:
    """The exact solution; for a mechanism released many times, about where it costs as much: epsilon grows with the root of the runs."""
    count = asked.parts(value)[1]
    if name != "composition" or count is None or not isinstance(asked.mechanism, OpenSpec):
        return value
    grown = max(0.5 * math.sqrt(composed_runs(count)), 1.0)
    return search.axis.value(search.axis.place(value) + search.axis.towards_safe * math.log(grown) / search.elasticity)


def _bound(asked: Question, name: str, delta: float, accuracy: float) -> Callable[[float], float]:
    def bound(value: float) -> float:
        mechanism, count = asked.parts(value)
        if count is None:
            return _of_noisy_max(mechanism, name, delta)
        if name == "paper":
            return paper(mechanism, count, delta, accuracy)
        if name == "renyi":
            return renyi(mechanism, count, delta, accuracy)
        try:
            return released_epsilon(mechanism, composed_runs(count), delta, accuracy)
        except NotCoveredError:  # so many runs that it is not worth computing
            return math.inf

    return bound


def _of_noisy_max(mechanism: object, name: str, delta: float) -> float:
    if not isinstance(mechanism, NoisyMax):
        raise NotCoveredError("one trial alone: no law of K was given")
    if name == "full_release" and mechanism.account.alone is None:
        raise NotCoveredError("this noise is not fit for the release of scores, whatever its scale")
    bound = BOUNDS[name](mechanism, delta)
    return math.inf if bound is None else bound
