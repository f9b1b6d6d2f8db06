"""An actual score order of a pair of outcome distributions, and its delta: the lower bounds of **Exact**."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.weight_bounds import Weight

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_DEEP = 100.0  # outcomes with weights below e^-100 are merged
_ULPS = 2.0**-50
_REST_PIECES = 200  # into which the outcomes after the last counted one are divided
_STEP = 1e-6  # relative distance of two steps of an order whose pieces become separate outcomes


@dataclass(frozen=True, slots=True, eq=False)
class ScoreOrder:
    """Outcomes of the pair, best score first: low losses up to mass x_0, high losses up to y_1, low losses up to x_1, ...

    ``x`` (nondecreasing) is the mass of low losses ranked above each high piece. ``y`` has one entry more and runs over the
    high pieces from the highest loss down. Outcomes may be split; the remaining outcomes have the worst scores.
    """

    pair: DominatingPair
    x: Floats
    y: Floats

    @classmethod
    def fitting(cls, pair: DominatingPair, x: Floats, y: Floats) -> ScoreOrder | None:
        """Return the order with the pieces before the first one that overlaps the low losses above it, or None if no piece is left.

        In floats, outcomes may fill the mass of P and still overlap in the mass of P', so both sums are checked.
        """
        fits = (x + y[1:] <= 1.0) & (pair.g(x) + pair.k(y[1:]) <= 1.0 + pair.relative_rounding)
        size = len(x) if fits.all() else int(np.argmin(fits))
        return cls(pair, x[:size], y[: size + 1]) if size else None

    def pieces(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return the pieces from the best score down: masses under P, masses under P', and whether each piece is counted."""
        x, y = np.concatenate([[0.0], self.x]), self.y
        g, k = self.pair.g(x), self.pair.k(y)
        g[0] = 0.0  # outcomes that only P' can give are ranked first
        p, q = np.empty(2 * len(self.x) + 2), np.empty(2 * len(self.x) + 2)
        p[0], q[0] = y[0], k[0]
        p[1:-1:2], q[1:-1:2] = np.diff(x), np.diff(g)
        p[2:-1:2], q[2:-1:2] = np.diff(y), np.diff(k)
        p[-1], q[-1] = max(1.0 - p[:-1].sum(), 0.0), max(1.0 - q[:-1].sum(), 0.0)
        counted = np.zeros(len(p), dtype=bool)
        counted[0] = counted[2:-1:2] = True
        return p, q, counted

    def delta(self, epsilon: float, weight: Weight) -> float:
        """Return ``sum (A - e^epsilon A')_+`` over the counted pieces, rounded down.

        A piece with masses u to v above it has ``A = m * integral of w over [u, v]``. For convex w the integral is at least the width
        times the value in the middle, and at most the width times the mean of the two end values. No nearby numbers are subtracted.
        """
        y0, y1 = self.y[:-1], self.y[1:]
        g, k0, k1 = self.pair.g(self.x), self.pair.k(y0), self.pair.k(y1)
        # A width is a difference of two floats: its error is a few units in their last place, however narrow it is.
        gain = np.maximum(y1 - y0 - _ULPS * y1, 0.0) * weight.below(self.x + 0.5 * (y0 + y1))
        cost = (k1 - k0 + _ULPS * k1) * 0.5 * (weight.above(np.minimum(g + k0, 1.0)) + weight.above(np.minimum(g + k1, 1.0)))
        rounding = 1.0 - 4.0 * self.pair.relative_rounding
        kept = np.where(self.x + y1 <= 1.0, gain * rounding - np.exp(epsilon) * cost / rounding, 0.0)
        return float(weight.scale * np.maximum(kept, 0.0).sum() * rounding)

    def selected_pair(self, count: Count) -> DominatingPair:
        """Return a pair below that of the selection under this order :meth:`with_rest`: the selection's own pair dominates it.

        A piece has ``A = mass * (mean of phi'(1-u) over it)``. If the weights are too small to be computed accurately, all remaining
        pieces become one outcome.
        """
        from privselect.pairs.subnormal_masses import merge_subnormal

        weight = Weight(count, 0.0)
        p, q, _ = self.with_rest().merge_close_steps().pieces()
        above = [np.concatenate([[0.0], np.minimum(np.cumsum(mass), 1.0)]) for mass in (p, q)]
        deep = [(weight.at(edges[1:]) < math.exp(-_DEEP)) | (edges[1:] > 1.0 - _STEP) for edges in above]
        start = int(np.argmax(np.append(deep[0] | deep[1], True)))
        p, q = (np.append(mass[:start], mass[start:].sum()) for mass in (p, q))
        zero = np.array([count.probability_of_zero()])
        a, b = (np.concatenate([zero, weight.scale * mass * _mean_weights(weight, mass)]) for mass in (p, q))
        steepest = max(_steepest_decline(weight, edges[: start + 1]) for edges in above)
        return merge_subnormal(a, b, rounding=self._piece_rounding(steepest))

    def _piece_rounding(self, steepest: float) -> float:
        """Return the relative error of the masses of the pieces: from differences of sums, and from the argument of w."""
        sums = self.pair.relative_rounding - 2.0 * self.pair.rounding
        return sums / _STEP + 2.0 * self.pair.rounding + (1.0 + steepest) * self.pair.relative_rounding + 1e-10

    def with_rest(self) -> ScoreOrder:
        """Return the same order with the outcomes after the last piece divided by their loss, which reveals more of a release."""
        nodes, k = self.pair.high_nodes
        fits = (nodes < 1.0 - self.x[-1]) & (k <= 1.0 - self.pair.g(self.x[-1]))
        rest = nodes[(nodes > self.y[-1] * (1.0 + _STEP)) & fits]
        if len(rest) > _REST_PIECES:
            rest = rest[np.linspace(0, len(rest) - 1, _REST_PIECES).astype(np.intp)]
        return ScoreOrder(self.pair, np.append(self.x, np.full(len(rest), self.x[-1])), np.append(self.y, rest))

    def merge_close_steps(self) -> ScoreOrder:
        """Return the same order with fewer steps: masses are differences, and tiny steps would have no significant digits."""
        # Just past the infinite losses, k is a difference too.
        leak = self.pair.p_only
        y = np.where((self.y > leak) & (self.y <= leak * (1.0 + _STEP)), leak, self.y)
        start = y[:1] if y[1] > y[0] * (1.0 + _STEP) else np.zeros(1)  # any start gives an order
        kept = _separated(y[1:])
        y = np.concatenate([start, y[1:][kept]])
        first = np.concatenate([[0], kept[:-1] + 1])  # a merged step takes the smallest x of its parts, which always fits
        x = self.x[first]
        # g is concave, so the steps of g are the smaller ones. k is convex, so its steps are the larger ones.
        return ScoreOrder(self.pair, x[_last_separated(self.pair.g(x))], y)


def _separated(values: Floats) -> NDArray[np.intp]:
    """Return indices of ascending values that each exceed the previous one by the factor 1 + _STEP; always includes the last index."""
    kept = np.unique(_last_separated(values))
    if values[-1] < values[kept[-1]] * (1.0 + _STEP):
        kept = kept[:-1]
    return np.unique(np.append(kept, len(values) - 1))


def _last_separated(values: Floats) -> NDArray[np.intp]:
    """Return, for each of the ascending values, the index of the last kept value at or before it."""
    found, last = np.empty(len(values), dtype=np.intp), 0
    for i, value in enumerate(values.tolist()):
        if value > values[last] * (1.0 + _STEP):
            last = i
        found[i] = last
    return found


def _steepest_decline(weight: Weight, u: Floats) -> float:
    """Return an upper estimate of the fall of log w per unit of log u."""
    u = u[u > 0.0]
    if len(u) == 0:
        return 0.0
    lower, upper = u * (1.0 - 0.5 * _STEP), np.minimum(u * (1.0 + 0.5 * _STEP), 1.0)
    return 1.2 * float((np.log(weight.at(lower) / weight.at(upper)) / np.log(upper / lower)).max()) + 1.0


def _mean_weights(weight: Weight, masses: Floats) -> Floats:
    """Return the mean of w over each of the pieces, by Gauss-Legendre quadrature on parts over which w changes little."""
    edges = np.minimum(np.concatenate([[0.0], np.cumsum(masses)]), 1.0)
    fine = np.unique(np.concatenate([edges, weight.equal_declines(0.05, deepest=_DEEP + 40.0 + math.log1p(weight.scale))]))
    nodes, shares = np.polynomial.legendre.leggauss(6)
    middle, half = 0.5 * (fine[1:] + fine[:-1]), 0.5 * np.diff(fine)
    parts = 0.5 * (weight.at(middle[:, None] + half[:, None] * nodes) @ shares)
    piece = np.clip(np.searchsorted(edges, fine[:-1], side="right") - 1, 0, len(edges) - 2)
    width = np.bincount(piece, weights=half, minlength=len(masses))
    total = np.bincount(piece, weights=half * parts, minlength=len(masses))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(width > 0.0, total / width, weight.at(edges[:-1])))
