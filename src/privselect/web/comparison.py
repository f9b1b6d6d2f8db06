"""The other bounds at the answer: what each would have charged, and what it would have forced instead."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privselect._util.plot_style import BOUND_STYLES
from privselect.errors import NotCoveredError
from privselect.planning.baselines import instead
from privselect.planning.search.budget_search import Search
from privselect.web.chart_data import OTHERS
from privselect.web.limits import ACCURACY

if TYPE_CHECKING:
    from privselect.web.parse_question import Asked, Settled

_ALONE = "one trial alone: no law of K was given"


def rows(asked: Asked, settled: Settled, value: float) -> dict[str, Any]:
    """One row for each bound, the exact one first."""
    exact = float(settled.whole.epsilon_about(settled.delta, accuracy=ACCURACY).upper)
    alone = float(settled.mechanism.epsilon_about(settled.delta, accuracy=ACCURACY).upper)
    forced, notes = _forced(asked, settled, value)
    found = [_row("exact", exact, exact, value if asked.open is not None else None, None)]
    for name, bound in OTHERS.items():
        note = notes.get(name)
        try:
            epsilon = math.nan if settled.count is None else bound(settled.mechanism, settled.count, settled.delta)
            note = _ALONE if settled.count is None else note
        except NotCoveredError as reason:
            epsilon, note = math.nan, str(reason)
        found.append(_row(name, epsilon, exact, forced.get(name), note))
    return {"unknown": asked.unknown, "rows": [*found, _row("base", alone, exact, None, None)]}


def _forced(asked: Asked, settled: Settled, value: float) -> tuple[dict[str, float | None], dict[str, str]]:
    """What each bound would have forced in place of the solved number."""
    if asked.open is None or asked.open.hole.leaks is None or settled.count is None:
        return {}, {}
    search = Search(lambda _: math.nan, asked.open.axis(), settled.epsilon)  # which says where to look, and is not run
    return instead(asked.open, search, value, settled.delta)


def _row(name: str, epsilon: float, exact: float, forced: float | None, note: str | None) -> dict[str, Any]:
    finite = math.isfinite(epsilon)
    ratio = epsilon / exact if finite and 0.0 < exact < math.inf else None
    if not finite and note is None and not math.isnan(epsilon):
        note = "infinite"
    return {"name": name, "label": BOUND_STYLES[name][0], "epsilon": epsilon if finite else None, "ratio": ratio, "instead": forced, "note": note}
