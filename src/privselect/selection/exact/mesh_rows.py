"""Gains and costs at the nodes of a mesh, over a run of pieces of y: the greatest difference, piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

_GROUP = 128  # rows whose best nodes are found together
_SMALL = 10_000  # numbers in a table that is searched whole


@dataclass(frozen=True, slots=True)
class Rows:
    """A stretch of y-pieces, each inside one outcome and one block, with what the bounds need of them."""

    y0: Floats
    y1: Floats
    k0: Floats
    k1: Floats
    c: Floats  # e^epsilon k'(y)
    block: Indices
    blocks: Indices  # the blocks that occur
    t0: Floats  # where the piece lies inside its block, from 0 to 1, by y
    t1: Floats
    s0: Floats  # and by k
    s1: Floats

    @property
    def width(self) -> Floats:
        """Mass of each piece under P."""
        return self.y1 - self.y0


@dataclass(frozen=True, slots=True)
class Table:
    """Gain minus c times cost over some rows: at each node, given at the two ends of each block, linear in between.

    With the gains and costs of :meth:`Field.above`, the greater of a cell's two nodes bounds F over the cell, at any point of a
    row. Along a row the bound at a node is linear and the greatest over nodes convex, so its mean over the row is at most the mean
    of its values at the row's two ends; and it is nowhere above its value with the gain of the start and the cost of the end.
    """

    rows: Rows
    gain0: Floats
    gain1: Floats
    cost0: Floats
    cost1: Floats

    def anywhere(self) -> Floats:
        """At each node a value that holds at every point of the row."""
        every = np.arange(len(self.rows.c))
        return self._at(every, self.rows.t0, self.rows.s1, slice(None))

    def best(self) -> Best:
        """The greatest over all nodes, at both ends of each row."""
        groups = self._groups()
        start, node = self._greatest(groups, self.rows.t0, self.rows.s0)
        return Best(start, self._greatest(groups, self.rows.t1, self.rows.s1)[0], node)

    def best_start(self) -> tuple[Floats, Indices]:
        """The greatest over all nodes at the start of each row, and its node."""
        return self._greatest(self._groups(), self.rows.t0, self.rows.s0)

    def _greatest(self, groups: list[tuple[Indices, Indices]], t: Floats, s: Floats) -> tuple[Floats, Indices]:
        values, places = np.empty(len(t)), np.empty(len(t), dtype=np.intp)
        for group, nodes in groups:
            found = self._at(group, t, s, nodes)
            best = found.argmax(axis=1)
            values[group], places[group] = found[np.arange(len(group)), best], nodes[best]
        return values, places

    def _groups(self) -> list[tuple[Indices, Indices]]:
        runs = np.arange(len(self.rows.c))
        if self.gain0.shape[1] * len(runs) <= _SMALL:
            return [(runs, np.arange(self.gain0.shape[1]))]
        groups = [runs[first : first + _GROUP] for first in range(0, len(runs), _GROUP)]
        return [(group, self._contenders(group)) for group in groups]

    def _contenders(self, group: Indices) -> Indices:
        """The nodes that can be best somewhere in a run of rows: gains fall along it, costs fall inside a block, and c grows."""
        rows, first, last = self.rows, group[:1], group[-1:]
        most = self._between(self.gain0, self.gain1, first, rows.t0, slice(None))
        least = self._between(self.gain0, self.gain1, last, rows.t1, slice(None))
        blocks = slice(int(rows.block[group[0]]), int(rows.block[group[-1]]) + 1)
        if blocks.stop - blocks.start == 1:
            dear = self._between(self.cost0, self.cost1, first, rows.s0, slice(None))
            cheap = self._between(self.cost0, self.cost1, last, rows.s1, slice(None))
        else:
            dear, cheap = self.cost0[blocks].max(axis=0)[None], self.cost1[blocks].min(axis=0)[None]
        # A cost below zero is no cost: with it, c must be taken at its other end.
        upper = most - np.where(cheap >= 0.0, rows.c[first], rows.c[last]) * cheap
        lower = least - np.where(dear >= 0.0, rows.c[last], rows.c[first]) * dear
        return np.flatnonzero(upper[0] >= lower.max())

    def _at(self, group: Indices, t: Floats, s: Floats, nodes: Indices | slice) -> Floats:
        gain = self._between(self.gain0, self.gain1, group, t, nodes)
        cost = self._between(self.cost0, self.cost1, group, s, nodes)
        cost *= self.rows.c[group, None]
        return np.subtract(gain, cost, out=gain)

    def _between(self, at0: Floats, at1: Floats, group: Indices, share: Floats, nodes: Indices | slice) -> Floats:
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
class Best:
    """The greatest value over all nodes at the start and at the end of each row, and the best node at the start."""

    start: Floats
    end: Floats
    node: Indices

    def mean(self) -> Floats:
        """Of the positive part, over each row, at most."""
        return np.asarray(0.5 * (np.maximum(self.start, 0.0) + np.maximum(self.end, 0.0)))
