"""The cuts of **Design**, which bound what a score order leaks, and the linear program over them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.engine import ExactLower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_LARGEST = 1e7  # relative limit of a coefficient: larger ones add almost nothing and cost the solver precision
_SIZE = 1e4  # scale of the coefficients given to the solver
_SOLVER_TOLERANCE = 1e-10  # the smallest one that the solver accepts
_MOST_ROWS = 400


@dataclass(frozen=True, slots=True, eq=False)
class ProgramSolution:
    """The best law of K under some cuts (``pmf[k] = P(K = k)``), and a proved bound on the success of all that meet the cuts."""

    pmf: Floats
    bound: float


class LinearProgram:
    """Maximise ``sum_k P(k) value_k`` over laws of K on {0, ..., cap} with ``E K <= mean`` and ``sum_k P(k) row_k <= 1`` for every row.

    ``share`` is about the largest possible P(K >= 1). The solver works with P(K = k)/share, because share may be small.
    """

    def __init__(self, values: Floats, mean: float | None, share: float) -> None:
        self.values, self.mean, self.share = values, mean, share
        self._k = np.arange(1.0, len(values) + 1.0)
        self._rows: list[Floats] = []

    @property
    def rows(self) -> Floats:
        """The cuts, one per row, for k from 1 to cap, in units of delta."""
        return np.array(self._rows).reshape(-1, len(self.values))

    def add(self, row: Floats) -> None:
        """Add a cut. Clipping its coefficients is sound, because for P >= 0 smaller ones only weaken it."""
        self._rows.append(np.minimum(row, _LARGEST * max(1.0 / self.share, -float(row.min()))))

    def excess(self, pmf: Floats) -> float:
        """Return the largest value of the cuts at this law of K: an approximate lower bound on its delta, in units of delta."""
        return float((self.rows @ pmf[1:]).max(initial=0.0))

    def solve(self, limit: float = 1.0) -> ProgramSolution | None:
        """Return the best law of K with every cut at most ``limit``; its ``bound`` is for a limit of 1. None if the solver fails."""
        from scipy.optimize import linprog

        rows = self.rows * self.share
        sizes = np.maximum(np.abs(rows).max(axis=1, initial=0.0) / _SIZE, 1.0)
        rows = np.vstack([rows / sizes[:, None], np.full_like(self._k, self.share)])  # P(K = 0) is the remainder
        limits = np.append(limit / sizes, 1.0)
        if self.mean is not None:
            rows, limits = np.vstack([rows, self._k * (self.share / self.mean)]), np.append(limits, 1.0)
        objective = -self.values / self.values.max()
        found = linprog(
            objective,
            A_ub=rows,
            b_ub=limits,
            bounds=(0.0, None),
            method="highs",
            options={"primal_feasibility_tolerance": _SOLVER_TOLERANCE, "dual_feasibility_tolerance": _SOLVER_TOLERANCE},
        )
        if found.status != 0 or found.x is None:
            return None
        p = np.maximum(found.x, 0.0) * self.share
        p /= max(float(p.sum()), 1.0)
        multipliers = np.maximum(-found.ineqlin.marginals, 0.0) * (self.values.max() * self.share)
        cuts, budget = multipliers[: len(sizes)] / sizes, multipliers[len(sizes) + 1 :]
        bound = self.bound(cuts, 0.0 if self.mean is None else float(budget[0]) / self.mean)
        self._drop_inactive(cuts > 0.0)
        return ProgramSolution(np.concatenate([[max(1.0 - float(p.sum()), 0.0)], p]), bound)

    def bound(self, cuts: Floats, budget: float) -> float:
        """Return the bound of weak duality, rounded up; it holds for any multipliers >= 0, whatever the solver returns.

        ``sum_k P(k) value_k <= sum_i cut_i + budget * mean + max(0, max_k [value_k - sum_i cut_i row_ik - budget k])``.
        """
        rows, mean = self.rows, self.mean
        if mean is None:
            mean = budget = 0.0  # without a budget the multiplier is not used
        left = self.values - cuts @ rows - budget * self._k
        total = float(cuts.sum()) + budget * mean
        # The error of a sum is a few units, plus one unit per term, of the size of its terms.
        sizes = self.values + cuts @ np.abs(rows) + budget * self._k
        rounding = (len(cuts) + 16) * 2.0**-52
        return float(max((left + rounding * sizes).max(), 0.0) + total * (1.0 + rounding)) * (1.0 + 1e-15)

    def _drop_inactive(self, active: NDArray[np.bool_]) -> None:
        """Remove the oldest inactive cuts if there are too many."""
        surplus = len(self._rows) - _MOST_ROWS
        if surplus > 0:
            idle = set(np.flatnonzero(~active)[:surplus].tolist())
            self._rows = [row for i, row in enumerate(self._rows) if i not in idle]


_MARGIN = 2e-11  # relative: many times the error of exp, log1p and thousands of additions
_TINY = 1e-300  # floats below this lose precision
_ENTRIES = 1 << 20  # of the (k, piece) matrix in memory at a time: 8 MB


@dataclass(frozen=True, slots=True, eq=False)
class ScoreOrderCut:
    """The counted pieces of a score order: losses from depth ``y0`` to ``y1``, with the mass ``x`` of lowest losses ranked above each.

    ``x`` is nondecreasing, the pieces follow one another, and ``x + y1 <= 1``. So this is an order of any pair, not only of the one for
    which it was found.
    """

    x: Floats
    y0: Floats
    y1: Floats

    def coefficients(self, pair: DominatingPair, epsilon: float, cap: int) -> Floats:
        r"""Return ``c_1, ..., c_cap``, rounded down, with ``A(S) - e^epsilon A'(S) = sum_k P(K=k) c_k`` for every law of K; ``c_0 = 0``.

        A piece from mass u to u+d above it under P, from v to v+e under P', adds to c_k

            (1-u)^k - (1-u-d)^k - e^epsilon [(1-v)^k - (1-v-e)^k].
        """
        k0, k1 = pair.k(self.y0), pair.k(self.y1)
        # Sums of positive masses have a small relative error; a width is a difference of two such sums.
        sums, off = pair.relative_rounding - 2.0 * pair.rounding, pair.relative_rounding + 1e-15
        width = np.maximum(self.y1 - self.y0 - sums * self.y1, 0.0)
        gain = _probability_sums((self.x + self.y0) * (1.0 + off), width, cap, smallest=0.0)
        cost = _probability_sums(np.minimum(pair.g(self.x) + k0, 1.0) * (1.0 - off), k1 - k0 + sums * k1, cap, smallest=_TINY)
        known = 4.0 * pair.relative_rounding + _MARGIN
        return np.asarray(gain * (1.0 - known) - math.exp(epsilon) * cost * (1.0 + known))


def worst_order(pair: DominatingPair, count: Count, epsilon: float, tolerance: float) -> ScoreOrderCut | None:
    """Return a score order of the pair with almost the largest delta under this law of K; None if no outcome counts."""
    engine = ExactLower(pair, count, tolerance=tolerance)
    stairs = engine.score_order(epsilon)
    if stairs is None:
        return None
    x, y0, y1, at = stairs.x, stairs.y[:-1], stairs.y[1:], engine.mesh.weight.at
    g, k0, k1 = pair.g(x), pair.k(y0), pair.k(y1)
    cost = (k1 - k0) * 0.5 * (at(np.minimum(g + k0, 1.0)) + at(np.minimum(g + k1, 1.0)))
    counted = (y1 - y0) * at(x + 0.5 * (y0 + y1)) > math.exp(epsilon) * cost
    if not counted.any():
        return None
    return _joined(x[counted], y0[counted], y1[counted])


def _joined(x: Floats, y0: Floats, y1: Floats) -> ScoreOrderCut:
    """Merge neighbouring pieces with the same mass above them, because their sum telescopes."""
    starts = np.flatnonzero(np.concatenate([[True], (x[1:] != x[:-1]) | (y0[1:] != y1[:-1])]))
    ends = np.append(starts[1:] - 1, len(x) - 1)
    return ScoreOrderCut(x[starts], y0[starts], y1[ends])


def _probability_sums(u: Floats, width: Floats, cap: int, smallest: float) -> Floats:
    """Return ``sum over pieces of (1-u)^k - (1-u-width)^k`` for k from 1 to cap, each term at least ``smallest``.

    The form ``(1-u)^k (1 - (1 - width/(1-u))^k)`` keeps the precision of narrow pieces. No mass lies beyond u = 1.
    """
    room = np.maximum(1.0 - u, _TINY)
    with np.errstate(divide="ignore"):
        outside = np.where(u < 1.0, np.log1p(-np.minimum(u, 1.0)), -np.inf)
        inside = np.log1p(-np.minimum(width / room, 1.0))
    k = np.arange(1.0, cap + 1.0)[:, None]
    total, size = np.zeros(cap), max(_ENTRIES // cap, 1)
    for first in range(0, len(u), size):
        part = slice(first, first + size)
        total += np.maximum(np.exp(k * outside[part]) * -np.expm1(k * inside[part]), smallest).sum(axis=1)
    return total
