"""The goal of a design: budget, cap and the fraction of good candidates, validated once."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
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

# Outside these ranges no useful law of K exists, and floats lose precision.
_MEANS, _DELTAS, _FRACTIONS = Range(1e-12, float(LARGEST_COUNT), high_open=False), Range(1e-200, 1.0), Range(1e-12, 1.0)
MOST_TRIALS = 10_000  # a search with a larger cap would take hours
_PARTS = 10**9  # of P(K >= 1): the resolution of the weights of a law of K
_ROUNDING = 1e-12  # many times the rounding error of a probability


@dataclass(frozen=True, slots=True)
class DesignGoal:
    """Maximise the probability of a trial in the best fraction tau, with (epsilon, delta)-DP, K <= cap and E K <= mean."""

    epsilon: float
    delta: float
    tau: float
    cap: int
    mean: Fraction | None

    @classmethod
    def validated(cls, *, epsilon: object, delta: object, tau: object, cap: object, mean: object) -> DesignGoal:
        """Return a goal from unchecked arguments."""
        budget = None
        if mean is not None:
            check_number("mean", mean, _MEANS)
            budget = check_fraction("mean", mean)
        return cls(
            check_number("epsilon", epsilon, Range(0.0, LARGEST_EPSILON, high_open=False)),
            check_number("delta", delta, _DELTAS),
            check_number("tau", tau, _FRACTIONS),
            int(check_number("cap", cap, integer_range(1, MOST_TRIALS))),
            budget,
        )

    def as_dict(self) -> dict[str, object]:
        """Return JSON data."""
        return {**asdict(self), "mean": None if self.mean is None else float(self.mean)}

    def limits(self, separator: str) -> str:
        """Return the limits on K as text."""
        return f"K <= {self.cap}" + ("" if self.mean is None else f"{separator}E K <= {float(self.mean):g}")

    @property
    def values(self) -> Floats:
        """``1 - (1-tau)^k`` for k from 1 to cap, rounded up."""
        return np.minimum(-np.expm1(np.arange(1.0, self.cap + 1.0) * math.log1p(-self.tau)) * (1.0 + _ROUNDING), 1.0)

    def success_probability(self, count: Count) -> float:
        """Return ``1 - phi(1-tau) = integral_0^tau phi'(1-u) du``, rounded down: the probability of a trial in the best tau."""
        if isinstance(count, Finite):
            total = sum(weight for _, weight in count.pmf)
            terms = (weight / total * -math.expm1(k * math.log1p(-self.tau)) for k, weight in count.pmf)
            return math.fsum(terms) * (1.0 - _ROUNDING)
        # phi' is convex, so its value at the middle of a panel is at most its average.
        edges = np.concatenate([[0.0], np.geomspace(self.tau * 1e-9, self.tau, 4000)])
        middle = 0.5 * (edges[1:] + edges[:-1])
        return float(np.exp(count.log_dpgf(middle)) @ np.diff(edges)) * (1.0 - 10.0 * _ROUNDING)

    def meets_mean(self, count: Count) -> bool:
        """Return whether ``E K <= mean``: exactly for a table, up to float rounding for a closed form."""
        if self.mean is None:
            return True
        if isinstance(count, Finite):
            return sum(k * weight for k, weight in count.pmf) <= self.mean * sum(weight for _, weight in count.pmf)
        return count.expected() <= float(self.mean) * (1.0 + _ROUNDING)

    def as_finite(self, pmf: Floats, *, keep_one: bool = True, share_of_one: float = 0.0) -> Finite | None:
        """Return ``pmf[k] = P(K = k)`` as a law of K with integer weights and exactly E K <= mean; None if only K = 0 is left.

        With ``keep_one``, K = 1 gets at least weight 1, and at least the fraction ``share_of_one`` of P(K >= 1): with less weight the
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
        # The rest belongs to K = 0; a rest from rounding goes to the most likely K.
        owner = 0 if rest > len(weights) else max(weights, key=lambda k: weights[k])
        weights[owner] = weights.get(owner, 0) + rest
        self._reduce_mean(weights)
        return Finite(weights) if any(weights[k] for k in weights if k) else None

    def _reduce_mean(self, weights: dict[int, int]) -> None:
        """Move weight from the largest K to the smallest until E K <= mean, and to K = 0 if necessary."""
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
