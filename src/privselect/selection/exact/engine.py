"""**Exact**: the largest delta over all base mechanisms under a pair and all scores, from above and from below."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.mesh import TOLERANCE, Field
from privselect.selection.exact.score_order import Staircase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair
    from privselect.selection.exact.mesh_rows import Table

    Floats = NDArray[np.float64]


_LEAST = math.ulp(0.0)


class ExactUpper:
    r"""Upper bounds on the selection's hockey stick from a dominating pair.

    Claim, for epsilon >= 0:  ``delta(e) <= sup over nondecreasing x(.) of
    integral_0^1 (phi'(1-x-y) - e^e k'(y) phi'(1-g(x)-k(y)))_+ dy``, each piece of y bounded from above as in :mod:`.field`.
    Holds when the pair dominates the base mechanism. Label: **Exact** (upper).
    """

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE) -> None:
        self.field = Field(pair, count, tolerance=tolerance)

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at one epsilon >= 0."""
        return self.field.on_a_fit_mesh(self._delta, epsilon)

    def _delta(self, epsilon: float) -> float:
        field = self.field
        span = field.adapt(epsilon)
        if span.last == 0:
            return 0.0
        tables = [field.above(rows) for rows in field.chunks(epsilon, span)]
        best = [table.best() for table in tables]
        total = sum(float(part.mean() @ table.rows.width) for part, table in zip(best, tables, strict=True))
        if _goes_back(np.concatenate([part.node[part.start > 0.0] for part in best]), slack=1):
            total = min(total, _climbed(tables))
        total += float(field.y[span.first]) + span.rest
        rounding = 1.0 + 4.0 * field.pair.relative_rounding
        # Some outcome counts: a bound too small for a float is not 0.
        return float(min(max(field.weight.scale * total * rounding, _LEAST), 1.0))


class ExactLower:
    """Lower bounds on the selection's hockey stick from a dominated pair: what one staircase order leaks.

    Label: **Exact** (lower). The order is chosen well, but any order gives a valid bound.
    """

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE, mesh_of: ExactUpper | None = None) -> None:
        self.field = Field(pair, count, tolerance=tolerance, mesh_of=mesh_of.field if mesh_of is not None else None)

    def staircase(self, epsilon: float) -> Staircase | None:
        """The order found for this epsilon >= 0; None where no outcome would count."""
        field = self.field
        span = field.adapt(epsilon)
        if span.last == 0:
            return None
        tables = [field.estimate(rows) for rows in field.chunks(epsilon, span)]
        gains, nodes = (np.concatenate(part) for part in zip(*(table.best_start() for table in tables), strict=True))
        if _goes_back(nodes[gains > 0.0], slack=0):
            nodes = _climbing_path(tables, field.nodes.x)
        else:
            # Rows without gain may sit anywhere: keep the last useful place.
            nodes = np.maximum.accumulate(np.where(gains > 0.0, nodes, 0))
        x = field.nodes.x[nodes]
        y = field.y[span.first : span.last + 1].copy()
        fits = x + y[1:] <= 1.0
        size = len(x) if fits.all() else int(np.argmin(fits))
        return Staircase(field.pair, x[:size], y[: size + 1])

    def delta(self, epsilon: float) -> float:
        """A lower bound on delta at one epsilon >= 0."""
        return self.field.on_a_fit_mesh(self._delta, epsilon)

    def leak(self) -> float:
        """A lower bound on delta at every epsilon: outcomes of infinite loss, ranked first."""
        alone = Staircase(self.field.pair, np.zeros(1), np.array([0.0, self.field.pair.p_only]))
        return alone.delta(0.0, self.field.weight)

    def _delta(self, epsilon: float) -> float:
        order = self.staircase(epsilon)
        return 0.0 if order is None else order.delta(epsilon, self.field.weight)


def _goes_back(nodes: NDArray[np.intp], slack: int) -> bool:
    """Whether the best place of some counted row lies before that of an earlier one, by more than ``slack`` nodes."""
    return bool((nodes < np.maximum.accumulate(nodes) - slack).any()) if len(nodes) else False


def _climbed(tables: list[Table]) -> float:
    """The most that a nondecreasing way through the cells collects, row by row: ``V <- cummax(V) + row``."""
    value = np.zeros(tables[0].gain0.shape[1] - 1)
    for table in tables:
        gains = np.maximum(table.anywhere(), 0.0)
        for row in np.maximum(gains[:, :-1], gains[:, 1:]) * table.rows.width[:, None]:
            np.maximum.accumulate(value, out=value)
            value += row
    return float(value.max())


def _climbing_path(tables: list[Table], x: Floats) -> NDArray[np.intp]:
    """The nodes of the best nondecreasing way, by the same recursion and back; only places that leave room for the row."""
    gains = np.concatenate(
        [np.where(x <= 1.0 - t.rows.y1[:, None], np.maximum(t.anywhere(), 0.0), 0.0) * t.rows.width[:, None] for t in tables]
    )
    value, before = np.zeros(len(x)), np.empty_like(gains)
    for i, row in enumerate(gains):
        np.maximum.accumulate(value, out=value)
        before[i] = value
        value = value + row
    place = int(np.argmax(value))
    way = np.empty(len(gains), dtype=np.intp)
    for i in range(len(gains) - 1, -1, -1):
        way[i] = place
        place = int(np.searchsorted(before[i], before[i][place], side="left"))
    return way
