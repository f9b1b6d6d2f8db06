"""Private ridge regression methods, each with the mechanism that accounts for it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from scipy.special import ndtri

from privselect.mechanisms import Gaussian, GaussianDP, Pure
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.ops.calibration import largest_signal, signal_for_dp
from privselect.regression.ops.ops_mechanism import OPS
from privselect.regression.ridge_sensitivity import solution_norm_bound, solution_sensitivity
from privselect.regression.sufficient_statistics import (
    noisy_gram,
    noisy_moment,
    noisy_smallest_eigenvalue,
    posterior_sample,
    sigma_per_release,
    solve_noisy_ridge,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.regression.noise_source import NoiseSource
    from privselect.regression.sufficient_statistics import SufficientStatistics

    Floats = NDArray[np.float64]

_RISK = 0.05  # failure probability of utility bounds; privacy does not depend on it


@dataclass(frozen=True, slots=True, eq=False)
class RegressionResult:
    """Released coefficients (None means "no answer") and ``facts``: numbers released on the way to them."""

    coefficients: Floats | None
    facts: Mapping[str, float] = field(default_factory=dict)


class RegressionMethod(ABC):
    """Compute private coefficients from sufficient statistics of rows of norm at most 1 and targets in [-1, 1].

    The field ``extra_mu``, if a method has it, is the mu of other Gaussian releases of the same fit. The mechanism includes them.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism:
        """What the result leaks; it depends on no record."""

    @abstractmethod
    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Run the method once with fresh noise."""


def composed_gaussian(*mus: float) -> Gaussian:
    """Return the composition of Gaussian releases, for one record added or removed: the squares of mu add up."""
    return Gaussian(sigma=1.0 / math.hypot(*mus), neighbours=ADD_REMOVE)


@dataclass(frozen=True, slots=True)
class _GaussianMethod(RegressionMethod):
    """Method whose releases are one Gaussian mechanism of ``mu``."""

    mu: float
    extra_mu: float = field(default=0.0, kw_only=True)

    @property
    def mechanism(self) -> Gaussian:
        """Composition of the method's Gaussian releases and the extra ones."""
        return composed_gaussian(self.mu, self.extra_mu)


@dataclass(frozen=True, slots=True)
class AdaSSP(_GaussianMethod):
    """AdaSSP (Wang 2018): noisy X'X, X'y and smallest eigenvalue, each with a third of mu^2, and a ridge that grows with the noise.

    The three releases are calibrated together, as one Gaussian. The published constant for each, ``sqrt(log(6/delta))/(epsilon/3)``, is
    not (epsilon/3, delta/3)-DP if epsilon is about 1 or more.
    """

    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Release noisy statistics and solve them with a ridge that fits their noise."""
        sigma, features = sigma_per_release(self.mu, 3), statistics.features
        smallest = noisy_smallest_eigenvalue(statistics, sigma, source, float(-ndtri(_RISK)))
        # With probability 1 - _RISK the norm of the noise on X'X is below this; X'X needs no ridge beyond it.
        norm = sigma * math.sqrt(features * math.log(2.0 * features**2 / _RISK))
        ridge = max(norm - smallest, 0.0)
        gram, moment = noisy_gram(statistics, sigma, source), noisy_moment(statistics, sigma, source)
        return RegressionResult(solve_noisy_ridge(gram, moment, ridge, sigma), {"smallest_eigenvalue": smallest, "ridge": ridge})


@dataclass(frozen=True, slots=True)
class SSP(_GaussianMethod):
    """Sufficient statistics perturbation: noisy X'X and X'y, each with half of mu^2. The privacy cost does not depend on the ridge."""

    ridge: float

    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Release noisy statistics and solve them."""
        sigma = sigma_per_release(self.mu, 2)
        gram, moment = noisy_gram(statistics, sigma, source), noisy_moment(statistics, sigma, source)
        return RegressionResult(solve_noisy_ridge(gram, moment, self.ridge, sigma))


@dataclass(frozen=True, slots=True)
class OutputPerturbation(_GaussianMethod):
    """``th + N(0, (sensitivity/mu)^2 I)``, with th the ridge solution and the sensitivity that of at most ``records`` records."""

    ridge: float
    records: int

    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Release the ridge solution with noise on each coefficient."""
        scale = solution_sensitivity(self.records, self.ridge) / self.mu
        return RegressionResult(statistics.ridge_solution(self.ridge) + scale * source.standard_normals(statistics.features))


@dataclass(frozen=True, slots=True)
class ExactPosteriorSample(RegressionMethod):
    """Posterior sample that is (epsilon, delta)-DP by its exact profile; "no answer" if no precision is small enough.

    Without a row, h is at most ``1/ridge``, and ``|y - x'th|`` is at most 1 plus the largest norm of th.
    """

    epsilon: float
    delta: float
    ridge: float
    records: int

    @property
    def signal(self) -> float:
        """Largest signal that satisfies (epsilon, delta)-DP; 0 if none does."""
        return _certified_signal(1.0 / self.ridge, self.epsilon, self.delta)

    @property
    def mechanism(self) -> Mechanism:
        """The posterior sample itself; it leaks nothing if the result is always "no answer"."""
        signal = self.signal
        return OPS(1.0 / self.ridge, signal) if signal else Pure(epsilon=0.0, neighbours=ADD_REMOVE)

    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Release one posterior sample."""
        return _sample_with_signal(self.signal, statistics, source, self.ridge, self.records)


@dataclass(frozen=True, slots=True)
class GDPPosteriorSample(RegressionMethod):
    """Posterior sample that leaks at most ``gdp(mu, delta)`` at every epsilon; "no answer" if no precision is small enough."""

    mu: float
    delta: float
    ridge: float
    records: int
    extra_mu: float = 0.0

    @property
    def mechanism(self) -> GaussianDP:
        """Composition of the target that bounds the sample and the extra Gaussian releases."""
        return GaussianDP(mu=math.hypot(self.mu, self.extra_mu), delta=self.delta, neighbours=ADD_REMOVE)

    def run(self, statistics: SufficientStatistics, source: NoiseSource) -> RegressionResult:
        """Release one posterior sample."""
        signal = largest_signal(1.0 / self.ridge, self.mu, self.delta)
        return _sample_with_signal(signal, statistics, source, self.ridge, self.records)


@lru_cache(maxsize=1024)
def _certified_signal(leverage: float, epsilon: float, delta: float) -> float:
    """Return the signal that the search found, lowered until the mechanism's own accountant confirms it."""
    signal = signal_for_dp(leverage, epsilon, delta)
    for _ in range(40):
        if signal == 0.0 or OPS(leverage, signal).epsilon_at(delta).upper <= epsilon:
            return signal
        signal *= 1.0 - 1e-4
    return 0.0


def _sample_with_signal(
    signal: float, statistics: SufficientStatistics, source: NoiseSource, ridge: float, records: int
) -> RegressionResult:
    """Sample at the precision for which every row has at most this signal; a signal of 0 means "no answer"."""
    precision = signal / (1.0 + solution_norm_bound(records, ridge)) ** 2
    facts = {"ridge": ridge, "precision": precision}
    return RegressionResult(None if precision == 0.0 else posterior_sample(statistics, ridge, precision, source), facts)


def balanced_ridge(records: int, features: int, epsilon: float, delta: float) -> float:
    """Return the ridge of OPS-balanced (Wang 2018), computed from public numbers.

    It balances the noise against the shrinkage for solutions of norm 1. The ridge is ``(n C/2)^(1/3)`` with
    ``C = (d/2 + sqrt(d log(1/risk)) + log(1/risk)) log(2/delta)/e^2`` and ``e = min(epsilon/2, sqrt(epsilon/2))``. It is at least
    ``(1 + log(2/delta))/epsilon``, which leaves room for some precision.
    """
    log_risk, log_delta = math.log(1.0 / _RISK), math.log(2.0 / delta)
    share = max(min(0.5 * epsilon, math.sqrt(0.5 * epsilon)), 1e-100)  # its square must not underflow
    weight = (0.5 * features + math.sqrt(features * log_risk) + log_risk) * log_delta / share**2
    return max(math.cbrt(0.5 * weight * records), (1.0 + log_delta) / epsilon)
