"""Bounds for one ordered pair of neighbours and one law of K: the smallest proven upper and the largest proven lower bound."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON, BracketedSecant
from privselect.pairs.compose import ACCURACY
from privselect.pairs.thin_pair import thin_upper
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.exact.engine import ExactLower, ExactUpper
from privselect.selection.exact.fixed_mesh import FixedMesh
from privselect.selection.exact.mesh import TOLERANCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts.base import Count
    from privselect.pairs import Bracket, DominatingPair

_ACCURACY = 4e-5  # target for epsilon, relative
_LOOSEST_TOLERANCE = 0.1  # in delta
_CLOSE = 0.2  # of the tolerance: a search stops when delta is this close to its target
_WIDE_GAP = 4e-4  # a relative gap in epsilon that shows that the tolerance was too loose
_TYPICAL_GAP = 2.3  # between the two bounds on delta, in tolerances
_MAX_ESTIMATES = 6  # cheap estimates before the search
_SPACING, _STEP = 0.014, 0.04  # of a fixed mesh in log w, and of its pair in standard deviations, for the default accuracy
_WIDEST_SPACING = 0.1
_FEW_OUTCOMES = 64
_SPACING_FACTORS = (1.0, 2.0, 4.0)  # the first one with few enough entries is used
_MAX_ENTRIES = 2_500_000


@dataclass(frozen=True, slots=True)
class _SearchStart:
    """An estimate of where a bound crosses delta, and ``-d log(bound)/d epsilon`` there."""

    epsilon: float
    slope: float

    @property
    def tolerance(self) -> float:
        """Relative tolerance in delta: if delta falls steeply, a looser delta gives the same epsilon."""
        return float(np.clip(_ACCURACY * self.slope * self.epsilon, TOLERANCE, _LOOSEST_TOLERANCE))


class Accountant:
    """Bounds on the selection's delta and epsilon, all for epsilon >= 0.

    ``composed`` dominates the release of all trials. It is given if K is bounded, and then bounds the selection too.
    """

    def __init__(self, bracket: Bracket, count: Count, composed: DominatingPair | None = None) -> None:
        self.bracket, self.count, self.composed = bracket, count, composed
        self._mean = count.expected()

    # The engines hold a mesh that adapts while it is used. Each call starts from a fresh mesh: an answer never depends on
    # earlier calls.

    def upper(self, epsilon: float) -> float:
        """Return the minimum of the Exact bound, the Ratio bound and, for bounded K, full composition."""
        return self.upper_curve()(epsilon)

    def upper_curve(self) -> Callable[[float], float]:
        """Return :meth:`upper` as a function for many epsilons in ascending order, which share a mesh."""
        exact = ExactUpper(self.bracket.upper, self.count)
        return lambda epsilon: self._smallest_bound(exact, min(epsilon, LARGEST_EPSILON))

    @property
    def has_few_outcomes(self) -> bool:
        """Whether the pair of a trial is small enough that its curve has kinks."""
        return len(self.bracket.upper.p) <= _FEW_OUTCOMES

    def fixed_mesh(self, accuracy: float = ACCURACY) -> FixedMesh | None:
        """Return a mesh for a whole curve, or None if one that is refined for each epsilon is faster or much tighter."""
        if self.has_few_outcomes:
            return None
        coarser = accuracy / ACCURACY
        pair = thin_upper(self.bracket.upper, _STEP * coarser**0.25)
        spacing = min(_SPACING * coarser**0.35, _WIDEST_SPACING)
        meshes = (FixedMesh(pair, self.count, spacing * factor) for factor in _SPACING_FACTORS)
        return next((mesh for mesh in meshes if mesh.size <= _MAX_ENTRIES), None)

    def curve_on(self, mesh: FixedMesh | None) -> Callable[[float], float]:
        """Return :meth:`upper_curve`, computed on a fixed mesh if there is one."""
        return self.upper_curve() if mesh is None else lambda epsilon: self._smallest_bound(mesh, min(epsilon, LARGEST_EPSILON))

    def is_safe(self, epsilon: float, delta: float) -> bool:
        """Return whether ``upper(epsilon) <= delta``; a coarse mesh, whose bound is valid too, is tried first."""
        coarse = ExactUpper(self.bracket.upper, self.count, tolerance=_LOOSEST_TOLERANCE)
        return self._smallest_bound(coarse, min(epsilon, LARGEST_EPSILON)) <= delta or self.upper(epsilon) <= delta

    def lower(self, epsilon: float) -> float:
        """Return the maximum over the dominated pairs, or 0 if there are none."""
        if epsilon > LARGEST_EPSILON:
            return 0.0
        return max((ExactLower(pair, self.count).delta(epsilon) for pair in self.bracket.lowers), default=0.0)

    def epsilon_bounds(self, delta: float, at_least: float = 0.0) -> tuple[float, float]:
        """Return (lower, upper): at lower, a mechanism under the pair still exceeds delta; upper is safe.

        The search for upper stops at ``at_least`` if that epsilon is already safe.
        """
        exact = ExactUpper(self.bracket.upper, self.count)
        high = self._ratio_epsilon(exact, delta)
        start = self._search_start(exact, delta, high)
        exact.mesh.tolerance = start.tolerance if self.bracket.lowers else TOLERANCE
        lower, upper = self._interval(exact, delta, at_least, high, start)
        if exact.mesh.tolerance > TOLERANCE and upper > max(lower * (1.0 + _WIDE_GAP), at_least):
            # The slope was misjudged: repeat with the tightest tolerance.
            exact = ExactUpper(self.bracket.upper, self.count)
            lower, upper = self._interval(exact, delta, at_least, high, start)
        return lower, upper

    def _interval(self, exact: ExactUpper, delta: float, at_least: float, high: float, start: _SearchStart) -> tuple[float, float]:
        upper, close = self._safe_epsilon(exact, delta, at_least, high, start), _CLOSE * exact.mesh.tolerance
        exact.mesh.clear_cache()  # only the mesh is needed from here on, and the lower bounds cache as much again
        engines = [ExactLower(pair, self.count, start_from=exact.mesh) for pair in self.bracket.lowers]
        if not engines or upper == 0.0:
            return 0.0, upper

        def bound(epsilon: float) -> float:
            return max(engine.delta(epsilon) for engine in engines)

        if math.isinf(upper):
            if max(engine.limit_delta() for engine in engines) > delta:
                return math.inf, upper
            if bound(LARGEST_EPSILON) > delta:
                return LARGEST_EPSILON, upper  # larger epsilons are not resolved
        near = min(upper, LARGEST_EPSILON) * (1.0 + 1e-9)
        if math.isinf(upper):
            # There is no upper bound to start from, but no order of a dominated pair exceeds that pair's own Ratio bound.
            near = min(near, max(ratio_epsilon(pair, self.count, delta) for pair in self.bracket.lowers))
        guess = near - _TYPICAL_GAP * exact.mesh.tolerance / start.slope
        return BracketedSecant(bound, delta, start.slope, close).from_below(guess, near), upper

    def _safe_epsilon(self, exact: ExactUpper, delta: float, at_least: float, high: float, start: _SearchStart) -> float:
        if at_least > 0.0 and (high <= at_least or self._smallest_bound(exact, at_least) <= delta):
            return at_least
        if self.composed is not None and (released := float(self.composed.epsilon_at(delta, side=1))) < high:
            # Releasing every trial is often the worst case itself: check slightly below it before a full search.
            if self._smallest_bound(exact, 0.999 * released) > delta:
                return max(released, at_least)
            high = 0.999 * released
        if exact.mesh.estimate_delta(0.0) <= delta and self._smallest_bound(exact, 0.0) <= delta:
            return at_least
        if high > LARGEST_EPSILON:
            found = self._safe_epsilon_by_doubling(exact, delta, start.epsilon)
            if found > LARGEST_EPSILON:
                return high
            high = found
        search = BracketedSecant(lambda e: self._smallest_bound(exact, e), delta, start.slope, _CLOSE * exact.mesh.tolerance)
        return max(search.from_above(min(start.epsilon, high), at_least, high), at_least)

    def _safe_epsilon_by_doubling(self, exact: ExactUpper, delta: float, guess: float) -> float:
        """Return some safe epsilon, or infinity; it starts small because the mesh is loosest at the largest epsilons."""
        if ExactLower(self.bracket.upper, self.count, start_from=exact.mesh).limit_delta() > delta:
            return math.inf
        epsilon = max(guess, 1.0)
        while epsilon < LARGEST_EPSILON:
            if self._smallest_bound(exact, epsilon) <= delta:
                return epsilon
            epsilon *= 2.0
        return LARGEST_EPSILON if self._smallest_bound(exact, LARGEST_EPSILON) <= delta else math.inf

    def _search_start(self, exact: ExactUpper, delta: float, high: float) -> _SearchStart:
        """Estimate the crossing by secant steps on cheap estimates of delta."""
        slope, guess = self._base_slope(delta), 0.97 * high if high < LARGEST_EPSILON else 1.0
        before = (math.nan, math.nan)
        for _ in range(_MAX_ESTIMATES):
            estimate = exact.mesh.estimate_delta(guess)
            excess = math.log(estimate / delta) if estimate > 0.0 else -math.inf
            if math.isfinite(excess - before[1]) and guess != before[0]:
                slope = float(np.clip((before[1] - excess) / (guess - before[0]), 0.2, 1e9))
            before, done = (guess, excess), abs(excess) < 0.1 and math.isfinite(before[1])
            guess = min(max(guess + excess / slope, 0.5 * guess), high, LARGEST_EPSILON)
            if done or guess == high:
                break
        return _SearchStart(guess, slope)

    def _smallest_bound(self, exact: ExactUpper | FixedMesh, epsilon: float) -> float:
        pair = self.bracket.upper
        bounds = [exact.delta(epsilon)]
        bounds.append(self._mean * float(pair.hockey_stick(epsilon - exact.mesh.log_ratio, side=1)) * (1.0 + 1e-12))
        if self.composed is not None:
            bounds.append(float(self.composed.hockey_stick(epsilon, side=1)))
        if any(map(math.isnan, bounds)):
            raise ArithmeticError(f"a bound of {self.count} at epsilon {epsilon!r} is NaN")  # min() could ignore it
        smallest = min(*bounds, 1.0)
        if self.count.sampling_error > 0.0:
            # If K is sampled within total variation t of its distribution, delta grows by at most (1 + e^epsilon) t.
            smallest = min(smallest + (1.0 + math.exp(min(epsilon, LARGEST_EPSILON))) * self.count.sampling_error, 1.0)
        return smallest

    def _ratio_epsilon(self, exact: ExactUpper, delta: float) -> float:
        """Return an epsilon that is safe by **Ratio**, or infinity if it gives none."""
        base = float(self.bracket.upper.epsilon_at(min(delta / self._mean * (1.0 - 1e-12), 1.0), side=1))
        return base + exact.mesh.log_ratio if self.count.sampling_error == 0.0 else math.inf

    def _base_slope(self, delta: float) -> float:
        """Estimate ``-d log(delta) / d epsilon`` where the base reaches delta/m: a first step for the search."""
        pair = self.bracket.upper
        base = float(pair.epsilon_at(min(delta / self._mean, 0.5), side=1))
        if not 0.0 < base < LARGEST_EPSILON:
            return 5.0
        step = 0.02 * base
        here, there = pair.hockey_stick(np.array([base - step, base]))
        return float(np.clip(math.log(max(here, 1e-300) / max(there, 1e-300)) / step, 0.2, 1e4)) if there > 0.0 else 20.0
