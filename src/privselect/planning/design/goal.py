"""What a law of K is to achieve: checked once, used by all parts of **Design**."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import Range, check_fraction, check_number, integer_range
from privselect.counts import Finite
from privselect.counts.base import LARGEST_COUNT

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]

# Beyond these nothing is left to design, and floats run out of digits.
_MEANS, _DELTAS, _SHARES = Range(1e-12, float(LARGEST_COUNT), high_open=False), Range(1e-200, 1.0), Range(1e-12, 1.0)
MOST_TRIALS = 10_000  # a longer law would take hours
_PARTS = 10**9  # of P(K >= 1), in which a law is written
_ROUNDING = 1e-12  # of a chance, many times over


@dataclass(frozen=True, slots=True)
class DesignGoal:
    """(epsilon, delta) for the whole selection, K <= cap, E K <= mean, and as much chance as can be of a trial in the best tau."""

    epsilon: float
    delta: float
    tau: float
    cap: int
    mean: Fraction | None

    @classmethod
    def checked(cls, *, epsilon: object, delta: object, tau: object, cap: object, mean: object) -> DesignGoal:
        """Each in its range, or one clear sentence."""
        budget = None
        if mean is not None:
            check_number("mean", mean, _MEANS)
            budget = check_fraction("mean", mean)
        return cls(
            check_number("epsilon", epsilon, Range(0.0, LARGEST_EPSILON, high_open=False)),
            check_number("delta", delta, _DELTAS),
            check_number("tau", tau, _SHARES),
            int(check_number("cap", cap, integer_range(1, MOST_TRIALS))),
            budget,
        )

    @property
    def values(self) -> Floats:
        """``1 - (1-tau)^k`` for k from 1 to cap, rounded up."""
        return np.minimum(-np.expm1(np.arange(1.0, self.cap + 1.0) * math.log1p(-self.tau)) * (1.0 + _ROUNDING), 1.0)

    def chance(self, count: Count) -> float:
        """``1 - phi(1-tau) = integral_0^tau phi'(1-u) du``, rounded down: the chance that some trial falls in the best tau."""
        if isinstance(count, Finite):
            total = sum(weight for _, weight in count.pmf)
            terms = (weight / total * -math.expm1(k * math.log1p(-self.tau)) for k, weight in count.pmf)
            return math.fsum(terms) * (1.0 - _ROUNDING)
        # phi' is convex: its value in the middle of a piece is at most its mean over it.
        ends = np.concatenate([[0.0], np.geomspace(self.tau * 1e-9, self.tau, 4000)])
        middle = 0.5 * (ends[1:] + ends[:-1])
        return float(np.exp(count.log_dpgf(middle)) @ np.diff(ends)) * (1.0 - 10.0 * _ROUNDING)

    def affords_mean(self, count: Count) -> bool:
        """Whether ``E K <= mean``: exactly for a table, up to the rounding of a float for a closed form."""
        if self.mean is None:
            return True
        if isinstance(count, Finite):
            return sum(k * weight for k, weight in count.pmf) <= self.mean * sum(weight for _, weight in count.pmf)
        return count.expected() <= float(self.mean) * (1.0 + _ROUNDING)

    def as_finite(self, pmf: Floats, *, keep_one: bool = True, share_of_one: float = 0.0) -> Finite | None:
        """This law (``pmf[k] = P(K = k)``, k from 0) in whole weights, with E K <= mean exactly; None where nothing is left of it.

        ``keep_one`` gives K = 1 at least the least weight there is, or ``share_of_one`` of all that is not K = 0: with little of it the
        largest losses are hard to bound.
        """
        head = float(pmf[1:].sum())
        if not head > 0.0:
            return None
        parts = _PARTS * 10 ** max(math.floor(-math.log10(min(head, 1.0))), 0)
        weights = {k: round(p * parts) for k, p in enumerate(pmf.tolist()) if round(p * parts) > 0 and k > 0}
        if not weights:
            return None
        if keep_one:
            weights[1] = max(weights.get(1, 0), round(share_of_one * sum(weights.values())), 1)
        rest = parts - sum(weights.values())
        # What is left over belongs to K = 0, unless it is only rounding: then to the likeliest K.
        owner = 0 if rest > len(weights) else max(weights, key=lambda k: weights[k])
        weights[owner] = weights.get(owner, 0) + rest
        self._reduce_mean(weights)
        return Finite(weights) if any(weights[k] for k in weights if k) else None

    def _reduce_mean(self, weights: dict[int, int]) -> None:
        """Move weight from the largest K to the least until E K <= mean; to K = 0 where even the least is too many."""
        if self.mean is None:
            return
        excess = sum(k * weight for k, weight in weights.items()) - self.mean * sum(weights.values())
        for low in (min(weights), 0):
            for k in sorted(weights, reverse=True):
                if excess <= 0 or k <= low:
                    break
                moved = min(weights[k], math.ceil(excess / (k - low)))
                weights[k] -= moved
                weights[low] = weights.get(low, 0) + moved
                excess -= moved * (k - low)
