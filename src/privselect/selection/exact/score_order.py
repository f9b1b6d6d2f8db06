"""A real score order of a real mechanism, and what it leaks: the lower bounds of **Exact**."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair
    from privselect.selection.exact.pgf_weight import Weight

    Floats = NDArray[np.float64]


_DEEP = 100.0  # weights below e^-100 are lumped together
_ULPS = 2.0**-50
_STEP = 1e-6  # relative, between two steps of an order whose pieces are priced one by one


@dataclass(frozen=True, slots=True, eq=False)
class Staircase:
    """Outcomes of the pair, best score first: low losses up to mass x_0, high losses up to y_1, low losses up to x_1, ...

    ``x`` (nondecreasing) is the mass of low losses ranked above each high piece; ``y`` has one entry more and runs over the
    high pieces from the highest loss down. Outcomes may be split; what is left at the end has the worst scores.
    """

    pair: DominatingPair
    x: Floats
    y: Floats

    def order(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """The order as explicit pieces from the best score down: masses under P, under P', and whether the piece is counted."""
        x, y = np.concatenate([[0.0], self.x]), self.y
        g, k = self.pair.g(x), self.pair.k(y)
        g[0] = 0.0  # what only P' can give is ranked first
        p, q = np.empty(2 * len(self.x) + 2), np.empty(2 * len(self.x) + 2)
        p[0], q[0] = y[0], k[0]
        p[1:-1:2], q[1:-1:2] = np.diff(x), np.diff(g)
        p[2:-1:2], q[2:-1:2] = np.diff(y), np.diff(k)
        p[-1], q[-1] = max(1.0 - p[:-1].sum(), 0.0), max(1.0 - q[:-1].sum(), 0.0)
        counted = np.zeros(len(p), dtype=bool)
        counted[0] = counted[2:-1:2] = True
        return p, q, counted

    def delta(self, epsilon: float, weight: Weight) -> float:
        """``sum (A - e^epsilon A')_+`` over the counted pieces, rounded down.

        A piece from mass u to v above has ``A = m * integral of w over [u, v]``: for convex w at least width times the value in the
        middle, at most width times the mean of the ends; no difference of nearby numbers is taken.
        """
        y0, y1 = self.y[:-1], self.y[1:]
        g, k0, k1 = self.pair.g(self.x), self.pair.k(y0), self.pair.k(y1)
        # A width is a difference of two floats: off by a few units in their last place, however narrow it is.
        gain = np.maximum(y1 - y0 - _ULPS * y1, 0.0) * weight.below(self.x + 0.5 * (y0 + y1))
        cost = (k1 - k0 + _ULPS * k1) * 0.5 * (weight.above(np.minimum(g + k0, 1.0)) + weight.above(np.minimum(g + k1, 1.0)))
        rounding = 1.0 - 4.0 * self.pair.relative_rounding
        kept = np.where(self.x + y1 <= 1.0, gain * rounding - np.exp(epsilon) * cost / rounding, 0.0)
        return float(weight.scale * np.maximum(kept, 0.0).sum() * rounding)

    def selected_pair(self, count: Count) -> DominatingPair:
        """A pair below that of the selection under this very order: a real mechanism's, so dominated by the selection's own.

        A piece has ``A = mass * (mean of phi'(1-u) over it)``. Where the weights are too small to be told well, all that is left
        becomes one outcome.
        """
        from privselect.pairs.subnormal_masses import merge_tiny
        from privselect.selection.exact.pgf_weight import Weight

        weight = Weight(count, 0.0)
        p, q, _ = self._thinned().order()
        above = [np.concatenate([[0.0], np.minimum(np.cumsum(mass), 1.0)]) for mass in (p, q)]
        deep = [(weight.at(ends[1:]) < math.exp(-_DEEP)) | (ends[1:] > 1.0 - _STEP) for ends in above]
        start = int(np.argmax(np.append(deep[0] | deep[1], True)))
        p, q = (np.append(mass[:start], mass[start:].sum()) for mass in (p, q))
        zero = np.array([count.probability_of_zero()])
        a, b = (np.concatenate([zero, weight.scale * mass * _means(weight, mass)]) for mass in (p, q))
        steepest = max(_steepest(weight, ends[: start + 1]) for ends in above)
        return merge_tiny(a, b, rounding=self._piece_rounding(steepest))

    def _piece_rounding(self, steepest: float) -> float:
        """How well the masses of the pieces are known: as differences of sums over steps, and by the place where w is read."""
        sums = self.pair.relative_rounding - 2.0 * self.pair.rounding
        return sums / _STEP + 2.0 * self.pair.rounding + (1.0 + steepest) * self.pair.relative_rounding + 1e-10

    def _thinned(self) -> Staircase:
        """The same order with fewer steps: their masses are differences, and tiny steps would have no digits."""
        kept = _apart(self.y[1:])
        y = np.concatenate([self.y[:1], self.y[1:][kept]])
        first = np.concatenate([[0], kept[:-1] + 1])  # the step whose x a merged one takes: the least, which always fits
        x = self.x[first]
        # g is concave: steps of g are the smaller ones. k is convex, and its steps are the larger ones.
        return Staircase(self.pair, x[_last_apart(self.pair.g(x))], y)


def _apart(values: Floats) -> NDArray[np.intp]:
    """Indices of ascending values, each a little above the one before; the last is always one of them."""
    kept = np.unique(_last_apart(values))
    if len(kept) > 1 and values[-1] < values[kept[-1]] * (1.0 + _STEP):
        kept = kept[:-1]
    return np.unique(np.append(kept, len(values) - 1))


def _last_apart(values: Floats) -> NDArray[np.intp]:
    """For each of ascending values, the index of the last one at or before it that is a little above the one kept before."""
    found, last = np.empty(len(values), dtype=np.intp), 0
    for i, value in enumerate(values.tolist()):
        if value > values[last] * (1.0 + _STEP):
            last = i
        found[i] = last
    return found


def _steepest(weight: Weight, u: Floats) -> float:
    """The most by which log w falls for each unit that log u grows, with room."""
    u = u[u > 0.0]
    if len(u) == 0:
        return 0.0
    lower, upper = u * (1.0 - 0.5 * _STEP), np.minimum(u * (1.0 + 0.5 * _STEP), 1.0)
    return 1.2 * float((np.log(weight.at(lower) / weight.at(upper)) / np.log(upper / lower)).max()) + 1.0


def _means(weight: Weight, masses: Floats) -> Floats:
    """Mean of w over each of the pieces, by Gauss-Legendre on parts over which w changes little."""
    ends = np.minimum(np.concatenate([[0.0], np.cumsum(masses)]), 1.0)
    fine = np.unique(np.concatenate([ends, weight.decline(0.05, deepest=_DEEP + 40.0 + math.log1p(weight.scale))]))
    nodes, shares = np.polynomial.legendre.leggauss(6)
    middle, half = 0.5 * (fine[1:] + fine[:-1]), 0.5 * np.diff(fine)
    parts = 0.5 * (weight.at(middle[:, None] + half[:, None] * nodes) @ shares)
    piece = np.clip(np.searchsorted(ends, fine[:-1], side="right") - 1, 0, len(ends) - 2)
    width = np.bincount(piece, weights=half, minlength=len(masses))
    total = np.bincount(piece, weights=half * parts, minlength=len(masses))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(width > 0.0, total / width, weight.at(ends[:-1])))
