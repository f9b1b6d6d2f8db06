"""**Exact**: the largest delta over all base mechanisms under a pair and all scores, from above and from below."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.mesh import TOLERANCE, Mesh
from privselect.selection.exact.score_order import ScoreOrder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair
    from privselect.selection.exact.mesh_rows import RowTable

    Floats = NDArray[np.float64]

_SMALLEST_FLOAT = math.ulp(0.0)


class _ExactBound(ABC):
    """A bound that is computed on a mesh, which is refined for the epsilon in question."""

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE, start_from: Mesh | None = None) -> None:
        self.mesh = Mesh(pair, count, tolerance=tolerance, start_from=start_from)

    def delta(self, epsilon: float) -> float:
        """Return the bound on delta at one epsilon >= 0."""
        value = self._delta_on_mesh(epsilon)
        if self.mesh.is_stale(epsilon, value):
            self.mesh.discard_refinement()
            value = self._delta_on_mesh(epsilon)
        self.mesh.record_delta(epsilon, value)
        return value

    @abstractmethod
    def _delta_on_mesh(self, epsilon: float) -> float: ...


class ExactUpper(_ExactBound):
    r"""Upper bounds on the selection's hockey stick from a dominating pair.

    Claim, for epsilon >= 0:  ``delta(e) <= sup over nondecreasing x(.) of
    integral_0^1 (phi'(1-x-y) - e^e k'(y) phi'(1-g(x)-k(y)))_+ dy``, each piece of y bounded from above as in :mod:`.mesh`.
    Holds when the pair dominates the base mechanism. Label: **Exact** (upper).
    """

    def _delta_on_mesh(self, epsilon: float) -> float:
        mesh = self.mesh
        pieces = mesh.refine_for(epsilon)
        if pieces.last == 0:
            return 0.0
        tables = [mesh.upper_table(rows) for rows in mesh.row_batches(epsilon, pieces)]
        maxima = [table.maxima() for table in tables]
        total = sum(float(part.mean() @ table.rows.width) for part, table in zip(maxima, tables, strict=True))
        if _is_nonmonotone(np.concatenate([part.node[part.start > 0.0] for part in maxima]), slack=1):
            total = min(total, _best_monotone_total(tables))
        total += float(mesh.y[pieces.first]) + pieces.tail_bound
        rounding = 1.0 + 4.0 * mesh.pair.relative_rounding
        # At least one outcome counts: a bound that underflows must not become 0.
        return float(min(max(mesh.weight.scale * total * rounding, _SMALLEST_FLOAT), 1.0))


class ExactLower(_ExactBound):
    """Lower bounds on the selection's hockey stick from a dominated pair: the delta of one score order.

    Label: **Exact** (lower). The order is chosen to be near the worst, but any order gives a valid bound.
    """

    def score_order(self, epsilon: float) -> ScoreOrder | None:
        """Return the order found for this epsilon >= 0, or None if no outcome counts."""
        mesh = self.mesh
        pieces = mesh.refine_for(epsilon)
        if pieces.last == 0:
            return None
        tables = [mesh.estimate_table(rows) for rows in mesh.row_batches(epsilon, pieces)]
        gains, nodes = (np.concatenate(part) for part in zip(*(table.start_maxima() for table in tables), strict=True))
        if _is_nonmonotone(nodes[gains > 0.0], slack=0):
            nodes = _best_monotone_nodes(tables, mesh.nodes.x)
        else:
            # The node of a row without gain is arbitrary: keep the last useful one.
            nodes = np.maximum.accumulate(np.where(gains > 0.0, nodes, 0))
        x = mesh.nodes.x[nodes]
        return ScoreOrder.fitting(mesh.pair, x, mesh.y[pieces.first : pieces.last + 1])

    def limit_delta(self) -> float:
        """Return a lower bound on delta at every epsilon: outcomes of infinite loss, ranked first."""
        infinite_loss_first = ScoreOrder(self.mesh.pair, np.zeros(1), np.array([0.0, self.mesh.pair.p_only]))
        return infinite_loss_first.delta(0.0, self.mesh.weight)

    def _delta_on_mesh(self, epsilon: float) -> float:
        order = self.score_order(epsilon)
        return 0.0 if order is None else order.delta(epsilon, self.mesh.weight)


def _is_nonmonotone(nodes: NDArray[np.intp], slack: int) -> bool:
    """Return whether some node lies before an earlier one by more than ``slack``."""
    return bool((nodes < np.maximum.accumulate(nodes) - slack).any()) if len(nodes) else False


def _best_monotone_total(tables: list[RowTable]) -> float:
    """Return the maximum total of a nondecreasing path through the cells, row by row: ``V <- cummax(V) + row``."""
    value = np.zeros(tables[0].gain0.shape[1] - 1)
    for table in tables:
        gains = np.maximum(table.row_bounds(), 0.0)
        for row in np.maximum(gains[:, :-1], gains[:, 1:]) * table.rows.width[:, None]:
            np.maximum.accumulate(value, out=value)
            value += row
    return float(value.max())


def _best_monotone_nodes(tables: list[RowTable], x: Floats) -> NDArray[np.intp]:
    """Return the nodes of the best nondecreasing path, by the same recursion and backtracking; x must leave room for the row."""
    gains = np.concatenate(
        [np.where(x <= 1.0 - t.rows.y1[:, None], np.maximum(t.row_bounds(), 0.0), 0.0) * t.rows.width[:, None] for t in tables]
    )
    value, before = np.zeros(len(x)), np.empty_like(gains)
    for i, row in enumerate(gains):
        np.maximum.accumulate(value, out=value)
        before[i] = value
        value = value + row
    node = int(np.argmax(value))
    path = np.empty(len(gains), dtype=np.intp)
    for i in range(len(gains) - 1, -1, -1):
        path[i] = node
        node = int(np.searchsorted(before[i], before[i][node], side="left"))
    return path
