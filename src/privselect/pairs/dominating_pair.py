"""The discrete dominating pair (P, P'): hockey stick, trade-off functions, reversal."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privselect.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_UNIT_ROUNDOFF = 2.0**-53
_SUM_TOLERANCE = 1e-9  # a pair whose masses are further from 1 than this was not meant to be one
_LARGEST_LOG = 700.0  # of a float, with room
_LOSS_ROUNDING = 4e-13  # of log(p/q), for any two positive floats


@dataclass(frozen=True, eq=False)
class DominatingPair:
    """Two laws on finitely many outcomes, sorted by ascending loss ``log(p/q)``.

    ``p`` and ``q`` are the masses of the outcomes that both laws can give, ``p_only`` the mass of the first law that
    the second cannot give (infinite loss), ``q_only`` the mass of the second that the first cannot give.

    Sums run over positive terms only, so each is right to a relative ``len(p) * 2^-53``; :meth:`hockey_stick` can add
    that allowance on either side. Masses that are known less well, to a relative ``rounding``, have it added to the allowance.
    """

    p: Floats
    q: Floats
    p_only: float = 0.0
    q_only: float = 0.0
    rounding: float = 0.0

    def __post_init__(self) -> None:
        # A mass that is no number would compare as small, and pass for privacy.
        for name in ("p", "q"):
            masses = getattr(self, name)
            if not (np.all(masses > 0.0) and np.all(masses < np.inf)):
                raise ParameterError(f"`{name}` must hold positive masses, got {masses[~((masses > 0.0) & (masses < np.inf))][0]!r}")
        for name in ("p_only", "q_only"):
            if not 0.0 <= getattr(self, name) <= 1.0 + _SUM_TOLERANCE:
                raise ParameterError(f"`{name}` must be in [0, 1], got {getattr(self, name)!r}")

    @classmethod
    def from_masses(cls, p: ArrayLike, q: ArrayLike) -> DominatingPair:
        """The pair of two probability vectors over the same outcomes, in any order, zeros allowed.

        Mass that is missing from a sum of 1, beyond rounding, is taken as an outcome that the other law cannot give.
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
        # Outcomes sorted by another route may be out of order in the last digit.
        return np.maximum.accumulate(np.log(self.p) - np.log(self.q))

    @cached_property
    def reverse(self) -> DominatingPair:
        """The pair with its two laws exchanged."""
        return DominatingPair(self.q[::-1], self.p[::-1], self.q_only, self.p_only, self.rounding)

    @cached_property
    def relative_rounding(self) -> float:
        """Bound on the relative rounding of any of this pair's sums, and of the masses themselves."""
        # An error of all masses moves both terms of a difference.
        return (4 * len(self.p) + 64) * _UNIT_ROUNDOFF + 2.0 * self.rounding

    @cached_property
    def _tails(self) -> tuple[Floats, Floats]:
        p_tail = np.concatenate([np.cumsum(self.p[::-1])[::-1], [0.0]])
        q_tail = np.concatenate([np.cumsum(self.q[::-1])[::-1], [0.0]])
        return p_tail, q_tail

    def hockey_stick(self, epsilon: ArrayLike, *, side: int = 0) -> Floats:
        """``sum (p - e^epsilon q)_+`` at every real epsilon; ``side`` +1 or -1 rounds it outward, up or down."""
        eps = np.asarray(epsilon, dtype=np.float64)
        p_tail, q_tail = self._tails
        first = np.searchsorted(self.losses, eps, side="right")
        p_above, q_above = p_tail[first], q_tail[first]
        # Where no outcome counts, e^epsilon may overflow: the product is 0, not inf * 0. Losses of a denormal mass reach 745.
        counted = np.where(q_above > 0, eps, 0.0)
        value = (
            p_above - np.exp(np.minimum(counted, _LARGEST_LOG)) * q_above * np.exp(np.maximum(counted - _LARGEST_LOG, 0.0)) + self.p_only
        )
        if side:
            # An outcome whose loss is epsilon to within rounding may fall on either side.
            near = np.searchsorted(self.losses, eps - _LOSS_ROUNDING, side="right")
            value = value + side * (self.relative_rounding + _LOSS_ROUNDING) * (p_tail[near] + self.p_only)
            # The least floats have no room for that share of themselves.
            value = np.where(value > 0.0, np.nextafter(value, side), value)
        return np.asarray(np.clip(value, 0.0, 1.0))

    @cached_property
    def high_nodes(self) -> tuple[Floats, Floats]:
        """Vertices ``(y, k(y))`` of k, from the outcomes of highest loss down; the first cell is the infinite loss."""
        y = np.cumsum(np.concatenate([[0.0, self.p_only], self.p[::-1]]))
        k = np.cumsum(np.concatenate([[0.0, 0.0], self.q[::-1]]))
        return y, k

    @cached_property
    def low_nodes(self) -> tuple[Floats, Floats]:
        """Vertices ``(x, g(x))`` of g, from the outcomes of lowest loss up."""
        x = np.cumsum(np.concatenate([[0.0], self.p]))
        g = np.cumsum(np.concatenate([[self.q_only], self.q]))
        return x, g

    def g(self, x: ArrayLike) -> Floats:
        """``max{P'(T) : P(T) = x}``: concave, made of the outcomes of lowest loss."""
        return np.minimum(np.interp(np.asarray(x, dtype=np.float64), *self.low_nodes), 1.0)

    def k(self, y: ArrayLike) -> Floats:
        """``min{P'(T) : P(T) = y} = 1 - g(1-y)``: convex, made of the outcomes of highest loss."""
        return np.minimum(np.interp(np.asarray(y, dtype=np.float64), *self.high_nodes), 1.0)

    @cached_property
    def _above_losses(self) -> Floats:
        return self.hockey_stick(self.losses, side=1)

    @cached_property
    def _below_losses(self) -> Floats:
        return self.hockey_stick(self.losses, side=-1)

    def epsilon_at(self, delta: ArrayLike, *, side: int) -> Floats:
        """The least epsilon >= 0 with ``hockey_stick(epsilon, side=side) <= delta``; infinite where none is.

        Between two losses the hockey stick is linear in e^epsilon, so no search is needed.
        """
        wanted = np.asarray(delta, dtype=np.float64)
        p_tail, q_tail = self._tails
        # Values fall with the loss; the first loss at which they are small enough ends the segment to solve on.
        at_losses = self._above_losses if side > 0 else self._below_losses
        first = np.searchsorted(-at_losses, -wanted, side="left")
        p_above = (p_tail[first] + self.p_only) * (1.0 + side * (self.relative_rounding + _LOSS_ROUNDING))
        with np.errstate(divide="ignore", invalid="ignore"):
            epsilon = np.log(np.maximum(p_above - wanted, 0.0)) - np.log(q_tail[first])
        # Past every loss only the infinite one is left, and the rounding of the last: that is 0 from the last loss on.
        end = np.append(self.losses, self.losses[-1] + _LOSS_ROUNDING if len(self.losses) else 0.0)
        beyond = np.where(p_above <= wanted, end[-1], np.inf)
        # Rounding may put the solution beyond the segment's end, where the value is known to be small enough, or before its start,
        # where it is known to be too large: there the outcome of that very loss may still count.
        start = np.append(-np.inf, self.losses)[first] + (_LOSS_ROUNDING if side > 0 else 0.0)
        epsilon = np.where(first < len(self.losses), np.minimum(np.maximum(epsilon, start), end[first]), beyond)
        return np.asarray(np.maximum(epsilon, 0.0))
