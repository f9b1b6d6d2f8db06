"""Curves of a solved question: epsilon along the number of trials, and along delta."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import finite_or_none
from privselect.selection.compare import composed_epsilon, composition_runs, paper_bound, renyi_bound
from privselect.selection.plots import comparison_curves, counts_along_mean, deltas_around, has_variable_mean, integers_around
from privselect.selection.two_stages import Stages
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.plots import Bound
    from privselect.web.question import SolvedQuestion

_POINTS, _MIN_POINTS = 13, 5
_CURVE_SECONDS = 4.0  # for each of the two
_NAMES = ("exact", "exact_lower", "paper", "renyi", "composition", "base", "search", "final")
_TOO_SLOW = "this law of K takes too long for the page; `privselect compare --plot` draws the curve"
_TOO_LARGE = "this law of K takes too much memory for the page; `privselect compare --plot` draws the curve"
_SLOW_STAGES = "this question takes too long for the page to draw the curve"


def composition(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Bound the epsilon of releasing all runs, for the expected number of runs, at the accuracy of the page."""
    return composed_epsilon(mechanism, composition_runs(count), delta, ACCURACY)


OTHER_BOUNDS: dict[str, Bound] = {
    "paper": partial(paper_bound, accuracy=ACCURACY),
    "renyi": partial(renyi_bound, accuracy=ACCURACY),
    "composition": composition,
}


def is_one_shot(stages: Stages) -> bool:
    """Return whether a trial is released and nothing else."""
    return stages.final is None and stages.visible is None and stages.subsample is None


def trial_alone(stages: Stages) -> Mechanism:
    """Return one trial alone, on the sample if there is one."""
    return Stages(stages.mechanism, subsample=stages.subsample).whole


def curves(solved: SolvedQuestion) -> dict[str, Any]:
    """Compute epsilon by every bound along the number of trials, if it can be varied, and epsilon along delta."""
    if not is_one_shot(solved.stages):
        return _curves_of_stages(solved)
    points = _affordable_points(solved)
    note = _why_no_mean(solved.stages.count) or (None if points >= _MIN_POINTS else _TOO_SLOW)
    along_mean = None
    if not note:
        try:
            along_mean = _curves_along(solved, "mean", points, OTHER_BOUNDS, mean="x")
        except MemoryError:  # for larger means than that of the question
            note = _TOO_LARGE
    profile = _curves_along(solved, "delta", max(points, _MIN_POINTS), {})
    return {"mean": along_mean, "mean_note": note, "profile": {**profile, "final": _nothing(profile["delta"])}}


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


def _curves_of_stages(solved: SolvedQuestion) -> dict[str, Any]:
    stages = solved.stages
    note = _why_no_mean(stages.count) if stages.visible is None else None
    along = None if note else _along_trials(_with_other_trials(stages), stages, solved.delta)
    if along is not None and len(along["x"]) < _MIN_POINTS:
        along, note = None, _SLOW_STAGES
    deltas = deltas_around(solved.delta, _POINTS)
    points = [_epsilons(stages, delta) for delta in deltas]
    profile = {name: [point.get(name) for point in points] for name in ("exact", "exact_lower", "base", "final")}
    return {"mean": along, "mean_note": note, "profile": {"delta": deltas, **profile}}


def _with_other_trials(stages: Stages) -> list[tuple[float, Stages]]:
    """Return the same stages with other numbers of trials, and these numbers."""
    if stages.visible is not None:
        return [(float(trials), replace(stages, visible=trials)) for trials in integers_around(stages.visible, _POINTS)]
    if stages.count is None:
        return []
    return [(count.expected(), replace(stages, count=count)) for count in counts_along_mean(stages.count, _POINTS)]


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
    whole = stages.whole.epsilon_fast(delta, accuracy=ACCURACY)
    alone = trial_alone(stages).epsilon_fast(delta, accuracy=ACCURACY).upper
    final = None if stages.final is None else stages.final.epsilon_fast(delta, accuracy=ACCURACY).upper
    found = {"exact": whole.upper, "exact_lower": whole.lower, "base": alone, "final": final}
    return {name: finite_or_none(value) for name, value in found.items()}
