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

from privselect.selection.table import Rows, Table
from privselect.selection.weight import Weight

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

TOLERANCE = 2e-3  # relative, in delta: about a twentieth of it in epsilon
_TINY = 1e-300
_LARGEST_LOG = 700.0  # keeps c a float; a smaller c only loosens
_CHUNK = 1_500_000  # numbers in a table
_ROUNDS = 10
_FEW = 64
_LONG = 0.2  # of a block: a piece longer than this is judged with care
_MOST_PARTS = 16  # a cell is cut into at a time
_SHALLOW = 0.02  # m*y below this: all relevant pieces hang near the top, where y hardly changes the weights
_STRETCHES = 120
_SHARE = 0.1  # of the allowed loss, to each e-fold of y
_MOST_NODES, _MOST_BLOCKS = 1200, 900  # past these the mesh stays as it is: looser, never wrong


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
        if mesh_of is not None:
            # Both bounds hold on any mesh: one that was found for a pair close to this one does.
            self._first_ends, self._first_nodes = mesh_of.ends, mesh_of.x
            self._adapted, self._delta_there = mesh_of._adapted, mesh_of._delta_there  # noqa: SLF001
        else:
            coarse = self.weight.decline(0.45)
            x, g = pair.low_nodes
            vertices = x if len(x) <= _FEW else x[:0]  # with few outcomes, the corners of g are where the best places are
            self._first_ends = coarse
            self._first_nodes = np.concatenate([coarse, np.interp(coarse, g, x), np.minimum(vertices, 1.0)])
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

    def _set_nodes(self, x: Floats) -> None:
        self.x = np.unique(x)
        self.g = self.pair.g(self.x)
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        self.g_middle = self.pair.g(middle)
        outcome = np.searchsorted(self.pair.low_nodes[0], middle, side="right") - 1
        # g is below its tangent: at the cell's right end, this far above g_middle. Past the last outcome it is flat.
        self.half_rise = 0.5 * np.append(np.exp(-self.pair.losses), 0.0)[outcome] * np.diff(self.x)
        self.log_ratio = self._greatest_log_ratio()

    def _greatest_log_ratio(self) -> float:
        """A bound on log w(u)/w(g(u)) over all u: F(x, y) > 0 needs log c below it, as g(x) + k(y) <= g(x + y)."""
        zero = np.zeros(1)
        lowest = self.tangents(zero, zero)[0][0]
        with np.errstate(divide="ignore", invalid="ignore"):
            high = np.log(self.weight.above(self.x))
            at_nodes = high - np.log(lowest)
            # A chord over a positive concave minorant is greatest at an end of the cell; where the minorant is not positive,
            # compare the cell's left end with its right one.
            plain = high[:-1] - np.log(self.weight.below(self.g[1:]))
        usable = (lowest[:-1] > 0.0) & (lowest[1:] > 0.0)
        ratios = np.where(usable, np.maximum(at_nodes[:-1], at_nodes[1:]), plain)
        # Both weights underflowed: nothing there can matter, and nothing is known of the ratio.
        return float(np.max(np.where(np.isnan(ratios), np.inf, ratios))) + 1e-9

    def tangents(self, k0: Floats, k1: Floats) -> tuple[Floats, Floats]:
        """Lower bounds on w(g(x) + k) at the nodes, for k at either end of [k0, k1], that are concave in between."""
        reach = 0.5 * (k1 - k0)[:, None]
        u = np.minimum(self.g_middle + 0.5 * (k0 + k1)[:, None], 1.0)
        value = self.weight.below(u)
        flat, steep = self.weight.slopes(u, value)
        slack, half = self.weight.argument_rounding * u, self.half_rise

        # At the cell's left and right end, for the lower and the upper k: a tangent falls along both.
        corners = [value - np.where(d < 0.0, flat, steep) * d for d in (r + slack + s for s in (-reach, reach) for r in (-half, half))]
        if (dips := corners[3] < 0.0).any():
            # A tangent that dips below 0 says little, and must not be clipped: it would no longer be concave. The constant at
            # the far corner is a lower bound of the whole cell too.
            far = self.weight.below(np.minimum(self.g[1:] + k1[:, None], 1.0))
            corners = [np.where(dips, far, corner) for corner in corners]

        def at_nodes(left: Floats, right: Floats) -> Floats:
            nodes = np.empty((len(k0), len(self.x)))
            nodes[:, 0], nodes[:, -1] = left[:, 0], right[:, -1]
            np.minimum(left[:, 1:], right[:, :-1], out=nodes[:, 1:-1])
            return nodes

        return at_nodes(*corners[:2]), at_nodes(*corners[2:])

    # -- reading it --------------------------------------------------------------------------------------------------

    def _countable(self, epsilon: float) -> int:
        return int(np.searchsorted(self.log_slope, self.log_ratio - epsilon))

    def span(self, epsilon: float, negligible: float) -> Span:
        """The pieces that matter; what lies deeper in the tail, or further down, adds at most about ``negligible`` on each side.

        Deeper pieces are charged as if their loss were infinite. Further down, a stretch [s, t] of y has
        ``F <= w(x+s) - c(s) w(g(x)+k(t))``, and beyond the greatest ratio of the two weights F is never positive.
        """
        last = self._countable(epsilon)
        if last == 0:
            return Span(0, 0, 0.0)
        rest = 0.0
        if self.y[last] * self.weight.scale > _SHALLOW:
            top = float(self.y[last])
            ends = np.append(np.geomspace(_SHALLOW / self.weight.scale, top, _STRETCHES + 1)[:-1], top)
            piece = np.clip(np.searchsorted(self.y, ends[:-1], side="right") - 1, 0, last - 1)
            k = self.pair.k(ends[1:])
            c = np.exp(np.minimum(epsilon + self.log_slope[piece], _LARGEST_LOG))[:, None]
            bounds = np.maximum((self.weight.above(self.x + ends[:-1, None]) - c * self.tangents(k, k)[0]).max(axis=1), 0.0)
            # Sum from the far end; cut where the sum is still negligible.
            beyond = np.cumsum((bounds * np.diff(ends))[::-1])[::-1]
            small = np.flatnonzero(beyond <= negligible)
            if len(small):
                cut = min(int(np.searchsorted(self.y, ends[small[0]], side="left")), last)
                last, rest = max(cut, 1), float(beyond[small[0]])
        first = min(int(np.searchsorted(self.y, negligible, side="right")) - 1, last - 1)
        return Span(max(first, 0), last, rest)

    def chunks(self, epsilon: float, span: Span) -> Iterator[Rows]:
        """The span's pieces with all that the bounds need, a stretch at a time: tables stay small."""
        size = max(_CHUNK // len(self.x), 64)
        for start in range(span.first, span.last, size):
            yield self._rows_at(epsilon, np.arange(start, min(start + size, span.last)))

    def _rows_at(self, epsilon: float, pieces: Indices) -> Rows:
        blocks, block = np.unique(self.block[pieces], return_inverse=True)
        y0, y1, k0, k1 = self.y[pieces], self.y[pieces + 1], self.k[pieces], self.k[pieces + 1]
        start, span = self.ends[blocks][block], np.diff(self.ends)[blocks][block]
        k_start, k_span = self.ends_k[blocks][block], np.diff(self.ends_k)[blocks][block]
        t0, t1 = (np.clip((y - start) / span, 0.0, 1.0) for y in (y0, y1))
        s0, s1 = (np.clip((k - k_start) / np.maximum(k_span, _TINY), 0.0, 1.0) for k in (k0, k1))
        c = np.exp(np.minimum(epsilon + self.log_slope[pieces], _LARGEST_LOG))
        return Rows(y0, y1, k0, k1, c, block, blocks, t0, t1, s0, s1)

    def above(self, rows: Rows) -> Table:
        """Upper bounds on F over each row, node by node."""
        start, stop = self.ends[rows.blocks], self.ends[rows.blocks + 1]
        gain0 = self.weight.above(self.x + start[:, None])
        gain1 = self.weight.above(self.x + stop[:, None])
        cost0, cost1 = self.tangents(self.ends_k[rows.blocks], self.ends_k[rows.blocks + 1])
        return Table(rows, gain0, gain1, cost0, cost1)

    def estimate(self, rows: Rows) -> Table:
        """F itself at the nodes, but for the interpolation in y: for choosing orders, never for bounds."""
        start, stop = self.ends[rows.blocks], self.ends[rows.blocks + 1]
        gain0, gain1 = self.weight.at(self.x + start[:, None]), self.weight.at(self.x + stop[:, None])
        cost0 = self.weight.at(self.g + self.ends_k[rows.blocks][:, None])
        cost1 = self.weight.at(self.g + self.ends_k[rows.blocks + 1][:, None])
        return Table(rows, gain0, gain1, cost0, cost1)

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
            all_pieces = len(sample) == span.last - span.first
            total = float(true @ rows.width) if all_pieces else float(np.trapezoid(true * y, np.log(y)))
            # An error at y weighs y times itself: spread what may be lost evenly over the logarithm of y.
            allowed = self.tolerance * np.maximum(true, _SHARE * total / y)
            in_x = np.maximum(bounds.max(axis=1), 0.0) - at_place
            excess = (self.above(rows).best().mean() - true - in_x) / np.maximum(allowed, _TINY)
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
        elif not 0.4 * self._delta_there <= value <= 2.5 * self._delta_there:
            self._adapted = None
            self._start_over()
            self._delta_there = value = delta(epsilon)
        return value

    def _at_points(self, rows: Rows, y: Floats, k: Floats) -> tuple[Floats, Floats]:
        """At one point of each row: the bound node by node with a block of no height, and the greatest F at the nodes."""
        # Less the outward rounding, and a little more: no mesh, however fine, gets below that.
        gain = self.weight.above(self.x + y[:, None]) * (1.0 - 1e-10)
        true = (gain - rows.c[:, None] * self.weight.below(self.g + k[:, None])).max(axis=1)
        return gain - rows.c[:, None] * self.tangents(k, k)[0], np.maximum(true, 0.0)

    def _means(self, rows: Rows, at_start: Floats) -> Floats:
        middle = self._at_points(rows, 0.5 * (rows.y0 + rows.y1), 0.5 * (rows.k0 + rows.k1))[1]
        return np.asarray((at_start + 4.0 * middle + self._at_points(rows, rows.y1, rows.k1)[1]) / 6.0)

    def rough_delta(self, epsilon: float) -> float:
        """About delta, from a few pieces on the mesh as it is: a cheap first guess for a search."""
        span = self.span(epsilon, 1e-6 * float(self.y[self._countable(epsilon)]))
        if span.last == 0:
            return 0.0
        rows = self._rows_at(epsilon, self._sample(span))
        true = np.maximum(self.estimate(rows).best_start()[0], 0.0)
        y = 0.5 * (rows.y0 + rows.y1)
        return self.weight.scale * float(np.trapezoid(true * y, np.log(y))) if len(y) > 1 else float(true[0] * rows.width[0])

    def _sample(self, span: Span) -> Indices:
        """Pieces to judge the mesh by: spread over the logarithm of y, over y near its end, and over the losses."""
        low, high = max(float(self.y[span.first + 1]), _TINY), float(self.y[span.last])
        depths = np.concatenate([np.geomspace(low, high, 12), np.linspace(0.1, 0.95, 10) * high])
        by_mass = np.searchsorted(self.y, depths, side="left") - 1
        by_loss = np.linspace(span.first, span.last - 1, 6)
        return np.unique(np.clip(np.concatenate([by_mass, by_loss]), span.first, span.last - 1).astype(np.intp))

    def _refine_nodes(self, bounds: Floats, true: Floats, allowed: Floats) -> int:
        """Split cells where the bound is too loose: 0 if there was none, 2 if some were cut as far as a round may, 1 otherwise."""
        best = bounds.argmax(axis=1)
        cells = np.diff(self.x)
        parts = _parts((bounds[np.arange(len(best)), best] - true) / np.maximum(allowed, _TINY))
        # The best place wanders with y: between the places of two sampled rows the mesh must be as fine as at them.
        place, first = np.unique(self.x[best], return_index=True)
        width = np.maximum(cells[np.minimum(best, len(cells) - 1)], cells[np.maximum(best - 1, 0)])
        split = _splits(self.x, place, (width / parts)[first])
        loose = np.any(bounds > (true + allowed)[:, None], axis=0)
        split = _affordable(np.maximum(split, np.where(loose[1:] | loose[:-1], 4, 1)), _MOST_NODES)
        if (split == 1).all():
            return 0
        self._set_nodes(_divided(self.x, split))
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


def _parts(excess: Floats) -> Floats:
    # The excess is of second order in the cell: to bring it to 1, the cell must shrink by its square root.
    return np.ceil(np.sqrt(np.clip(excess, 1.0, _MOST_PARTS**2)))


def _splits(ends: Floats, place: Floats, wanted: Floats) -> Indices:
    """Into how many parts each cell must go so that, around and between the places, none is wider than wanted there."""
    width = np.diff(ends)
    near = (ends[1:] >= place[0]) & (ends[:-1] <= place[-1])
    limit = np.interp(ends[:-1] + 0.5 * width, place, wanted)
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
