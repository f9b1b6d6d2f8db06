"""Curves of a solved question: epsilon along the number of trials, and along delta."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import finite_or_none
from privselect.selection.compare import composed_epsilon, composition_runs, paper_bound, renyi_bound
from privselect.selection.comparison_curves import comparison_curves, deltas_around, epsilons_at, has_variable_mean, with_other_trials
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.comparison_curves import Bound
    from privselect.selection.two_stages import Stages
    from privselect.web.question import SolvedQuestion

_POINTS, _MIN_POINTS = 13, 5
_CURVE_SECONDS = 4.0  # for each of the two
_NAMES = ("exact", "exact_lower", "paper", "renyi", "composition", "base", "search", "final")
_PROFILE_NAMES = ("exact", "exact_lower", "base", "final")
_TOO_SLOW = "this law of K takes too long for the page; `privselect compare --plot` draws the curve"
_TOO_LARGE = "this law of K takes too much memory for the page; `privselect compare --plot` draws the curve"
_SLOW_STAGES = "this question takes too long for the page; `privselect compare --plot` draws the curve"


def composition(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Bound the epsilon of releasing all runs, for the expected number of runs, at the accuracy of the page."""
    return composed_epsilon(mechanism, composition_runs(count), delta, ACCURACY)


OTHER_BOUNDS: dict[str, Bound] = {
    "paper": partial(paper_bound, accuracy=ACCURACY),
    "renyi": partial(renyi_bound, accuracy=ACCURACY),
    "composition": composition,
}


def curves(solved: SolvedQuestion) -> dict[str, Any]:
    """Compute epsilon by every bound along the number of trials, if it can be varied, and epsilon along delta."""
    if not solved.stages.is_selection:
        return _curves_of_stages(solved.stages, solved.delta)
    points = _affordable_points(solved)
    note = _why_no_mean(solved.stages.count) or (None if points >= _MIN_POINTS else _TOO_SLOW)
    along_mean = None
    if not note:
        try:
            along_mean = _curves_along(solved, "mean", points, OTHER_BOUNDS, mean="x")
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
    solved.whole.epsilon_fast(min(1.01 * solved.delta, 0.999), accuracy=ACCURACY)
    return min(_POINTS, int(_CURVE_SECONDS / (time.perf_counter() - started + 1e-9)))


def _curves_along(solved: SolvedQuestion, axis: str, points: int, bounds: dict[str, Bound], **names: str) -> dict[str, Any]:
    found = comparison_curves(solved.whole, delta=solved.delta, over=axis, points=points, accuracy=ACCURACY, bounds=bounds)
    renamed = {{"exact_upper": "exact", **names}.get(name, name): values for name, values in found.items()}
    if axis == "mean":
        renamed |= {name: _nothing(renamed["x"]) for name in _NAMES if name not in renamed}
    return renamed


def _nothing(along: Sequence[object]) -> list[float | None]:
    return [None] * len(along)


# -- a search and a final training, and visible searches ---------------------------------------------------------------------


def _curves_of_stages(stages: Stages, delta: float) -> dict[str, Any]:
    note = _why_no_mean(stages.count) if stages.visible is None else None
    along = None if note else _along_trials(with_other_trials(stages, _POINTS), stages, delta)
    if along is not None and len(along["x"]) < _MIN_POINTS:
        along, note = None, _SLOW_STAGES
    deltas = deltas_around(delta, _POINTS)
    points = [_epsilons(stages, each) for each in deltas]
    profile = {name: [point.get(name) for point in points] for name in _PROFILE_NAMES}
    return {"mean": along, "mean_note": note, "profile": {"delta": deltas, **profile}}


def _along_trials(others: list[tuple[float, Stages]], stages: Stages, delta: float) -> dict[str, Any]:
    """Return epsilon along the number of trials: as many points around the question's as fit into the time limit."""
    middle = next((x for x, other in others if other == stages), others[len(others) // 2][0])
    started = time.perf_counter()
    found: dict[float, dict[str, float | None]] = {}
    for x, other in sorted(others, key=lambda one: max(one[0], middle) / min(one[0], middle)):
        try:
            found[x] = _epsilons(other, delta) | {"search": finite_or_none(other.search.epsilon_fast(delta, accuracy=ACCURACY).upper)}
        except MemoryError:  # for more trials than those of the question
            break
        if time.perf_counter() - started > _CURVE_SECONDS:
            break
    xs = sorted(found)
    return {"x": xs, **{name: [found[x].get(name) for x in xs] for name in _NAMES}}


def _epsilons(stages: Stages, delta: float) -> dict[str, float | None]:
    """Return the exact bounds and each part alone; other bounds would take too long for the page."""
    found = epsilons_at(stages, delta, {}, ACCURACY)
    return {"exact" if name == "exact_upper" else name: value for name, value in found.items()}
