r"""The product of two pairs: two mechanisms on the same data, both outputs released, without a common lattice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON, solve_epsilon
from privselect.pairs.dominating_pair import LOSS_ROUNDING, DominatingPair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_UNIT_ROUNDOFF = 2.0**-53
_SMALLEST_FLOAT = 2.0**-1074
_TOLERANCE = 1e-8  # relative, of an epsilon
_LONGEST_RETREAT = 0.1


class PairProduct:
    r"""Bounds on the hockey stick of two mechanisms together, rounded up (``side`` 1) or down (-1), from a pair of each.

    Claim: if each pair dominates its mechanism, then ``delta(e) <= sum_j p_j P(e - l_j) - e^e sum_j q_j Q(e - l_j)`` plus the infinite
    losses, where (p_j, q_j) are the outcomes of one pair, l_j their losses, and P(t), Q(t) the masses of the other pair on losses above
    t. If each mechanism dominates its pair, the right-hand side is a lower bound.

    Holds for every real epsilon when the pair of the second mechanism is valid for every output of the first. Label: **Product**.
    """

    def __init__(self, first: DominatingPair, second: DominatingPair, *, side: int) -> None:
        # Search in the pair with fewer outcomes, and sum over the other one.
        few, many = sorted((first, second), key=lambda pair: len(pair.p))
        self._p, self._q, self._losses = many.p, many.q, many.losses
        self._searched = few.losses
        self._p_above, self._q_above = (np.append(np.cumsum(masses[::-1])[::-1], 0.0) for masses in (few.p, few.q))
        mass, other_mass = float(many.p.sum()), float(self._p_above[0])
        self._infinite = few.p_only * mass + many.p_only * (other_mass + few.p_only)
        self._side = side
        # Both pairs stand for ones within their rounding. The sums have an error of some units for each term, and joint outcomes with a
        # loss within the rounding of both losses may be counted or not.
        terms = len(many.p) + len(few.p) + 64
        self._rounding = first.relative_rounding + second.relative_rounding + 4.0 * terms * _UNIT_ROUNDOFF + 4.0 * LOSS_ROUNDING
        self._underflow = 4.0 * terms * _SMALLEST_FLOAT

    def delta(self, epsilon: float) -> float:
        """Return the bound on delta at one real epsilon."""
        if epsilon > LARGEST_EPSILON:
            if self._side < 0:
                return max(self._infinite * (1.0 - self._rounding), 0.0)
            epsilon = LARGEST_EPSILON
        targets, ratio = epsilon - self._losses, float(np.exp(epsilon))
        first = np.searchsorted(self._searched, targets, side="right")
        near = np.searchsorted(self._searched, targets - 4.0 * LOSS_ROUNDING, side="right")
        with np.errstate(under="ignore"):
            counted = float(self._p @ self._p_above[first]) - ratio * float(self._q @ self._q_above[first])
            margin = self._rounding * (float(self._p @ self._p_above[near]) + self._infinite) + (1.0 + ratio) * self._underflow
        value = counted + self._infinite + self._side * margin
        # The hockey stick of any two distributions is at least 1 - e^epsilon, but the masses of a lower pair may sum to less than 1.
        return float(min(max(value, 0.0), 1.0))

    def hockey_stick(self, epsilon: ArrayLike) -> Floats:
        """Return :meth:`delta` at many epsilons."""
        eps = np.asarray(epsilon, dtype=np.float64)
        return np.array([self.delta(value) for value in eps.ravel().tolist()]).reshape(eps.shape)

    def epsilon_at(self, delta: float) -> float:
        """Return an epsilon >= 0 at which the upper bound is at most delta, or up to which the lower bound exceeds delta."""
        found = solve_epsilon(self.delta, delta, tolerance=_TOLERANCE)
        if self._side > 0 or found == 0.0:
            return found
        if np.isinf(found):
            return float(np.inf) if self.delta(np.inf) > delta else LARGEST_EPSILON
        retreat = 2.0 * _TOLERANCE
        while retreat < _LONGEST_RETREAT:
            if self.delta(found * (1.0 - retreat)) > delta:
                return found * (1.0 - retreat)
            retreat *= 4.0
        return 0.0
