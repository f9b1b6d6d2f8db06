r"""The integrand of **Exact**, bounded cell by cell.

In the notation of the theorem, an outcome at depth y of the counted set, with mass x ranked above the counted set, adds

    F(x, y) = w(x + y) - c w(g(x) + k(y)),      w(u) = phi'(1-u)/m,   c = e^epsilon k'(y),

per unit of y (times m). :class:`Field` holds a mesh of the (x, y) plane and bounds F on each of its cells from both sides:

- *above*: w is convex, so over a cell w(x+y) lies below its bilinear chord; g is concave, so w(g(x)+k(y)) is convex in
  (x, k) and lies above any of its tangent planes. The difference of a chord and a tangent plane is linear in x for fixed y, so
  its greatest value over the cell is at one of the two ends. Both errors are of second order in the cell.
- *below*: F itself at any point.

The mesh is refined where the two differ (:meth:`Field.adapt`). That is an optimisation only: on any mesh both bounds hold.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.weight import Weight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

_TINY = 1e-300
_SAMPLES = 24  # rows looked at when judging the mesh
_ROUNDS = 10
_MOST_NODES, _MOST_BLOCKS = 4000, 4000  # past these the mesh stays as it is: looser, never wrong


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
    t: Floats  # place of the piece's middle inside its block, by y
    s: Floats  # and by k: never more than t, as k is convex

    @property
    def width(self) -> Floats:
        return self.y1 - self.y0


class Field:
    """F over a mesh: nodes in x, blocks in y; the y-pieces are the pair's outcomes cut at the block ends."""

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = 3e-4) -> None:
        self.pair, self.tolerance = pair, tolerance
        self.weight = Weight(count, pair.relative_rounding)
        self._set_blocks(self.weight.decline(0.05))
        coarse = self.weight.decline(0.25)
        x, g = pair.low_nodes
        self._set_nodes(np.concatenate([coarse, np.interp(coarse, g, x)]))

    # -- the mesh ----------------------------------------------------------------------------------------------------

    def _set_blocks(self, ends: Floats) -> None:
        self.ends = np.unique(np.concatenate([[0.0], ends, [1.0]]))
        self.ends_k = self.pair.k(self.ends)
        y, k = self.pair.high_nodes
        self.y = np.unique(np.concatenate([np.minimum(y, 1.0), self.ends[self.ends < y[-1]]]))
        self.k = np.interp(self.y, y, k)
        outcome = np.searchsorted(y, self.y[:-1], side="right") - 1
        with np.errstate(divide="ignore"):
            log_slopes = np.concatenate([[-np.inf], -self.pair.losses[::-1]])
        self.log_slope = log_slopes[np.minimum(outcome, len(log_slopes) - 1)]
        self.block = np.searchsorted(self.ends, self.y[:-1], side="right") - 1

    def _set_nodes(self, x: Floats) -> None:
        self.x = np.unique(x)
        self.g = self.pair.g(self.x)
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        self.g_middle = self.pair.g(middle)
        vertex_x, vertex_g = self.pair.low_nodes
        piece = np.clip(np.searchsorted(vertex_x, middle, side="right") - 1, 0, len(vertex_x) - 2)
        rise = (vertex_g[piece + 1] - vertex_g[piece]) / np.maximum(vertex_x[piece + 1] - vertex_x[piece], _TINY)
        self.half_rise = 0.5 * rise * np.diff(self.x)  # g is below its tangent: this far above g_middle at the cell's right end
        zero = np.zeros(1)
        lowest = self._tangents(zero, zero)[0][0]
        # F(x, y) > 0 needs c below the greatest ratio of the two weights, and g(x) + k(y) <= g(x + y): y = 0 is the worst.
        self.log_ratio = float(np.max(np.log(self.weight.above(self.x)) - np.log(np.maximum(lowest, _TINY)))) + 1e-9

    def _tangents(self, k0: Floats, k1: Floats) -> tuple[Floats, Floats]:
        """Lower bounds on w(g(x) + k) at the nodes, for k at either end of [k0, k1], that are concave in between."""
        reach = 0.5 * (k1 - k0)[:, None]
        u = np.minimum(self.g_middle + 0.5 * (k0 + k1)[:, None], 1.0)
        value = self.weight.below(u)
        flat, steep = self.weight.slopes(u, value)

        def at_nodes(shift: Floats) -> Floats:
            left, right = -self.half_rise + shift, self.half_rise + shift
            left_value = value - np.where(left < 0.0, flat, steep) * left
            right_value = value - np.where(right < 0.0, flat, steep) * right
            nodes = np.empty((len(k0), len(self.x)))
            nodes[:, 0], nodes[:, -1] = left_value[:, 0], right_value[:, -1]
            np.minimum(left_value[:, 1:], right_value[:, :-1], out=nodes[:, 1:-1])
            return np.maximum(nodes, 0.0)

        return at_nodes(-reach), at_nodes(reach)

    # -- reading it --------------------------------------------------------------------------------------------------

    def relevant(self, epsilon: float) -> int:
        """How many pieces, from the highest loss down, can have F > 0."""
        return int(np.searchsorted(self.log_slope, self.log_ratio - epsilon))

    def rows(self, epsilon: float, first: int, last: int) -> Rows:
        """The pieces ``first`` to ``last`` with all that the bounds need."""
        return self._rows_at(epsilon, np.arange(first, last))

    def _rows_at(self, epsilon: float, pieces: Indices) -> Rows:
        blocks, block = np.unique(self.block[pieces], return_inverse=True)
        y0, y1, k0, k1 = self.y[pieces], self.y[pieces + 1], self.k[pieces], self.k[pieces + 1]
        start, span = self.ends[blocks][block], np.diff(self.ends)[blocks][block]
        k_start, k_span = self.ends_k[blocks][block], np.diff(self.ends_k)[blocks][block]
        t = np.clip((0.5 * (y0 + y1) - start) / span, 0.0, 1.0)
        s = np.where(k_span > 0.0, (0.5 * (k0 + k1) - k_start) / np.maximum(k_span, _TINY), t)
        c = np.exp(epsilon + self.log_slope[pieces])
        return Rows(y0, y1, k0, k1, c, block, blocks, t, np.clip(s, 0.0, t))

    def above(self, rows: Rows) -> Floats:
        """For each row and node, an upper bound whose greatest over a cell's two nodes bounds the mean of F over the row there."""
        start, stop = self.ends[rows.blocks], self.ends[rows.blocks + 1]
        gain0 = self.weight.above(self.x + start[:, None])
        gain1 = self.weight.above(self.x + stop[:, None])
        cost0, cost1 = self._tangents(self.ends_k[rows.blocks], self.ends_k[rows.blocks + 1])
        return _interpolate(gain0, gain1, rows.block, rows.t) - rows.c[:, None] * _interpolate(cost0, cost1, rows.block, rows.s)

    def estimate(self, rows: Rows) -> Floats:
        """F itself at the nodes, by interpolation in y: for choosing orders, never for bounds."""
        start, stop = self.ends[rows.blocks], self.ends[rows.blocks + 1]
        gain0, gain1 = self.weight.at(self.x + start[:, None]), self.weight.at(self.x + stop[:, None])
        cost0 = self.weight.at(self.g + self.ends_k[rows.blocks][:, None])
        cost1 = self.weight.at(self.g + self.ends_k[rows.blocks + 1][:, None])
        return _interpolate(gain0, gain1, rows.block, rows.t) - rows.c[:, None] * _interpolate(cost0, cost1, rows.block, rows.s)

    # -- refining it -------------------------------------------------------------------------------------------------

    def adapt(self, epsilon: float) -> tuple[int, int]:
        """Refine for this epsilon; the range of pieces that matter. Those before it hold a negligible mass in all."""
        first = last = self.relevant(epsilon)
        negligible = 1e-7
        for _ in range(_ROUNDS):
            last = self.relevant(epsilon)
            if last == 0:
                return 0, 0
            first = min(int(np.searchsorted(self.y, negligible * self.y[last])), last - 1)
            sample = np.unique(np.linspace(first, last - 1, _SAMPLES).astype(np.intp))
            rows = self._rows_at(epsilon, sample)
            y, k, c = 0.5 * (rows.y0 + rows.y1), 0.5 * (rows.k0 + rows.k1), rows.c[:, None]
            gain = self.weight.above(self.x + y[:, None])
            true = np.maximum((gain - c * self.weight.below(self.g + k[:, None])).max(axis=1), 0.0)
            in_x = gain - c * self._tangents(k, k)[0]
            in_xy = np.maximum(self.above(rows).max(axis=1), 0.0)
            mean = float(np.sum(true * np.gradient(y)) / self.y[last]) if len(y) > 1 else float(true[0])
            allowed = self.tolerance * np.maximum(true, 0.5 * mean)
            changed = self._refine_nodes(in_x > (true + allowed)[:, None])
            excess = in_xy - np.maximum(in_x.max(axis=1), 0.0)
            changed |= self._refine_blocks(y, np.diff(self.ends)[rows.blocks][rows.block], excess / np.maximum(allowed, _TINY))
            if negligible > 3e-5 * mean > 0.0:
                negligible, changed = 1e-5 * mean, True
            if not changed:
                return first, last
        last = self.relevant(epsilon)
        return min(int(np.searchsorted(self.y, negligible * self.y[last])), max(last - 1, 0)), last

    def _refine_nodes(self, loose: NDArray[np.bool_]) -> bool:
        at_node = loose.any(axis=0)
        cells = np.flatnonzero(at_node[1:] | at_node[:-1])
        if len(cells) == 0 or len(self.x) > _MOST_NODES:
            return False
        left, width = self.x[cells], np.diff(self.x)[cells]
        self._set_nodes(np.concatenate([self.x, *(left + share * width for share in (0.25, 0.5, 0.75))]))
        return True

    def _refine_blocks(self, y: Floats, width: Floats, excess: Floats) -> bool:
        # The excess is of second order: to bring it to 1, a block must shrink by its square root.
        parts = np.ceil(np.sqrt(np.clip(excess, 0.0, 64.0)))
        if not (parts > 1).any() or len(self.ends) > _MOST_BLOCKS:
            return False
        wanted = width / np.maximum(parts, 1.0)
        starts, spans = self.ends[:-1], np.diff(self.ends)
        near = (self.ends[1:] > y[0]) & (starts < y[-1])
        limit = np.interp(starts + 0.5 * spans, y, wanted)
        pieces = np.where(near, np.clip(np.ceil(spans / limit - 0.01), 1, 8), 1).astype(np.intp)
        if pieces.sum() > 2 * _MOST_BLOCKS:
            return False
        owner = np.repeat(np.arange(len(spans)), pieces)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        self._set_blocks(starts[owner] + spans[owner] * inside / pieces[owner])
        return True


def _interpolate(at0: Floats, at1: Floats, block: Indices, share: Floats) -> Floats:
    if len(at0) == 1:
        return at0 + share[:, None] * (at1 - at0)
    lower = at0[block]
    return lower + share[:, None] * (at1[block] - lower)
