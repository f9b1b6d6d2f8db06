"""Rows of the mesh of **Exact**: runs of pieces of y, and the maximum of gain minus cost over the nodes, row by row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

_GROUP = 128  # rows whose best nodes are searched together
_SMALL = 10_000  # a table with at most this many entries is searched in full


@dataclass(frozen=True, slots=True)
class MeshRows:
    """A run of y-pieces, each inside one outcome and one block, with the values that the bounds need."""

    y0: Floats
    y1: Floats
    k0: Floats
    k1: Floats
    c: Floats  # e^epsilon k'(y)
    block: Indices  # index into ``blocks``
    blocks: Indices  # the blocks that occur
    t0: Floats  # position of the piece inside its block, from 0 to 1, in y
    t1: Floats
    s0: Floats  # the same, in k
    s1: Floats

    @property
    def width(self) -> Floats:
        """Mass of each piece under P."""
        return self.y1 - self.y0


@dataclass(frozen=True, slots=True)
class RowTable:
    """Gain minus c times cost over some rows, at each node: given at both ends of each block, linear in between.

    With the gains and costs of :meth:`Mesh.upper_table`, the larger value of a cell's two nodes bounds F over the cell, at any point
    of a row. Along a row the bound at a node is linear and its maximum over nodes is convex. So the mean over the row is at most the
    mean of the values at the row's two ends. No value exceeds the gain at the start minus the cost at the end.
    """

    rows: MeshRows
    gain0: Floats
    gain1: Floats
    cost0: Floats
    cost1: Floats

    def row_bounds(self) -> Floats:
        """Return, for each node, a value that bounds every point of the row."""
        every = np.arange(len(self.rows.c))
        return self._values(every, self.rows.t0, self.rows.s1, slice(None))

    def maxima(self) -> RowMaxima:
        """Return the maximum over all nodes, at both ends of each row."""
        groups = self._groups()
        start, node = self._maximum(groups, self.rows.t0, self.rows.s0)
        return RowMaxima(start, self._maximum(groups, self.rows.t1, self.rows.s1)[0], node)

    def start_maxima(self) -> tuple[Floats, Indices]:
        """Return the maximum over all nodes at the start of each row, and its node."""
        return self._maximum(self._groups(), self.rows.t0, self.rows.s0)

    def _maximum(self, groups: list[tuple[Indices, Indices]], t: Floats, s: Floats) -> tuple[Floats, Indices]:
        values, best_nodes = np.empty(len(t)), np.empty(len(t), dtype=np.intp)
        for group, nodes in groups:
            found = self._values(group, t, s, nodes)
            best = found.argmax(axis=1)
            values[group], best_nodes[group] = found[np.arange(len(group)), best], nodes[best]
        return values, best_nodes

    def _groups(self) -> list[tuple[Indices, Indices]]:
        runs = np.arange(len(self.rows.c))
        if self.gain0.shape[1] * len(runs) <= _SMALL:
            return [(runs, np.arange(self.gain0.shape[1]))]
        groups = [runs[first : first + _GROUP] for first in range(0, len(runs), _GROUP)]
        return [(group, self._possible_nodes(group)) for group in groups]

    def _possible_nodes(self, group: Indices) -> Indices:
        """Return the nodes that can be best in a run of rows: gains fall along it, costs fall inside a block, and c grows."""
        rows, first, last = self.rows, group[:1], group[-1:]
        max_gain = self._interpolate(self.gain0, self.gain1, first, rows.t0, slice(None))
        min_gain = self._interpolate(self.gain0, self.gain1, last, rows.t1, slice(None))
        blocks = slice(int(rows.block[group[0]]), int(rows.block[group[-1]]) + 1)
        if blocks.stop - blocks.start == 1:
            max_cost = self._interpolate(self.cost0, self.cost1, first, rows.s0, slice(None))
            min_cost = self._interpolate(self.cost0, self.cost1, last, rows.s1, slice(None))
        else:
            max_cost, min_cost = self.cost0[blocks].max(axis=0)[None], self.cost1[blocks].min(axis=0)[None]
        # A negative cost needs the opposite bound of c.
        upper = max_gain - np.where(min_cost >= 0.0, rows.c[first], rows.c[last]) * min_cost
        lower = min_gain - np.where(max_cost >= 0.0, rows.c[last], rows.c[first]) * max_cost
        return np.flatnonzero(upper[0] >= lower.max())

    def _values(self, group: Indices, t: Floats, s: Floats, nodes: Indices | slice) -> Floats:
        gain = self._interpolate(self.gain0, self.gain1, group, t, nodes)
        cost = self._interpolate(self.cost0, self.cost1, group, s, nodes)
        cost *= self.rows.c[group, None]
        return np.subtract(gain, cost, out=gain)

    def _interpolate(self, at0: Floats, at1: Floats, group: Indices, share: Floats, nodes: Indices | slice) -> Floats:
        blocks = self.rows.block[group]
        low, high = int(blocks[0]), int(blocks[-1]) + 1
        start = at0[low:high, nodes]
        rise = at1[low:high, nodes] - start
        if high - low > 1:
            start, rise = start[blocks - low], rise[blocks - low]
        found = share[group, None] * rise
        found += start
        return found


@dataclass(frozen=True, slots=True)
class RowMaxima:
    """The maximum over all nodes at the start and at the end of each row, and the best node at the start."""

    start: Floats
    end: Floats
    node: Indices

    def mean(self) -> Floats:
        """Return an upper bound on the mean of the positive part over each row."""
        return np.asarray(0.5 * (np.maximum(self.start, 0.0) + np.maximum(self.end, 0.0)))
