"""One ordered pair of neighbours, one law of K: the least proved upper and the greatest proved lower bound."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.crossing import Crossing
from privselect.selection.exact import ExactLower, ExactUpper
from privselect.selection.ratio import log_ratio
from privselect.selection.search import LARGEST_EPSILON

if TYPE_CHECKING:
    from privselect.counts.base import Count
    from privselect.pairs import Bracket, DominatingPair


class Accountant:
    """Bounds on the selection's delta and epsilon, all for epsilon >= 0.

    ``composed`` are pairs that dominate the release of all trials; given where K is bounded, they bound the selection too.
    """

    def __init__(self, bracket: Bracket, count: Count, composed: DominatingPair | None = None) -> None:
        self.bracket, self.count, self.composed = bracket, count, composed
        self._mean = count.expected()

    @cached_property
    def _log_ratio(self) -> float:
        return log_ratio(self.bracket.upper, self.count)

    # The engines carry a mesh that adapts as it is used. Each question starts from a fresh one, so that an answer never
    # depends on what was asked before.

    def upper(self, epsilon: float) -> float:
        """The least of Exact, Ratio and, for bounded K, plain composition."""
        return self._least(ExactUpper(self.bracket.upper, self.count), min(epsilon, LARGEST_EPSILON))

    def lower(self, epsilon: float) -> float:
        """The greatest over the dominated pairs at hand; 0 where there is none."""
        if epsilon > LARGEST_EPSILON:
            return 0.0
        return max((ExactLower(pair, self.count).delta(epsilon) for pair in self.bracket.lowers), default=0.0)

    def epsilons(self, delta: float, at_least: float = 0.0) -> tuple[float, float]:
        """(lower, upper): an epsilon at which some mechanism under the pair still exceeds delta, and one that is safe.

        The search for the upper one stops at ``at_least`` where that is safe already.
        """
        exact = ExactUpper(self.bracket.upper, self.count)
        upper = self._safe_epsilon(exact, delta, at_least)
        engines = [ExactLower(pair, self.count, mesh_of=exact) for pair in self.bracket.lowers]
        if not engines or upper == 0.0:
            return 0.0, upper

        def bound(epsilon: float) -> float:
            return max(engine.delta(epsilon) for engine in engines)

        if math.isinf(upper) and bound(LARGEST_EPSILON) > delta:
            return math.inf, upper  # both ends are beyond what is told apart
        near = min(upper, LARGEST_EPSILON) * (1.0 + 1e-9)
        return Crossing(bound, delta, self._slope(delta)).from_below(near * (1.0 - 8e-5), near), upper

    def _safe_epsilon(self, exact: ExactUpper, delta: float, at_least: float) -> float:
        ratio = self._ratio_epsilon(delta)
        if at_least > 0.0 and (ratio <= at_least or self._least(exact, at_least) <= delta):
            return at_least
        if self.composed is not None and (released := float(self.composed.epsilon_at(delta, side=1))) < ratio:
            # Releasing every trial is often the worst case itself: look only a little below it before a full search.
            if self._least(exact, 0.999 * released) > delta:
                return released
            ratio = 0.999 * released
        slope, guess = self._slope(delta), 0.97 * min(ratio, LARGEST_EPSILON)
        for _ in range(2):
            rough = exact.field.rough_delta(guess)
            if rough > 0.0 and math.isfinite(ratio):
                step = guess + math.log(rough / delta) / slope
                guess = min(max(step, 0.5 * guess), ratio)
        return Crossing(lambda e: self._least(exact, e), delta, slope).from_above(guess, at_least, ratio)

    def _least(self, exact: ExactUpper, epsilon: float) -> float:
        pair = self.bracket.upper
        bounds = [exact.delta(epsilon)]
        bounds.append(self._mean * float(pair.hockey_stick(epsilon - self._log_ratio, side=1)) * (1.0 + 1e-12))
        if self.composed is not None:
            bounds.append(float(self.composed.hockey_stick(epsilon, side=1)))
        least = min(*bounds, 1.0)
        if self.count.sampling_error > 0.0:
            # A law sampled within total variation t of its name costs (1 + e^epsilon) t more.
            least = min(least + (1.0 + math.exp(min(epsilon, LARGEST_EPSILON))) * self.count.sampling_error, 1.0)
        return least

    def _ratio_epsilon(self, delta: float) -> float:
        wanted = delta / self._mean * (1.0 - 1e-12)
        base = float(self.bracket.upper.epsilon_at(wanted, side=1)) if wanted < 1.0 else 0.0
        return base + self._log_ratio if base > 0.0 and self.count.sampling_error == 0.0 else math.inf

    def _slope(self, delta: float) -> float:
        """Roughly ``-d log(delta) / d epsilon`` where the base reaches delta/m: a first step for the search."""
        pair = self.bracket.upper
        base = float(pair.epsilon_at(min(delta / self._mean, 0.5), side=1))
        if not 0.0 < base < LARGEST_EPSILON:
            return 5.0
        step = 0.02 * base
        here, there = pair.hockey_stick(np.array([base - step, base]))
        return float(np.clip(math.log(max(here, 1e-300) / max(there, 1e-300)) / step, 0.2, 1e4)) if there > 0.0 else 20.0
