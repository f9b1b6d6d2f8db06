"""The two points of the privacy profile that ``cor:adjust`` asks every candidate to keep."""

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

    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.planning.adjust.mixture import Candidates

    Floats = NDArray[np.float64]

_UP = 1.0 + 1e-12  # more than the quotient delta/m can lose
_FIRST_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-6, LARGEST_EPSILON, 300)])
_LEAST_MU, _MOST_MU = 1e-12, 100.0  # a Gaussian that leaks next to nothing, and one that leaks next to everything


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Candidates that are all ``(epsilon_1, delta_1)``- and ``(epsilon_hat, delta_hat)``-DP make a selection ``(epsilon, delta)``-DP.

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
        """As (epsilon, delta)."""
        return (self.epsilon_1, self.delta_1), (self.epsilon_hat, self.delta_hat)


def thresholds_for_base(epsilon_base: float, delta: float, count: Count) -> Thresholds:
    """The paper's thresholds: from the Gaussian mechanism that is ``(epsilon_base, delta)``-DP."""
    law = covered_law(count)
    return _thresholds(gaussian_mu(epsilon_base, delta), epsilon_base, delta, law)


def thresholds_for_total(epsilon: float, delta: float, count: Count) -> Thresholds:
    """Those of the Gaussian mechanism with the least noise for which ``cor:adjust`` gives at most this epsilon in all."""
    law = covered_law(count)
    mu = _greatest_mu(lambda mu: _thresholds(mu, 0.0, delta, law).epsilon <= epsilon)
    found = _thresholds(mu, _gaussian_epsilon(mu, delta), delta, law)
    if found.epsilon > epsilon:
        raise NotCoveredError(f"no Gaussian mechanism leaks so little that cor:adjust gives {epsilon:g} in all")
    return found


def covered_law(count: Count) -> TruncatedNegativeBinomial:
    """The law, if ``cor:adjust`` covers it."""
    return require_uncapped(count, TruncatedNegativeBinomial, "cor:adjust", "truncated negative binomial")


def _thresholds(mu: float, epsilon_base: float, delta: float, law: TruncatedNegativeBinomial) -> Thresholds:
    """Any two points would be sound, as long as candidates are held to them; these are the paper's choice.

    ``e_1 = argmin log(e^e + (1-gamma)/gamma delta_mu(e))``, ``delta_1 = delta_mu(e_1)``, and ``delta_mu(e_hat) = delta/m``.
    """
    odds = (1.0 - law.resolved_gamma) / law.resolved_gamma
    first = grid_argmin(lambda e: e + np.log1p(odds * gaussian_delta(mu, e) * np.exp(-e)), _FIRST_EPSILONS)
    leak, delta_hat = float(gaussian_delta(mu, first)), delta / (law.expected() * _UP)
    hat = _gaussian_epsilon(mu, delta_hat)
    total = cor_adjust(first, leak, hat, law) if math.isfinite(hat) else math.inf
    return Thresholds(epsilon_base, first, leak, hat, delta_hat, total)


def _gaussian_epsilon(mu: float, delta: float) -> float:
    return solve_epsilon(lambda e: float(gaussian_delta(mu, e)), delta)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Of the Gaussian mechanism that is just ``(epsilon, delta)``-DP."""
    return _greatest_mu(lambda mu: float(gaussian_delta(mu, epsilon)) <= delta)


def _greatest_mu(allowed: Callable[[float], bool]) -> float:
    """By bisection in log mu; the least one there is, if none is allowed: what is allowed then, candidates will tell."""
    low, high = math.log(_LEAST_MU), math.log(_MOST_MU)
    while (middle := 0.5 * (low + high)) not in {low, high}:
        if allowed(math.exp(middle)):
            low = middle
        else:
            high = middle
    return math.exp(low)


def cor_adjust_steps(candidates: Candidates, place: int, thresholds: Thresholds) -> int:
    """T at which the profile, from above, is below both points, and is not at T + 1.

    The true profile rises with T. What is proved of it wavers by about 1e-3, relative, so a few steps more might also be proved.
    """
    epsilons, deltas = (np.array(column) for column in zip(*thresholds.points, strict=True))

    def excess(steps: int) -> float:
        proved = np.asarray(candidates.candidate(place, steps).delta_at(epsilons).upper)
        with np.errstate(divide="ignore"):
            excess = float(np.log(proved / deltas).max())
        # The comparison itself decides: a logarithm may round to 0 what is above.
        return max(excess, math.ulp(0.0)) if (proved > deltas).any() else min(excess, 0.0)

    first = candidates.usual_steps(place, gaussian_mu(thresholds.epsilon_hat, thresholds.delta_hat))
    low, high = StepSearch(excess, first, LOG_DELTA_SLOPE).around(0.0)
    noise = candidates.noise_multipliers[place]
    if low == 0:
        raise NotCoveredError(f"even with steps = 1, noise multiplier {noise:g} exceeds the thresholds of cor:adjust")
    if high > MAX_RUNS:
        raise NotCoveredError(f"even with steps = {MAX_RUNS}, noise multiplier {noise:g} keeps the thresholds of cor:adjust")
    return low
