r"""The integrand of **Exact**, bounded cell by cell.

In the notation of the theorem, an outcome at depth y of the counted set, with mass x ranked above the counted set, adds

    F(x, y) = w(x + y) - c w(g(x) + k(y)),      w(u) = phi'(1-u)/m,   c = e^epsilon k'(y),

per unit of y (times m). :class:`Mesh` holds a mesh of the (x, y) plane and bounds F on each of its cells from both sides:

- *above*: w is convex, so over a cell w(x+y) lies below its bilinear chord. g is concave, so w(g(x)+k(y)) is convex in
  (x, k) and lies above any of its tangent planes. The difference of a chord and a tangent plane is linear in x for fixed y, so
  its maximum over the cell is at one of the two nodes. Both errors are of second order in the cell.
- *below*: F itself at any point.

The mesh is refined where the two differ (:meth:`Mesh.refine_for`). Refinement only affects tightness: both bounds hold on any mesh.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.bounds.ratio import log_ratio
from privselect.selection.exact.mesh_rows import MeshRows, RowTable
from privselect.selection.exact.weight_bounds import MAX_LOG_C, MeshNodes, TailBounds, Weight, nodes_on_both_scales

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    GainsAndCosts = tuple[Floats, Floats, Floats, Floats]  # gains and costs at the start and the end of blocks, node by node

TOLERANCE = 2e-3  # relative, in delta: about a twentieth of it in epsilon
_TINY = 1e-300
_TABLE_SIZE = 400_000  # entries of a table; a few dozen tables of this size are in memory at a time
_MAX_ROUNDS = 10
_MAX_VERTEX_NODES = 64
_LONG_PIECE = 0.2  # of a block: a longer piece is judged at three points
_MAX_PARTS = 16  # a cell is divided into at most this many parts per round
_LOG_SAMPLES, _LINEAR_SAMPLES = np.linspace(0.0, 1.0, 12), np.linspace(0.1, 0.95, 10)  # depths at which the mesh is judged
_SHARE = 0.1  # of the allowed loss, for each e-fold of y
_MAX_NODES, _MAX_BLOCKS = 2400, 1800  # a mesh of this size is not refined further: looser, never wrong


@dataclass(frozen=True, slots=True)
class PieceRange:
    """Pieces ``first`` to ``last``, and a bound on the integral of F over all later pieces."""

    first: int
    last: int
    tail_bound: float


class Mesh:
    """F over a mesh: nodes in x, blocks in y; the y-pieces are the pair's outcomes, cut at the block edges."""

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE, start_from: Mesh | None = None) -> None:
        self.pair, self.tolerance = pair, tolerance
        self._refined_for: tuple[float, float, float] | None = None  # epsilon, the distance up to which it is valid, negligible share of y
        self._delta_there = math.nan  # delta found at that epsilon; NaN never compares as close
        self.weight = Weight(count, pair.relative_rounding)
        self._tail = TailBounds(pair, self.weight)
        if start_from is not None:
            # The bounds hold on any mesh: take the one that was refined for a similar pair.
            self._initial_edges, self._initial_nodes = start_from.block_edges, start_from.nodes.x
            self._refined_for, self._delta_there = start_from._refined_for, start_from._delta_there  # noqa: SLF001
            self.log_ratio: float = start_from.log_ratio
        else:
            self.log_ratio = log_ratio(pair, count)
            coarse = self.weight.equal_declines(0.45)
            x = pair.low_nodes[0]
            vertices = x if len(x) <= _MAX_VERTEX_NODES else x[:0]  # with few outcomes, the best x are at vertices of g
            self._initial_edges = coarse
            self._initial_nodes = np.concatenate([nodes_on_both_scales(pair, coarse), np.minimum(vertices, 1.0)])
        self._cache: dict[tuple[str, int], GainsAndCosts] = {}
        self._restore_initial_mesh()

    def _restore_initial_mesh(self) -> None:
        self.set_blocks(self._initial_edges)
        self.set_nodes(self._initial_nodes)

    # -- the mesh ----------------------------------------------------------------------------------------------------

    def set_blocks(self, edges: Floats) -> None:
        """Set the edges of the blocks in y; the bounds hold for any edges."""
        self.block_edges = np.unique(np.concatenate([[0.0], edges, [1.0]]))
        self.block_edges_k = self.pair.k(self.block_edges)
        y, k = self.pair.high_nodes
        self.y = np.unique(np.concatenate([np.minimum(y, 1.0), self.block_edges[self.block_edges < y[-1]]]))
        self.k = np.interp(self.y, y, k)
        outcome = np.searchsorted(y, self.y[:-1], side="right") - 1
        with np.errstate(divide="ignore"):
            log_slopes = np.concatenate([[-np.inf], -self.pair.losses[::-1]])
        self.log_slope = log_slopes[np.minimum(outcome, len(log_slopes) - 1)]
        self.block = np.searchsorted(self.block_edges, self.y[:-1], side="right") - 1
        self._cache.clear()

    def set_nodes(self, x: Floats) -> None:
        """Set the nodes in x; the bounds hold for any nodes."""
        self.nodes = MeshNodes(self.pair, self.weight, x)
        self._cache.clear()

    # -- evaluation --------------------------------------------------------------------------------------------------

    @property
    def max_log_c(self) -> float:
        """F(x, y) > 0 needs log c below this value, because g(x) + k(y) <= g(x + y); includes the rounding of the losses."""
        return self.log_ratio + 1e-9

    def _countable_pieces(self, epsilon: float) -> int:
        return int(np.searchsorted(self.log_slope, self.max_log_c - epsilon))

    def countable_mass(self, epsilon: float) -> float:
        """Return the mass y beyond which F is not positive."""
        return float(self.y[self._countable_pieces(epsilon)])

    def relevant_pieces(self, epsilon: float, negligible: float) -> PieceRange:
        """Return the pieces that matter; the pieces before and after them add at most about ``negligible`` each.

        Pieces of smaller y are charged as if their loss were infinite. F is not positive beyond the maximum ratio of the two weights,
        and adds little just before it.
        """
        last = self._countable_pieces(epsilon)
        if last == 0:
            return PieceRange(0, 0, 0.0)
        depth, tail_bound = self._tail.cutoff(epsilon, float(self.y[last]), negligible)
        last = max(min(int(np.searchsorted(self.y, depth, side="left")), last), 1)
        first = min(int(np.searchsorted(self.y, negligible, side="right")) - 1, last - 1)
        return PieceRange(max(first, 0), last, tail_bound)

    def row_batches(self, epsilon: float, pieces: PieceRange) -> Iterator[MeshRows]:
        """Yield the pieces as rows, in batches that keep tables small."""
        size = max(_TABLE_SIZE // len(self.nodes.x), 64)
        for start in range(pieces.first, pieces.last, size):
            yield self._rows(epsilon, np.arange(start, min(start + size, pieces.last)))

    def _rows(self, epsilon: float, pieces: Indices) -> MeshRows:
        of_piece = self.block[pieces]
        new = np.concatenate([[True], of_piece[1:] > of_piece[:-1]])
        blocks, block = of_piece[new], np.cumsum(new) - 1
        y0, y1, k0, k1 = self.y[pieces], self.y[pieces + 1], self.k[pieces], self.k[pieces + 1]
        start, span = self.block_edges[blocks][block], np.diff(self.block_edges)[blocks][block]
        k_start, k_span = self.block_edges_k[blocks][block], np.diff(self.block_edges_k)[blocks][block]
        t0, t1 = (np.clip((y - start) / span, 0.0, 1.0) for y in (y0, y1))
        s0, s1 = (np.clip((k - k_start) / np.maximum(k_span, _TINY), 0.0, 1.0) for k in (k0, k1))
        c = np.exp(np.minimum(epsilon + self.log_slope[pieces], MAX_LOG_C))
        return MeshRows(y0, y1, k0, k1, c, block, blocks, t0, t1, s0, s1)

    def upper_table(self, rows: MeshRows) -> RowTable:
        """Return upper bounds on F over each row, node by node."""
        return RowTable(rows, *self._cached(self._upper_values, rows.blocks))

    def estimate_table(self, rows: MeshRows) -> RowTable:
        """Return F itself at the nodes, interpolated in y: for choosing score orders, never for bounds."""
        return RowTable(rows, *self._cached(self._estimated_values, rows.blocks))

    def _upper_values(self, blocks: Indices) -> GainsAndCosts:
        cost0, cost1 = self.nodes.tangents(self.block_edges_k[blocks], self.block_edges_k[blocks + 1])
        return *_at_block_ends(lambda edges: self.nodes.gains(self.block_edges[edges]), blocks), cost0, cost1

    def _estimated_values(self, blocks: Indices) -> GainsAndCosts:
        gains = _at_block_ends(lambda edges: self.weight.at(self.nodes.x + self.block_edges[edges, None]), blocks)
        return *gains, *_at_block_ends(lambda edges: self.weight.at(self.nodes.g + self.block_edges_k[edges, None]), blocks)

    def _cached(self, compute: Callable[[Indices], GainsAndCosts], blocks: Indices) -> GainsAndCosts:
        """Return the values for a run of blocks, computed once: gains and costs do not depend on epsilon."""
        key = compute.__name__, int(blocks[0])
        if key not in self._cache or len(self._cache[key][0]) < len(blocks):
            self._cache[key] = compute(blocks)
        gain0, gain1, cost0, cost1 = self._cache[key]
        size = len(blocks)
        return gain0[:size], gain1[:size], cost0[:size], cost1[:size]

    def clear_cache(self) -> None:
        """Free the memory of cached values; the mesh is kept."""
        self._cache.clear()

    # -- refinement --------------------------------------------------------------------------------------------------

    def refine_for(self, epsilon: float) -> PieceRange:
        """Refine the mesh for this epsilon and return the pieces that matter for it."""
        if self._refined_for is not None and abs(epsilon - self._refined_for[0]) < self._refined_for[1]:
            return self.relevant_pieces(epsilon, self._refined_for[2])
        if self._refined_for is not None:
            self._restore_initial_mesh()  # a mesh refined for a distant epsilon has its nodes in the wrong places
        negligible = 1e-6 * self.countable_mass(epsilon)
        for _ in range(_MAX_ROUNDS):
            pieces = self.relevant_pieces(epsilon, negligible)
            if pieces.last == 0:
                return pieces
            sample = self._sample_pieces(pieces)
            rows = self._rows(epsilon, sample)
            y = 0.5 * (rows.y0 + rows.y1)
            # A long piece may count in its first part only: judge it by its mean, and its best x by its start.
            long = bool((rows.t1 - rows.t0).max() > _LONG_PIECE)
            at_y, k = (rows.y0, rows.k0) if long else (y, 0.5 * (rows.k0 + rows.k1))
            bounds, at_point = self._bounds_and_maxima(rows, at_y, k)
            true = self._row_means(rows, at_point) if long else at_point
            total = _integral(true, rows, complete=len(sample) == pieces.last - pieces.first)
            # An error at y is weighted by y: distribute the allowed loss evenly over log y.
            allowed = self.tolerance * np.maximum(true, _SHARE * total / y)
            in_x = np.maximum(bounds.max(axis=1), 0.0) - at_point
            excess = (RowTable(rows, *self._upper_values(rows.blocks)).maxima().mean() - true - in_x) / np.maximum(allowed, _TINY)
            widths = np.diff(self.block_edges)[rows.blocks][rows.block]
            refined = self._refine_nodes(bounds, at_point, self.tolerance * np.maximum(at_point, _SHARE * total / y))
            refined = max(refined, self._refine_blocks(y, widths, excess))
            # A second-order estimate suffices after one division, unless it hit the limit of a round. Long pieces are judged again.
            changed = refined > (0 if long else 1)
            if total == 0.0 and negligible > _TINY:
                negligible, changed = max(1e-30 * negligible, _TINY), True  # no piece counts yet: look deeper into the tail
            elif negligible > 0.1 * self.tolerance * total > 0.0:
                negligible, changed = 0.03 * self.tolerance * total, True
            if not changed:
                break
        # A search for epsilon reuses the mesh at nearby epsilons.
        self._refined_for = (epsilon, 0.02 * epsilon, negligible)
        return self.relevant_pieces(epsilon, negligible)

    def is_stale(self, epsilon: float, delta: float) -> bool:
        """Return whether the mesh was refined for another epsilon at which delta was very different."""
        if self._refined_for is None or self._refined_for[0] == epsilon:
            return False
        return not 0.75 * self._delta_there <= delta <= 1.33 * self._delta_there

    def discard_refinement(self) -> None:
        """Restore the initial mesh; the next call of :meth:`refine_for` starts from it."""
        self._refined_for = None
        self._restore_initial_mesh()

    def record_delta(self, epsilon: float, delta: float) -> None:
        """Remember delta if the mesh was refined for exactly this epsilon."""
        if self._refined_for is None or self._refined_for[0] == epsilon:
            self._delta_there = delta

    def _bounds_and_maxima(self, rows: MeshRows, y: Floats, k: Floats) -> tuple[Floats, Floats]:
        """Return, at one point of each row, the bound at each node for a block of height 0, and the maximum of F over the nodes."""
        # Subtract slightly more than the outward rounding: no mesh, however fine, gets below the rounding.
        gain = self.nodes.gains(y) * (1.0 - 1e-10)
        true = (gain - rows.c[:, None] * self.weight.below(self.nodes.g + k[:, None])).max(axis=1)
        return gain - rows.c[:, None] * self.nodes.tangents(k, k)[0], np.maximum(true, 0.0)

    def _row_means(self, rows: MeshRows, at_start: Floats) -> Floats:
        middle = self._bounds_and_maxima(rows, 0.5 * (rows.y0 + rows.y1), 0.5 * (rows.k0 + rows.k1))[1]
        return np.asarray((at_start + 4.0 * middle + self._bounds_and_maxima(rows, rows.y1, rows.k1)[1]) / 6.0)

    def estimate_delta(self, epsilon: float) -> float:
        """Estimate delta from a few pieces on the current mesh: a cheap first guess for a search."""
        pieces = self.relevant_pieces(epsilon, 1e-6 * self.countable_mass(epsilon))
        if pieces.last == 0:
            return 0.0
        sample = self._sample_pieces(pieces)
        rows = self._rows(epsilon, sample)
        true = np.maximum(RowTable(rows, *self._estimated_values(rows.blocks)).start_maxima()[0], 0.0)
        return self.weight.scale * _integral(true, rows, complete=len(sample) == pieces.last - pieces.first)

    def _sample_pieces(self, pieces: PieceRange) -> Indices:
        """Return the pieces by which the mesh is judged: spread over log y, over y near its end, and over the losses."""
        low, high = max(float(self.y[pieces.first + 1]), _TINY), float(self.y[pieces.last])
        depths = np.concatenate([high * (low / high) ** _LOG_SAMPLES, high * _LINEAR_SAMPLES])
        by_mass = np.searchsorted(self.y, depths, side="left") - 1
        by_loss = np.linspace(pieces.first, pieces.last - 1, 6)
        return np.unique(np.clip(np.concatenate([by_mass, by_loss]), pieces.first, pieces.last - 1).astype(np.intp))

    def _refine_nodes(self, bounds: Floats, true: Floats, allowed: Floats) -> int:
        """Divide cells where the bound is too loose; return 0 if there were none, 2 if a cell hit the limit of a round, else 1."""
        best = bounds.argmax(axis=1)
        x = self.nodes.x
        cells = np.diff(x)
        parts = _part_counts((bounds[np.arange(len(best)), best] - true) / np.maximum(allowed, _TINY))
        # The best x moves with y: between the best x of two sampled rows the mesh must be as fine as at them.
        best_x, first = np.unique(x[best], return_index=True)
        width = np.maximum(cells[np.minimum(best, len(cells) - 1)], cells[np.maximum(best - 1, 0)])
        split = _splits(x, best_x, (width / parts)[first])
        loose = np.any(bounds > (true + allowed)[:, None], axis=0)
        split = _limit_cells(np.maximum(split, np.where(loose[1:] | loose[:-1], 4, 1)), _MAX_NODES)
        if (split == 1).all():
            return 0
        self.set_nodes(_subdivide(x, split))
        return 1 + int((parts == _MAX_PARTS).any())

    def _refine_blocks(self, y: Floats, width: Floats, excess: Floats) -> int:
        parts = _part_counts(excess)
        if not (parts > 1).any():
            return 0
        split = _limit_cells(_splits(self.block_edges, y, width / parts), _MAX_BLOCKS)
        if (split == 1).all():
            return 0
        self.set_blocks(_subdivide(self.block_edges, split))
        return 1 + int((parts == _MAX_PARTS).any())


def _at_block_ends(compute: Callable[[Indices], Floats], blocks: Indices) -> tuple[Floats, Floats]:
    """Return ``compute`` at the first and the last edge of each block, evaluated once where two blocks meet."""
    first, last = int(blocks[0]), int(blocks[-1])
    if last - first + 1 == len(blocks):
        values = compute(np.arange(first, last + 2))
        return values[:-1], values[1:]
    edges = np.unique(np.concatenate([blocks, blocks + 1]))
    values, start = compute(edges), np.searchsorted(edges, blocks)
    return values[start], values[start + 1]


def _integral(values: Floats, rows: MeshRows, *, complete: bool) -> float:
    """Return the integral over y of a function with these values on the rows, which are all rows or a sample."""
    y = 0.5 * (rows.y0 + rows.y1)
    return float(values @ rows.width) if complete else float(np.trapezoid(values * y, np.log(y)))


def _part_counts(excess: Floats) -> Floats:
    # The excess is of second order in the cell: to bring it to 1, the cell must shrink by its square root.
    return np.ceil(np.sqrt(np.clip(excess, 1.0, _MAX_PARTS**2)))


def _splits(edges: Floats, points: Floats, max_width: Floats) -> Indices:
    """Return into how many parts to divide each cell: around and between the points, no part may exceed ``max_width`` there."""
    width = np.diff(edges)
    near = (edges[1:] >= points[0]) & (edges[:-1] <= points[-1])
    limit = np.interp(edges[:-1] + 0.5 * width, points, max_width)
    with np.errstate(over="ignore", divide="ignore"):
        return np.where(near, np.clip(np.ceil(width / limit - 0.01), 1, _MAX_PARTS), 1).astype(np.intp)


def _limit_cells(split: Indices, max_cells: int) -> Indices:
    """Reduce the splits to at most ``max_cells`` cells in all; leave every cell undivided if halves are already too many."""
    for limit in (_MAX_PARTS, _MAX_PARTS // 2, 2):
        fewer = np.minimum(split, limit)
        if fewer.sum() <= max_cells:
            return fewer
    return np.ones_like(split)


def _subdivide(edges: Floats, split: Indices) -> Floats:
    owner = np.repeat(np.arange(len(split)), split)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(split) - split, split)
    return np.append(edges[:-1][owner] + np.diff(edges)[owner] * inside / split[owner], edges[-1])
