"""A real score order of a real mechanism, and what it leaks: the lower bounds of **Exact**."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair
    from privselect.selection.weight import Weight

    Floats = NDArray[np.float64]


_LEAST_ODDS = 1e-304  # e^-700


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
        gain = (y1 - y0) * weight.below(self.x + 0.5 * (y0 + y1))
        cost = (k1 - k0) * 0.5 * (weight.above(np.minimum(g + k0, 1.0)) + weight.above(np.minimum(g + k1, 1.0)))
        rounding = 1.0 - 4.0 * self.pair.relative_rounding
        kept = np.where(self.x + y1 <= 1.0, gain * rounding - np.exp(epsilon) * cost / rounding, 0.0)
        return float(weight.scale * np.maximum(kept, 0.0).sum() * rounding)

    def selected_pair(self, count: Count) -> DominatingPair:
        """The pair (A, A') of the selection under this very order: a real mechanism's, so dominated by the selection's own.

        ``A = integral of phi'(1-u) du`` over each piece, by Gauss-Legendre on parts over which phi' changes little.
        """
        from privselect.pairs import DominatingPair
        from privselect.selection.weight import Weight

        weight = Weight(count, 0.0)
        p, q, _ = self.order()
        zero = np.array([count.probability_of_zero()])
        a, b = (np.concatenate([zero, _integrals(weight, np.concatenate([[0.0], np.cumsum(mass)]))]) for mass in (p, q))
        # An integral that underflowed in one law only would look like an infinite loss, which a lower bound must not claim.
        a, b = np.maximum(a, b * _LEAST_ODDS), np.maximum(b, a * _LEAST_ODDS)
        kept = a > 0.0
        order = np.argsort(np.log(a[kept]) - np.log(b[kept]), kind="stable")
        return DominatingPair(a[kept][order], b[kept][order])


def _integrals(weight: Weight, ends: Floats) -> Floats:
    ends = np.minimum(ends, 1.0)
    fine = np.unique(np.concatenate([ends, weight.decline(0.05)]))
    nodes, shares = np.polynomial.legendre.leggauss(6)
    middle, half = 0.5 * (fine[1:] + fine[:-1]), 0.5 * np.diff(fine)
    parts = weight.scale * half * (weight.at(middle[:, None] + half[:, None] * nodes) @ shares)
    piece = np.searchsorted(ends, fine[:-1], side="right") - 1
    return np.bincount(np.clip(piece, 0, len(ends) - 2), weights=parts, minlength=len(ends) - 1).astype(np.float64)
