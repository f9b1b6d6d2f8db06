"""``cor:adjust``: two thresholds on the privacy profile of every candidate, and the steps with which a candidate meets them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON, grid_argmin, solve_epsilon
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError
from privselect.mechanisms.base import MAX_RUNS
from privselect.mechanisms.gaussian import gaussian_delta
from privselect.planning.adjust.step_search import LOG_DELTA_SLOPE, StepSearch
from privselect.selection.bounds.paper_bounds import cor_adjust, require_uncapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.counts.base import Count
    from privselect.planning.adjust.mixture import Candidates

_UP = 1.0 + 1e-12  # more than the rounding error of delta/m
_FIRST_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-6, LARGEST_EPSILON, 300)])
_SMALLEST_MU, _LARGEST_MU = 1e-12, 100.0  # Gaussians that leak almost nothing and almost everything


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The thresholds of ``cor:adjust`` and the total epsilon.

    If every candidate is ``(epsilon_1, delta_1)``- and ``(epsilon_hat, delta_hat)``-DP, the selection is ``(epsilon, delta)``-DP.
    Both points lie on the profile of the Gaussian mechanism that is ``(epsilon_base, delta)``-DP.
    """

    epsilon_base: float
    epsilon_1: float
    delta_1: float
    epsilon_hat: float
    delta_hat: float
    epsilon: float

    @property
    def points(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """Both thresholds as (epsilon, delta)."""
        return (self.epsilon_1, self.delta_1), (self.epsilon_hat, self.delta_hat)


def thresholds_for_base(epsilon_base: float, delta: float, count: Count) -> Thresholds:
    """Return the paper's thresholds: those of the Gaussian mechanism that is ``(epsilon_base, delta)``-DP."""
    return _thresholds(gaussian_mu(epsilon_base, delta), epsilon_base, delta, count)


def thresholds_for_total(epsilon: float, delta: float, count: Count) -> Thresholds:
    """Return the thresholds of the Gaussian mechanism with the least noise for which ``cor:adjust`` gives at most this total epsilon."""
    mu = _largest_mu(lambda mu: _thresholds(mu, 0.0, delta, count).epsilon <= epsilon)
    found = _thresholds(mu, _gaussian_epsilon(mu, delta), delta, count)
    if found.epsilon > epsilon:
        raise NotCoveredError(f"no Gaussian mechanism is private enough for a total of {epsilon:g} by cor:adjust")
    return found


def _thresholds(mu: float, epsilon_base: float, delta: float, count: Count) -> Thresholds:
    """Return the paper's choice of thresholds; any two points are sound if all candidates meet them.

    ``e_1 = argmin log(e^e + (1-gamma)/gamma delta_mu(e))``, ``delta_1 = delta_mu(e_1)``, and ``delta_mu(e_hat) = delta/m``.
    """
    law = require_uncapped(count, TruncatedNegativeBinomial, "cor:adjust", "truncated negative binomial")
    odds = (1.0 - law.resolved_gamma) / law.resolved_gamma
    first = grid_argmin(lambda e: e + np.log1p(odds * gaussian_delta(mu, e) * np.exp(-e)), _FIRST_EPSILONS)
    leak, delta_hat = float(gaussian_delta(mu, first)), delta / (law.expected() * _UP)
    hat = _gaussian_epsilon(mu, delta_hat)
    total = cor_adjust(first, leak, hat, law) if math.isfinite(hat) else math.inf
    return Thresholds(epsilon_base, first, leak, hat, delta_hat, total)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    return solve_epsilon(lambda e: float(gaussian_delta(mu, e)), delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest mu for which the Gaussian mechanism is ``(epsilon, delta)``-DP."""
    return _largest_mu(lambda mu: float(gaussian_delta(mu, epsilon)) <= delta)


def _largest_mu(allowed: Callable[[float], bool]) -> float:
    """Return the largest allowed mu by bisection in log mu; the smallest mu of the search if none is allowed."""
    low, high = math.log(_SMALLEST_MU), math.log(_LARGEST_MU)
    while (middle := 0.5 * (low + high)) not in {low, high}:
        if allowed(math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(low)


def cor_adjust_steps(candidates: Candidates, index: int, thresholds: Thresholds) -> int:
    """Return a number of steps T at which the upper bound on the profile meets both thresholds, but not at T + 1.

    The true profile rises with T. Its upper bound fluctuates by about 1e-3, relative, so a few more steps might be provable.
    """
    epsilons, deltas = (np.array(column) for column in zip(*thresholds.points, strict=True))

    def excess(steps: int) -> float:
        proved = np.asarray(candidates.candidate(index, steps).delta_at(epsilons).upper)
        with np.errstate(divide="ignore"):
            excess = float(np.log(proved / deltas).max())
        # The comparison decides: the logarithm of a ratio just above 1 may round to 0.
        return max(excess, math.ulp(0.0)) if (proved > deltas).any() else min(excess, 0.0)

    first = candidates.approximate_steps(index, gaussian_mu(thresholds.epsilon_hat, thresholds.delta_hat))
    low, high = StepSearch(excess, first, LOG_DELTA_SLOPE).bracket(0.0)
    noise = candidates.noise_multipliers[index]
    if low == 0:
        raise NotCoveredError(f"even with steps = 1, noise multiplier {noise:g} exceeds the thresholds of cor:adjust")
    if high > MAX_RUNS:
        raise NotCoveredError(f"even with steps = {MAX_RUNS}, noise multiplier {noise:g} meets the thresholds of cor:adjust")
    return low
