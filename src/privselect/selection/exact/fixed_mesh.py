"""**Exact** on one fixed mesh, for a whole privacy profile: each epsilon takes a few passes over one table."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.mesh import Mesh, PieceRange
from privselect.selection.exact.score_order import ScoreOrder
from privselect.selection.exact.weight_bounds import MAX_LOG_C

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Indices = NDArray[np.intp]

_BATCH = 30_000  # entries of one table: a few tables of this size fit into the cache of a processor
_NEGLIGIBLE, _CHARGED = 1e-8, 1e-4  # shares that are charged in full: of y, and of delta
_DEEPEST = 40.0  # w below e^-40 is not resolved
_TINY, _SMALLEST_FLOAT = 1e-300, math.ulp(0.0)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Bounds on F over the pieces ``first`` to before ``stop``, node by node: gains at their edges, costs at their starts and ends."""

    first: int
    stop: int
    gain: Floats
    cost0: Floats
    cost1: Floats


class FixedMesh:
    """F over a mesh that suits every epsilon: nodes in x and pieces in y at even steps of log w.

    The bound is that of :class:`~privselect.selection.exact.engine.ExactUpper`, with a block of its own for each piece. So gains and costs
    are those of the piece's two ends, and nothing is interpolated.
    """

    def __init__(self, pair: DominatingPair, count: Count, spacing: float) -> None:
        self.mesh = Mesh(pair, count)
        y, k = pair.high_nodes
        self.mesh.set_blocks(_even_steps(self.mesh, y, k, spacing))
        self.mesh.set_nodes(_even_steps(self.mesh, *pair.low_nodes, spacing))

    @property
    def size(self) -> int:
        """Number of entries of one table over the whole mesh."""
        return len(self.mesh.y) * len(self.mesh.nodes.x)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound on delta at one epsilon >= 0, as ExactUpper does."""
        pieces = self._relevant(epsilon, math.inf)
        total = self._total(epsilon, pieces)
        if self._charged(pieces) > _CHARGED * total > 0.0:
            pieces = self._relevant(epsilon, 0.3 * _CHARGED * total)
            total = self._total(epsilon, pieces)
        if pieces.last == 0:
            return 0.0
        weight, pair = self.mesh.weight, self.mesh.pair
        bound = weight.scale * (total + self._charged(pieces)) * (1.0 + 4.0 * pair.relative_rounding)
        return float(min(max(bound, _SMALLEST_FLOAT), 1.0))

    def score_order(self, epsilon: float, pair: DominatingPair) -> ScoreOrder | None:
        """Return a score order of ``pair`` that is bad at this epsilon, or None if none was found; any order is valid."""
        mesh, pieces = self.mesh, self._relevant(epsilon, math.inf)
        found = [(start.max(axis=1), start.argmax(axis=1)) for start in self._starts(epsilon, pieces)]
        if not found:
            return None
        gains, nodes = (np.concatenate(part) for part in zip(*found, strict=True))
        x = mesh.nodes.x[np.maximum.accumulate(np.where(gains > 0.0, nodes, 0))]
        return ScoreOrder.fitting(pair, x, mesh.y[pieces.first : pieces.last + 1])

    def _relevant(self, epsilon: float, negligible: float) -> PieceRange:
        return self.mesh.relevant_pieces(epsilon, min(negligible, _NEGLIGIBLE * self.mesh.countable_mass(epsilon)))

    def _charged(self, pieces: PieceRange) -> float:
        """Return the bound on the pieces that are left out of the sum, before and after the relevant ones."""
        return float(self.mesh.y[pieces.first]) + pieces.tail_bound if pieces.last else 0.0

    def _total(self, epsilon: float, pieces: PieceRange) -> float:
        """Return an upper bound on the integral of F over the relevant pieces: the mean of the maxima at both ends of each."""
        mesh, total = self.mesh, 0.0
        for batch, inside, c in self._parts(epsilon, pieces):
            value = c * batch.cost0[inside]
            np.subtract(batch.gain[:-1][inside], value, out=value)
            maxima = np.maximum(value.max(axis=1), 0.0)
            np.multiply(c, batch.cost1[inside], out=value)
            np.subtract(batch.gain[1:][inside], value, out=value)
            maxima += np.maximum(value.max(axis=1), 0.0)
            edges = mesh.y[batch.first : batch.stop + 1]
            total += 0.5 * float(maxima @ (edges[1:] - edges[:-1])[inside])
        return total

    def _starts(self, epsilon: float, pieces: PieceRange) -> Iterator[Floats]:
        x, ends = self.mesh.nodes.x, self.mesh.y[1:, None]
        for batch, inside, c in self._parts(epsilon, pieces):
            fits = x <= 1.0 - ends[batch.first : batch.stop][inside]
            yield np.where(fits, batch.gain[:-1][inside] - c * batch.cost0[inside], -np.inf)

    def _parts(self, epsilon: float, pieces: PieceRange) -> Iterator[tuple[_Batch, slice, Floats]]:
        """Yield the batches with relevant pieces, the place of these pieces inside the batch, and ``c = e^epsilon k'``."""
        for batch in self._batches:
            first, stop = max(batch.first, pieces.first), min(batch.stop, pieces.last)
            if first < stop:
                c = np.exp(np.minimum(epsilon + self.mesh.log_slope[first:stop], MAX_LOG_C))
                yield batch, slice(first - batch.first, stop - batch.first), c[:, None]

    @cached_property
    def _batches(self) -> list[_Batch]:
        mesh = self.mesh
        size, end = max(_BATCH // len(mesh.nodes.x), 8), len(mesh.y) - 1
        found = []
        for first in range(0, end, size):
            stop = min(first + size, end)
            k = mesh.k[first : stop + 1]
            found.append(_Batch(first, stop, mesh.nodes.gains(mesh.y[first : stop + 1]), *mesh.nodes.tangents(k[:-1], k[1:])))
        return found


def _even_steps(mesh: Mesh, u: Floats, v: Floats, spacing: float) -> Floats:
    """Return masses from 0 to 1 between which log w falls by about ``spacing``, in the mean of the masses and of their place on (u, v)."""
    weight = mesh.weight
    declines = weight.equal_declines(spacing, deepest=_DEEPEST)
    fine = np.unique(np.concatenate([declines, np.interp(declines, v, u)]))
    heights = np.log(np.maximum(weight.at(fine), _TINY)) + np.log(np.maximum(weight.at(np.interp(fine, u, v)), _TINY))
    fall = np.maximum.accumulate(-0.5 * heights)
    return np.unique(np.concatenate([np.interp(np.arange(0.0, min(fall[-1], _DEEPEST), spacing), fall, fine), [0.0, 1.0]]))
