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

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.bounds.ratio import log_ratio
from privselect.selection.exact.mesh_nodes import Nodes, both_scales
from privselect.selection.exact.mesh_rows import Rows, Table
from privselect.selection.exact.pgf_weight import Weight
from privselect.selection.exact.tail_cutoff import LARGEST_LOG, Tail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]
    Sheets = tuple[Floats, Floats, Floats, Floats]  # gains and costs at the start and the end of blocks, node by node

TOLERANCE = 2e-3  # relative, in delta: about a twentieth of it in epsilon
_TINY = 1e-300
_CHUNK = 400_000  # numbers in a table: a few dozen of them are held at a time
_ROUNDS = 10
_FEW = 64
_LONG = 0.2  # of a block: a piece longer than this is judged with care
_MOST_PARTS = 16  # a cell is cut into at a time
_BY_LOG, _BY_SHARE = np.linspace(0.0, 1.0, 12), np.linspace(0.1, 0.95, 10)  # where the mesh is judged
_SHARE = 0.1  # of the allowed loss, to each e-fold of y
_MOST_NODES, _MOST_BLOCKS = 2400, 1800  # past these the mesh stays as it is: looser, never wrong


@dataclass(frozen=True, slots=True)
class Span:
    """Pieces ``first`` to ``last``, and a bound on the integral of F over all later ones."""

    first: int
    last: int
    rest: float


class Field:
    """F over a mesh: nodes in x, blocks in y; the y-pieces are the pair's outcomes cut at the block ends."""

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE, mesh_of: Field | None = None) -> None:
        self.pair, self.tolerance = pair, tolerance
        self._adapted: tuple[float, float, float] | None = None  # epsilon, its reach, negligible share of y
        self._delta_there = math.nan  # what was found there; none compares with it
        self.weight = Weight(count, pair.relative_rounding)
        self._tail = Tail(pair, self.weight)
        if mesh_of is not None:
            # Both bounds hold on any mesh: one that was found for a pair close to this one does.
            self._first_ends, self._first_nodes = mesh_of.ends, mesh_of.nodes.x
            self._adapted, self._delta_there = mesh_of._adapted, mesh_of._delta_there  # noqa: SLF001
            self.log_ratio: float = mesh_of.log_ratio
        else:
            self.log_ratio = log_ratio(pair, count)
            coarse = self.weight.decline(0.45)
            x = pair.low_nodes[0]
            vertices = x if len(x) <= _FEW else x[:0]  # with few outcomes, the corners of g are where the best places are
            self._first_ends = coarse
            self._first_nodes = np.concatenate([both_scales(pair, coarse), np.minimum(vertices, 1.0)])
        self._sheets: dict[tuple[str, int], Sheets] = {}
        self._start_over()

    def _start_over(self) -> None:
        self._set_blocks(self._first_ends)
        self._set_nodes(self._first_nodes)

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
        self._sheets.clear()

    def _set_nodes(self, x: Floats) -> None:
        self.nodes = Nodes(self.pair, self.weight, x)
        self._sheets.clear()

    # -- reading it --------------------------------------------------------------------------------------------------

    @property
    def log_limit(self) -> float:
        """F(x, y) > 0 needs log c below it, as g(x) + k(y) <= g(x + y); with room for the rounding of the losses."""
        return self.log_ratio + 1e-9

    def _countable(self, epsilon: float) -> int:
        return int(np.searchsorted(self.log_slope, self.log_limit - epsilon))

    def span(self, epsilon: float, negligible: float) -> Span:
        """The pieces that matter; what lies deeper in the tail, or further down, adds at most about ``negligible`` on each side.

        Deeper pieces are charged as if their loss were infinite. Beyond the greatest ratio of the two weights F is never positive,
        and a little before that it hardly adds anything.
        """
        last = self._countable(epsilon)
        if last == 0:
            return Span(0, 0, 0.0)
        depth, rest = self._tail.cut(epsilon, float(self.y[last]), negligible)
        last = max(min(int(np.searchsorted(self.y, depth, side="left")), last), 1)
        first = min(int(np.searchsorted(self.y, negligible, side="right")) - 1, last - 1)
        return Span(max(first, 0), last, rest)

    def chunks(self, epsilon: float, span: Span) -> Iterator[Rows]:
        """The span's pieces with all that the bounds need, a stretch at a time: tables stay small."""
        size = max(_CHUNK // len(self.nodes.x), 64)
        for start in range(span.first, span.last, size):
            yield self._rows_at(epsilon, np.arange(start, min(start + size, span.last)))

    def _rows_at(self, epsilon: float, pieces: Indices) -> Rows:
        of_piece = self.block[pieces]
        new = np.concatenate([[True], of_piece[1:] > of_piece[:-1]])
        blocks, block = of_piece[new], np.cumsum(new) - 1
        y0, y1, k0, k1 = self.y[pieces], self.y[pieces + 1], self.k[pieces], self.k[pieces + 1]
        start, span = self.ends[blocks][block], np.diff(self.ends)[blocks][block]
        k_start, k_span = self.ends_k[blocks][block], np.diff(self.ends_k)[blocks][block]
        t0, t1 = (np.clip((y - start) / span, 0.0, 1.0) for y in (y0, y1))
        s0, s1 = (np.clip((k - k_start) / np.maximum(k_span, _TINY), 0.0, 1.0) for k in (k0, k1))
        c = np.exp(np.minimum(epsilon + self.log_slope[pieces], LARGEST_LOG))
        return Rows(y0, y1, k0, k1, c, block, blocks, t0, t1, s0, s1)

    def above(self, rows: Rows) -> Table:
        """Upper bounds on F over each row, node by node."""
        return Table(rows, *self._kept(self._above, rows.blocks))

    def estimate(self, rows: Rows) -> Table:
        """F itself at the nodes, but for the interpolation in y: for choosing orders, never for bounds."""
        return Table(rows, *self._kept(self._estimate, rows.blocks))

    def _above(self, blocks: Indices) -> Sheets:
        cost0, cost1 = self.nodes.tangents(self.ends_k[blocks], self.ends_k[blocks + 1])
        return *_at_both_ends(lambda ends: self.nodes.gains(self.ends[ends]), blocks), cost0, cost1

    def _estimate(self, blocks: Indices) -> Sheets:
        gains = _at_both_ends(lambda ends: self.weight.at(self.nodes.x + self.ends[ends, None]), blocks)
        return *gains, *_at_both_ends(lambda ends: self.weight.at(self.nodes.g + self.ends_k[ends, None]), blocks)

    def _kept(self, make: Callable[[Indices], Sheets], blocks: Indices) -> Sheets:
        """Gains and costs know nothing of epsilon: a search takes those of a run of blocks from its first step."""
        key = make.__name__, int(blocks[0])
        if key not in self._sheets or len(self._sheets[key][0]) < len(blocks):
            self._sheets[key] = make(blocks)
        gain0, gain1, cost0, cost1 = self._sheets[key]
        size = len(blocks)
        return gain0[:size], gain1[:size], cost0[:size], cost1[:size]

    def forget(self) -> None:
        """Give back the memory of what was kept; the mesh stays."""
        self._sheets.clear()

    # -- refining it -------------------------------------------------------------------------------------------------

    def adapt(self, epsilon: float) -> Span:
        """Refine for this epsilon; the pieces that matter at it."""
        if self._adapted is not None and abs(epsilon - self._adapted[0]) < self._adapted[1]:
            return self.span(epsilon, self._adapted[2])
        if self._adapted is not None:
            self._start_over()  # a mesh made for another place is fine where it does not matter here
        negligible = 1e-6 * float(self.y[self._countable(epsilon)])
        for _ in range(_ROUNDS):
            span = self.span(epsilon, negligible)
            if span.last == 0:
                return span
            sample = self._sample(span)
            rows = self._rows_at(epsilon, sample)
            y = 0.5 * (rows.y0 + rows.y1)
            # A long piece may count in its first part only: judge it by its mean, and its best places by its start.
            long = bool((rows.t1 - rows.t0).max() > _LONG)
            place, k = (rows.y0, rows.k0) if long else (y, 0.5 * (rows.k0 + rows.k1))
            bounds, at_place = self._at_points(rows, place, k)
            true = self._means(rows, at_place) if long else at_place
            total = _total(true, rows, whole=len(sample) == span.last - span.first)
            # An error at y weighs y times itself: spread what may be lost evenly over the logarithm of y.
            allowed = self.tolerance * np.maximum(true, _SHARE * total / y)
            in_x = np.maximum(bounds.max(axis=1), 0.0) - at_place
            excess = (Table(rows, *self._above(rows.blocks)).best().mean() - true - in_x) / np.maximum(allowed, _TINY)
            widths = np.diff(self.ends)[rows.blocks][rows.block]
            refined = self._refine_nodes(bounds, at_place, self.tolerance * np.maximum(at_place, _SHARE * total / y))
            refined = max(refined, self._refine_blocks(y, widths, excess))
            # What a second-order rule has cut is fine enough, unless it was cut as far as a round may; long pieces are judged again.
            changed = refined > (0 if long else 1)
            if total == 0.0 and negligible > _TINY:
                negligible, changed = max(1e-30 * negligible, _TINY), True  # nothing counts yet: look deeper into the tail
            elif negligible > 0.1 * self.tolerance * total > 0.0:
                negligible, changed = 0.03 * self.tolerance * total, True
            if not changed:
                break
        # Nearby the same mesh does: a search for epsilon need not judge it at every step.
        self._adapted = (epsilon, 0.02 * epsilon, negligible)
        return self.span(epsilon, negligible)

    def on_a_fit_mesh(self, delta: Callable[[float], float], epsilon: float) -> float:
        """``delta(epsilon)``; where the mesh was made at another epsilon and delta is another by much, once more on a new one."""
        value = delta(epsilon)
        if self._adapted is None or self._adapted[0] == epsilon:
            self._delta_there = value
        elif not 0.75 * self._delta_there <= value <= 1.33 * self._delta_there:
            self._adapted = None
            self._start_over()
            self._delta_there = value = delta(epsilon)
        return value

    def _at_points(self, rows: Rows, y: Floats, k: Floats) -> tuple[Floats, Floats]:
        """At one point of each row: the bound node by node with a block of no height, and the greatest F at the nodes."""
        # Less the outward rounding, and a little more: no mesh, however fine, gets below that.
        gain = self.nodes.gains(y) * (1.0 - 1e-10)
        true = (gain - rows.c[:, None] * self.weight.below(self.nodes.g + k[:, None])).max(axis=1)
        return gain - rows.c[:, None] * self.nodes.tangents(k, k)[0], np.maximum(true, 0.0)

    def _means(self, rows: Rows, at_start: Floats) -> Floats:
        middle = self._at_points(rows, 0.5 * (rows.y0 + rows.y1), 0.5 * (rows.k0 + rows.k1))[1]
        return np.asarray((at_start + 4.0 * middle + self._at_points(rows, rows.y1, rows.k1)[1]) / 6.0)

    def rough_delta(self, epsilon: float) -> float:
        """About delta, from a few pieces on the mesh as it is: a cheap first guess for a search."""
        span = self.span(epsilon, 1e-6 * float(self.y[self._countable(epsilon)]))
        if span.last == 0:
            return 0.0
        sample = self._sample(span)
        rows = self._rows_at(epsilon, sample)
        true = np.maximum(Table(rows, *self._estimate(rows.blocks)).best_start()[0], 0.0)
        return self.weight.scale * _total(true, rows, whole=len(sample) == span.last - span.first)

    def _sample(self, span: Span) -> Indices:
        """Pieces to judge the mesh by: spread over the logarithm of y, over y near its end, and over the losses."""
        low, high = max(float(self.y[span.first + 1]), _TINY), float(self.y[span.last])
        depths = np.concatenate([high * (low / high) ** _BY_LOG, high * _BY_SHARE])
        by_mass = np.searchsorted(self.y, depths, side="left") - 1
        by_loss = np.linspace(span.first, span.last - 1, 6)
        return np.unique(np.clip(np.concatenate([by_mass, by_loss]), span.first, span.last - 1).astype(np.intp))

    def _refine_nodes(self, bounds: Floats, true: Floats, allowed: Floats) -> int:
        """Split cells where the bound is too loose: 0 if there was none, 2 if some were cut as far as a round may, 1 otherwise."""
        best = bounds.argmax(axis=1)
        x = self.nodes.x
        cells = np.diff(x)
        parts = _parts((bounds[np.arange(len(best)), best] - true) / np.maximum(allowed, _TINY))
        # The best place wanders with y: between the places of two sampled rows the mesh must be as fine as at them.
        place, first = np.unique(x[best], return_index=True)
        width = np.maximum(cells[np.minimum(best, len(cells) - 1)], cells[np.maximum(best - 1, 0)])
        split = _splits(x, place, (width / parts)[first])
        loose = np.any(bounds > (true + allowed)[:, None], axis=0)
        split = _affordable(np.maximum(split, np.where(loose[1:] | loose[:-1], 4, 1)), _MOST_NODES)
        if (split == 1).all():
            return 0
        self._set_nodes(_divided(x, split))
        return 1 + int((parts == _MOST_PARTS).any())

    def _refine_blocks(self, y: Floats, width: Floats, excess: Floats) -> int:
        parts = _parts(excess)
        if not (parts > 1).any():
            return 0
        split = _affordable(_splits(self.ends, y, width / parts), _MOST_BLOCKS)
        if (split == 1).all():
            return 0
        self._set_blocks(_divided(self.ends, split))
        return 1 + int((parts == _MOST_PARTS).any())


def _at_both_ends(make: Callable[[Indices], Floats], blocks: Indices) -> tuple[Floats, Floats]:
    """What ``make`` gives for the first and the second end of each block, computed once where two blocks meet."""
    first, last = int(blocks[0]), int(blocks[-1])
    if last - first + 1 == len(blocks):
        made = make(np.arange(first, last + 2))
        return made[:-1], made[1:]
    ends = np.unique(np.concatenate([blocks, blocks + 1]))
    made, start = make(ends), np.searchsorted(ends, blocks)
    return made[start], made[start + 1]


def _total(values: Floats, rows: Rows, *, whole: bool) -> float:
    """The integral over y of what has these values on the rows, which are all there are or a sample."""
    y = 0.5 * (rows.y0 + rows.y1)
    return float(values @ rows.width) if whole else float(np.trapezoid(values * y, np.log(y)))


def _parts(excess: Floats) -> Floats:
    # The excess is of second order in the cell: to bring it to 1, the cell must shrink by its square root.
    return np.ceil(np.sqrt(np.clip(excess, 1.0, _MOST_PARTS**2)))


def _splits(ends: Floats, place: Floats, wanted: Floats) -> Indices:
    """Into how many parts each cell must go so that, around and between the places, none is wider than wanted there."""
    width = np.diff(ends)
    near = (ends[1:] >= place[0]) & (ends[:-1] <= place[-1])
    limit = np.interp(ends[:-1] + 0.5 * width, place, wanted)
    with np.errstate(over="ignore", divide="ignore"):
        return np.where(near, np.clip(np.ceil(width / limit - 0.01), 1, _MOST_PARTS), 1).astype(np.intp)


def _affordable(split: Indices, most: int) -> Indices:
    """The same with fewer parts where they would be more than ``most`` cells in all; none where even halves would be."""
    for limit in (_MOST_PARTS, _MOST_PARTS // 2, 2):
        fewer = np.minimum(split, limit)
        if fewer.sum() <= most:
            return fewer
    return np.ones_like(split)


def _divided(ends: Floats, split: Indices) -> Floats:
    owner = np.repeat(np.arange(len(split)), split)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(split) - split, split)
    return np.append(ends[:-1][owner] + np.diff(ends)[owner] * inside / split[owner], ends[-1])
