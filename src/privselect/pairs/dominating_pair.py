"""Discrete dominating pair (P, P'): hockey stick, trade-off functions, Renyi divergence, reversal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import Range, check_array
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_UNIT_ROUNDOFF = 2.0**-53
_SUM_TOLERANCE = 1e-9  # a sum of masses further from 1 than this is an input error
_LARGEST_LOG = 700.0  # exp of this is a float, with room to spare
LOSS_ROUNDING = 4e-13  # of log(p/q), for any two positive floats


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two distributions P and P' on finitely many outcomes, sorted by ascending loss ``log(p/q)``.

    ``p`` and ``q`` are the masses of outcomes that are possible under both. ``p_only`` is the mass of P that is impossible under P'
    (infinite loss), ``q_only`` the mass of P' that is impossible under P.

    Sums have positive terms only, so their relative error is at most ``len(p) * 2^-53``. :meth:`hockey_stick` can add this error
    on either side. ``rounding`` is the relative error of the masses themselves, and is added to it.
    """

    p: Floats
    q: Floats
    p_only: float = 0.0
    q_only: float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        # A NaN mass would compare as small, which would look like privacy.
        for name in ("p", "q"):
            masses = getattr(self, name)
            if not (np.all(masses > 0.0) and np.all(masses < np.inf)):
                raise ParameterError(f"`{name}` must hold positive masses, got {masses[~((masses > 0.0) & (masses < np.inf))][0]!r}")
        for name in ("p_only", "q_only"):
            if not 0.0 <= getattr(self, name) <= 1.0 + _SUM_TOLERANCE:
                raise ParameterError(f"`{name}` must be in [0, 1], got {getattr(self, name)!r}")

    @classmethod
    def from_masses(cls, p: ArrayLike, q: ArrayLike) -> DominatingPair:
        """Return the pair of two probability vectors over the same outcomes, in any order, zeros allowed.

        Mass missing from a sum of 1, beyond rounding, counts as an outcome that is impossible under the other distribution.
        """
        first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
        if first.ndim != 1 or first.shape != second.shape:
            raise ParameterError(f"`p` and `q` must be two vectors of one length, got shapes {first.shape} and {second.shape}")
        for name, masses in (("p", first), ("q", second)):
            if not np.all(masses >= 0) or abs(masses.sum() - 1.0) > _SUM_TOLERANCE:
                raise ParameterError(f"`{name}` must be non-negative and sum to 1, got a sum of {masses.sum()!r}")
        both = (first > 0) & (second > 0)
        p_both, q_both = first[both], second[both]
        order = np.argsort(np.log(p_both) - np.log(q_both), kind="stable")
        missing_p, missing_q = (max(1.0 - float(masses.sum()) - 1e-15 * len(masses), 0.0) for masses in (first, second))
        p_only, q_only = float(first[second == 0].sum()) + missing_p, float(second[first == 0].sum()) + missing_q
        return cls(p_both[order], q_both[order], p_only, q_only)

    @cached_property
    def losses(self) -> Floats:
        """``log(p/q)`` of each outcome, ascending."""
        # Outcomes sorted by a differently rounded loss may be out of order in the last digit.
        return np.maximum.accumulate(np.log(self.p) - np.log(self.q))

    @cached_property
    def reverse(self) -> DominatingPair:
        """The pair with its two distributions exchanged."""
        return DominatingPair(self.q[::-1], self.p[::-1], self.q_only, self.p_only, self.rounding)

    @cached_property
    def relative_rounding(self) -> float:
        """Bound on the relative error of the masses and of any sum of them."""
        # An error of the masses changes both terms of a difference.
        return (4 * len(self.p) + 64) * _UNIT_ROUNDOFF + 2.0 * self.rounding

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        p_tail = np.concatenate([np.cumsum(self.p[::-1])[::-1], [0.0]])
        q_tail = np.concatenate([np.cumsum(self.q[::-1])[::-1], [0.0]])
        return p_tail, q_tail

    def hockey_stick(self, epsilon: ArrayLike, *, side: int = 0) -> Floats:
        """Return ``sum (p - e^epsilon q)_+`` for every real epsilon; ``side`` 1 rounds it up, -1 down."""
        eps = np.asarray(epsilon, dtype=np.float64)
        p_tail, q_tail = self._tails
        first = np.searchsorted(self.losses, eps, side="right")
        p_above, q_above = p_tail[first], q_tail[first]
        # If no outcome counts, e^epsilon may overflow: the product must be 0, not inf * 0. Losses of subnormal masses reach 745.
        counted = np.where(q_above > 0, eps, 0.0)
        value = (
            p_above - np.exp(np.minimum(counted, _LARGEST_LOG)) * q_above * np.exp(np.maximum(counted - _LARGEST_LOG, 0.0)) + self.p_only
        )
        if side:
            # An outcome whose loss equals epsilon up to rounding may be counted or not.
            near = np.searchsorted(self.losses, eps - LOSS_ROUNDING, side="right")
            value = value + side * (self.relative_rounding + LOSS_ROUNDING) * (p_tail[near] + self.p_only)
            # For the smallest floats that relative error rounds to 0.
            value = np.where(value > 0.0, np.nextafter(value, side), value)
        return np.asarray(np.clip(value, 0.0, 1.0))

    @cached_property
    def high_nodes(self) -> tuple[Floats, Floats]:
        """Vertices ``(y, k(y))`` of k, by descending loss; the first cell is the infinite loss."""
        y = np.cumsum(np.concatenate([[0.0, self.p_only], self.p[::-1]]))
        k = np.cumsum(np.concatenate([[0.0, 0.0], self.q[::-1]]))
        return y, k

    @cached_property
    def low_nodes(self) -> tuple[Floats, Floats]:
        """Vertices ``(x, g(x))`` of g, by ascending loss."""
        x = np.cumsum(np.concatenate([[0.0], self.p]))
        g = np.cumsum(np.concatenate([[self.q_only], self.q]))
        return x, g

    def g(self, x: ArrayLike) -> Floats:
        """Return ``max{P'(T) : P(T) = x}``: concave, attained by the outcomes of lowest loss."""
        return np.minimum(np.interp(np.asarray(x, dtype=np.float64), *self.low_nodes), 1.0)

    def k(self, y: ArrayLike) -> Floats:
        """Return ``min{P'(T) : P(T) = y} = 1 - g(1-y)``: convex, attained by the outcomes of highest loss."""
        return np.minimum(np.interp(np.asarray(y, dtype=np.float64), *self.high_nodes), 1.0)

    @cached_property
    def _above_losses(self) -> Floats:
        return self.hockey_stick(self.losses, side=1)

    @cached_property
    def _below_losses(self) -> Floats:
        return self.hockey_stick(self.losses, side=-1)

    def epsilon_at(self, delta: ArrayLike, *, side: int) -> Floats:
        """Return the smallest epsilon >= 0 with ``hockey_stick(epsilon, side=side) <= delta``, or infinity if there is none.

        Between two losses the hockey stick is linear in e^epsilon, so no search is needed.
        """
        target = np.asarray(delta, dtype=np.float64)
        p_tail, q_tail = self._tails
        # Values fall with the loss: the segment to solve on ends at the first loss with a small enough value.
        at_losses = self._above_losses if side > 0 else self._below_losses
        first = np.searchsorted(-at_losses, -target, side="left")
        p_above = (p_tail[first] + self.p_only) * (1.0 + side * (self.relative_rounding + LOSS_ROUNDING))
        with np.errstate(divide="ignore", invalid="ignore"):
            epsilon = np.log(np.maximum(p_above - target, 0.0)) - np.log(q_tail[first])
        # Past every finite loss only the infinite one counts, plus the rounding of the last finite one.
        end = np.append(self.losses, self.losses[-1] + LOSS_ROUNDING if len(self.losses) else 0.0)
        beyond = np.where(p_above <= target, end[-1], np.inf)
        # Rounding may put the solution past the end of the segment, whose value is known to be small enough, or before its start,
        # whose value is known to be too large: the outcome at that loss may still count.
        start = np.append(-np.inf, self.losses)[first] + (LOSS_ROUNDING if side > 0 else 0.0)
        epsilon = np.where(first < len(self.losses), np.minimum(np.maximum(epsilon, start), end[first]), beyond)
        return np.asarray(np.maximum(epsilon, 0.0))


@dataclass(frozen=True, slots=True, eq=False)
class Bracket:
    """Bounds on one ordered pair of a mechanism: ``upper`` dominates it, and it dominates each of ``lowers``.

    ``direction`` is the order of the neighbours: "remove", "add", or "both" if the two profiles are equal.
    If ``lowers`` is empty, no lower bound is proved.
    """

    upper: DominatingPair
    lowers: tuple[DominatingPair, ...]
    direction: str = "both"

    @property
    def reverse(self) -> Bracket:
        """Bracket of the reverse order of the neighbours."""
        names = {"remove": "add", "add": "remove"}
        return Bracket(self.upper.reverse, tuple(low.reverse for low in self.lowers), names.get(self.direction, self.direction))


_ORDERS = Range(1.0, np.inf, low_open=True)
_CHUNK_SIZE = 2_000_000  # floats in memory at once


def renyi_of_pair(pair: DominatingPair, alpha: ArrayLike) -> Floats:
    """Return ``D_alpha(P||P') = log(sum p^alpha q^(1-alpha))/(alpha-1)``, rounded up; infinite if ``p_only`` is positive."""
    orders = check_array("alpha", alpha, _ORDERS)
    if pair.p_only > 0.0:
        return np.full(orders.shape, np.inf)
    flat = orders.reshape(-1)
    log_p, losses = np.log(pair.p), pair.losses
    size = max(_CHUNK_SIZE // len(log_p), 1)
    sums = np.empty(len(flat))
    for start in range(0, len(flat), size):
        power = flat[start : start + size, None] - 1.0
        terms = log_p + power * losses
        top = terms.max(axis=1)
        with np.errstate(under="ignore"):
            sums[start : start + size] = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    # Masses and losses have the pair's rounding, exponents a few units of their largest term (|log p| < 746).
    rounding = (2.0 * flat + 1.0) * pair.relative_rounding + 1e-12 * flat
    return np.maximum((sums + rounding) / (flat - 1.0), 0.0).reshape(orders.shape)
