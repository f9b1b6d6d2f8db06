"""One ordered pair of neighbours, one law of K: the least proved upper and the greatest proved lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.exact.bracketed_secant import Crossing
from privselect.selection.exact.engine import ExactLower, ExactUpper
from privselect.selection.exact.mesh import TOLERANCE
from privselect.selection.safe_search import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts.base import Count
    from privselect.pairs import Bracket, DominatingPair


_ACCURACY = 4e-5  # asked of epsilon, relative
_LOOSEST = 0.1  # in delta
_CLOSE = 0.2  # of the tolerance: an epsilon whose delta is this near the asked one is good enough
_WIDE = 4e-4  # a gap, relative, that a loose tolerance was not meant to leave
_USUAL_GAP = 2.3  # between the two bounds on delta, in tolerances
_TRIES = 6  # cheap estimates before the search


@dataclass(frozen=True, slots=True)
class _Start:
    """About where a bound crosses delta, and ``-d log(bound)/d epsilon`` there: where a search begins, and how finely it must look."""

    epsilon: float
    slope: float

    @property
    def tolerance(self) -> float:
        """Relative, in delta. Where delta falls steeply, a looser delta is the same epsilon."""
        return float(np.clip(_ACCURACY * self.slope * self.epsilon, TOLERANCE, _LOOSEST))


class Accountant:
    """Bounds on the selection's delta and epsilon, all for epsilon >= 0.

    ``composed`` are pairs that dominate the release of all trials; given where K is bounded, they bound the selection too.
    """

    def __init__(self, bracket: Bracket, count: Count, composed: DominatingPair | None = None) -> None:
        self.bracket, self.count, self.composed = bracket, count, composed
        self._mean = count.expected()

    # The engines carry a mesh that adapts as it is used. Each question starts from a fresh one, so that an answer never
    # depends on what was asked before.

    def upper(self, epsilon: float) -> float:
        """The least of Exact, Ratio and, for bounded K, plain composition."""
        return self.curve()(epsilon)

    def curve(self) -> Callable[[float], float]:
        """The same as a function to be asked again and again, at epsilons in ascending order: neighbours share a mesh."""
        exact = ExactUpper(self.bracket.upper, self.count)
        return lambda epsilon: self._least(exact, min(epsilon, LARGEST_EPSILON))

    def is_safe(self, epsilon: float, delta: float) -> bool:
        """Whether ``upper(epsilon) <= delta``: a coarse mesh, whose bound holds too, is asked first."""
        coarse = ExactUpper(self.bracket.upper, self.count, tolerance=_LOOSEST)
        return self._least(coarse, min(epsilon, LARGEST_EPSILON)) <= delta or self.upper(epsilon) <= delta

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
        high = self._known_safe(exact, delta)
        start = self._start(exact, delta, high)
        exact.field.tolerance = start.tolerance if self.bracket.lowers else TOLERANCE
        lower, upper = self._interval(exact, delta, at_least, high, start)
        if exact.field.tolerance > TOLERANCE and upper > max(lower * (1.0 + _WIDE), at_least):
            # The slope was misjudged: once more with all care.
            exact = ExactUpper(self.bracket.upper, self.count)
            lower, upper = self._interval(exact, delta, at_least, high, start)
        return lower, upper

    def _interval(self, exact: ExactUpper, delta: float, at_least: float, high: float, start: _Start) -> tuple[float, float]:
        upper, close = self._safe_epsilon(exact, delta, at_least, high, start), _CLOSE * exact.field.tolerance
        exact.field.forget()  # from here on only the mesh is used, and the lower bounds keep as much
        engines = [ExactLower(pair, self.count, mesh_of=exact) for pair in self.bracket.lowers]
        if not engines or upper == 0.0:
            return 0.0, upper

        def bound(epsilon: float) -> float:
            return max(engine.delta(epsilon) for engine in engines)

        if math.isinf(upper):
            if max(engine.leak() for engine in engines) > delta:
                return math.inf, upper
            if bound(LARGEST_EPSILON) > delta:
                return LARGEST_EPSILON, upper  # what lies further up is not told apart
        near = min(upper, LARGEST_EPSILON) * (1.0 + 1e-9)
        if math.isinf(upper):
            # Nothing is known from above; but no order of a dominated pair leaks more than Ratio allows that pair.
            near = min(near, max(ratio_epsilon(pair, self.count, delta) for pair in self.bracket.lowers))
        guess = near - _USUAL_GAP * exact.field.tolerance / start.slope
        return Crossing(bound, delta, start.slope, close).from_below(guess, near), upper

    def _safe_epsilon(self, exact: ExactUpper, delta: float, at_least: float, high: float, start: _Start) -> float:
        if at_least > 0.0 and (high <= at_least or self._least(exact, at_least) <= delta):
            return at_least
        if self.composed is not None and (released := float(self.composed.epsilon_at(delta, side=1))) < high:
            # Releasing every trial is often the worst case itself: look only a little below it before a full search.
            if self._least(exact, 0.999 * released) > delta:
                return max(released, at_least)
            high = 0.999 * released
        if exact.field.rough_delta(0.0) <= delta and self._least(exact, 0.0) <= delta:
            return at_least
        if high > LARGEST_EPSILON:
            found = self._doubled(exact, delta, start.epsilon)
            if found > LARGEST_EPSILON:
                return high
            high = found
        crossing = Crossing(lambda e: self._least(exact, e), delta, start.slope, _CLOSE * exact.field.tolerance)
        return max(crossing.from_above(min(start.epsilon, high), at_least, high), at_least)

    def _doubled(self, exact: ExactUpper, delta: float, guess: float) -> float:
        """Some safe epsilon; infinite if none was found. Step by step, as the mesh is loosest at the largest epsilons."""
        if ExactLower(self.bracket.upper, self.count, mesh_of=exact).leak() > delta:
            return math.inf
        epsilon = max(guess, 1.0)
        while epsilon < LARGEST_EPSILON:
            if self._least(exact, epsilon) <= delta:
                return epsilon
            epsilon *= 2.0
        return LARGEST_EPSILON if self._least(exact, LARGEST_EPSILON) <= delta else math.inf

    def _start(self, exact: ExactUpper, delta: float, high: float) -> _Start:
        """Secant steps on cheap estimates."""
        slope, guess = self._slope(delta), 0.97 * high if high < LARGEST_EPSILON else 1.0
        before = (math.nan, math.nan)
        for _ in range(_TRIES):
            rough = exact.field.rough_delta(guess)
            excess = math.log(rough / delta) if rough > 0.0 else -math.inf
            if math.isfinite(excess - before[1]) and guess != before[0]:
                slope = float(np.clip((before[1] - excess) / (guess - before[0]), 0.2, 1e9))
            before, done = (guess, excess), abs(excess) < 0.1 and math.isfinite(before[1])
            guess = min(max(guess + excess / slope, 0.5 * guess), high, LARGEST_EPSILON)
            if done or guess == high:
                break
        return _Start(guess, slope)

    def _least(self, exact: ExactUpper, epsilon: float) -> float:
        pair = self.bracket.upper
        bounds = [exact.delta(epsilon)]
        bounds.append(self._mean * float(pair.hockey_stick(epsilon - exact.field.log_ratio, side=1)) * (1.0 + 1e-12))
        if self.composed is not None:
            bounds.append(float(self.composed.hockey_stick(epsilon, side=1)))
        if any(map(math.isnan, bounds)):
            raise ArithmeticError(f"a bound of {self.count} at epsilon {epsilon!r} is no number")  # never to pass for a small one
        least = min(*bounds, 1.0)
        if self.count.sampling_error > 0.0:
            # A law sampled within total variation t of its name costs (1 + e^epsilon) t more.
            least = min(least + (1.0 + math.exp(min(epsilon, LARGEST_EPSILON))) * self.count.sampling_error, 1.0)
        return least

    def _known_safe(self, exact: ExactUpper, delta: float) -> float:
        """An epsilon that **Ratio** knows to be safe; infinite where it knows none."""
        base = float(self.bracket.upper.epsilon_at(min(delta / self._mean * (1.0 - 1e-12), 1.0), side=1))
        return base + exact.field.log_ratio if self.count.sampling_error == 0.0 else math.inf

    def _slope(self, delta: float) -> float:
        """Roughly ``-d log(delta) / d epsilon`` where the base reaches delta/m: a first step for the search."""
        pair = self.bracket.upper
        base = float(pair.epsilon_at(min(delta / self._mean, 0.5), side=1))
        if not 0.0 < base < LARGEST_EPSILON:
            return 5.0
        step = 0.02 * base
        here, there = pair.hockey_stick(np.array([base - step, base]))
        return float(np.clip(math.log(max(here, 1e-300) / max(there, 1e-300)) / step, 0.2, 1e4)) if there > 0.0 else 20.0
