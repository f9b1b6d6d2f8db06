"""The linear programme of **Design**: the law of K with the most chance under the cuts known so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LARGEST = 1e7  # times what counts against it: a larger coefficient says hardly more, and the solver keeps its digits
_SIZE = 1e4  # of the coefficients that the solver sees
_SOLVER = 1e-10  # the least tolerance that it accepts
_MOST_ROWS = 400


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """A best law of K for some cuts (``pmf[k] = P(K = k)``), and a proved bound on the chance of every law that obeys them."""

    pmf: Floats
    bound: float


class Programme:
    """Maximise ``sum_k P(k) value_k`` over laws on {0, ..., cap} with ``E K <= mean`` and ``sum_k P(k) row_k <= 1`` for every row.

    ``share`` is about the largest possible P(K >= 1): where it is small, the solver works with P(K = k)/share.
    """

    def __init__(self, values: Floats, mean: float | None, share: float) -> None:
        self.values, self.mean, self.share = values, mean, share
        self._k = np.arange(1.0, len(values) + 1.0)
        self._rows: list[Floats] = []

    @property
    def rows(self) -> Floats:
        """One cut a row, for k from 1 to cap, in units of delta."""
        return np.array(self._rows).reshape(-1, len(self.values))

    def add(self, row: Floats) -> None:
        """One cut more. For P >= 0 a smaller coefficient only weakens it."""
        self._rows.append(np.minimum(row, _LARGEST * max(1.0 / self.share, -float(row.min()))))

    def excess(self, pmf: Floats) -> float:
        """The greatest of the cuts at this law: at least about what it leaks, in units of delta."""
        return float((self.rows @ pmf[1:]).max(initial=0.0))

    def solve(self, limit: float = 1.0) -> Solution | None:
        """The best law with every cut at most ``limit``; its ``bound`` is for a limit of 1. None where the solver finds nothing."""
        from scipy.optimize import linprog

        rows = self.rows * self.share
        sizes = np.maximum(np.abs(rows).max(axis=1, initial=0.0) / _SIZE, 1.0)
        rows = np.vstack([rows / sizes[:, None], np.full_like(self._k, self.share)])  # the rest is P(K = 0)
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
            options={"primal_feasibility_tolerance": _SOLVER, "dual_feasibility_tolerance": _SOLVER},
        )
        if found.status != 0 or found.x is None:
            return None
        p = np.maximum(found.x, 0.0) * self.share
        p /= max(float(p.sum()), 1.0)
        multipliers = np.maximum(-found.ineqlin.marginals, 0.0) * (self.values.max() * self.share)
        cuts, budget = multipliers[: len(sizes)] / sizes, multipliers[len(sizes) + 1 :]
        bound = self.bound(cuts, 0.0 if self.mean is None else float(budget[0]) / self.mean)
        self._forget(cuts > 0.0)
        return Solution(np.concatenate([[max(1.0 - float(p.sum()), 0.0)], p]), bound)

    def bound(self, cuts: Floats, budget: float) -> float:
        """Weak duality by hand, rounded up: it holds for any multipliers >= 0, whatever the solver did.

        ``sum_k P(k) value_k <= sum_i cut_i + budget * mean + max(0, max_k [value_k - sum_i cut_i row_ik - budget k])``.
        """
        rows, mean = self.rows, self.mean
        if mean is None:
            mean = budget = 0.0  # no budget, no multiplier
        left = self.values - cuts @ rows - budget * self._k
        total = float(cuts.sum()) + budget * mean
        # Every sum is right to a few units, and to one unit for each term, of the sizes that went into it.
        sizes = self.values + cuts @ np.abs(rows) + budget * self._k
        rounding = (len(cuts) + 16) * 2.0**-52
        return float(max((left + rounding * sizes).max(), 0.0) + total * (1.0 + rounding)) * (1.0 + 1e-15)

    def _forget(self, active: NDArray[np.bool_]) -> None:
        """The oldest cuts that hold nothing back, where there are too many."""
        surplus = len(self._rows) - _MOST_ROWS
        if surplus > 0:
            idle = set(np.flatnonzero(~active)[:surplus].tolist())
            self._rows = [row for i, row in enumerate(self._rows) if i not in idle]
