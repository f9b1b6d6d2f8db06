"""The curves of a settled question: epsilon along the mean of K, and along delta."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

from privselect.selection.compare import composed_runs, paper, released_epsilon, renyi
from privselect.selection.plots import comparison_curves, has_mean
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.plots import Bound
    from privselect.web.parse_question import Settled

_POINTS, _FEWEST = 13, 5
_PATIENCE = 4.0  # seconds for each of the two


def composition(mechanism: Mechanism, count: Count, delta: float) -> float:
    """Plain composition of the expected number of runs, with the care of the page."""
    return released_epsilon(mechanism, composed_runs(count), delta, ACCURACY)


OTHERS: dict[str, Bound] = {
    "paper": partial(paper, accuracy=ACCURACY),
    "renyi": partial(renyi, accuracy=ACCURACY),
    "composition": composition,
}


def curves(settled: Settled) -> dict[str, Any]:
    """Epsilon by every bound along E K, where the law has a mean to vary, and the exact one along delta."""
    points = _affordable(settled)
    note = _without_mean(settled.count) or (None if points >= _FEWEST else _TOO_SLOW)
    along_mean = None
    if not note:
        try:
            along_mean = _named(_along(settled, "mean", points, OTHERS), mean="x")
        except MemoryError:  # of laws with other means than the one that was asked about
            note = _TOO_LARGE
    return {"mean": along_mean, "mean_note": note, "profile": _named(_along(settled, "delta", max(points, _FEWEST), {}))}


_TOO_SLOW = "this law takes too long to be followed here; `privselect compare --plot` draws it"
_TOO_LARGE = "this law takes too much memory to be followed here; `privselect compare --plot` draws it"


def _without_mean(count: Count | None) -> str | None:
    if count is None:
        return "there is one trial, so no number of trials to vary"
    return None if has_mean(count) else f"a law given as {count.text_name} has no mean to vary"


def _affordable(settled: Settled) -> int:
    """As many points as there is patience for, by the time that one takes."""
    begun = time.perf_counter()
    settled.whole.epsilon_about(min(1.01 * settled.delta, 0.999), accuracy=ACCURACY)
    return min(_POINTS, int(_PATIENCE / (time.perf_counter() - begun + 1e-9)))


def _along(settled: Settled, over: str, points: int, bounds: dict[str, Bound]) -> dict[str, Any]:
    return comparison_curves(settled.whole, delta=settled.delta, over=over, points=points, accuracy=ACCURACY, bounds=bounds)


def _named(found: dict[str, Any], **names: str) -> dict[str, Any]:
    return {{"exact_upper": "exact", **names}.get(name, name): values for name, values in found.items()}
