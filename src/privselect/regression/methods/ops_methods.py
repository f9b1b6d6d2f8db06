"""One posterior sample (OPS) whose precision depends on no record."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from privselect.mechanisms import GaussianDP, Pure
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.regression.methods.method import Answer, Recipe
from privselect.regression.ops.calibration import largest_signal, signal_for
from privselect.regression.ops.ops_mechanism import OPS
from privselect.regression.ops.posterior import posterior_sample
from privselect.regression.ridge_sensitivity import norm_limit

if TYPE_CHECKING:
    from privselect.mechanisms.base import Mechanism
    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics

_RISK = 0.05  # of the error bound that the balanced ridge minimises; privacy does not rest on it


@dataclass(frozen=True, slots=True)
class ExactPosteriorSample(Recipe):
    """A sample that is (epsilon, delta)-DP by the profile of the posterior itself; "no answer" where no precision is small enough.

    Without a row, h is at most ``1/ridge`` and ``|y - x'th|`` at most 1 and the greatest norm that th can have.
    """

    epsilon: float
    delta: float
    ridge: float
    records: int

    @property
    def signal(self) -> float:
        """The largest that fits; 0 where none does."""
        return _certified_signal(1.0 / self.ridge, self.epsilon, self.delta)

    @property
    def mechanism(self) -> Mechanism:
        """The posterior sample itself; nothing leaks where there is never an answer."""
        signal = self.signal
        return OPS(1.0 / self.ridge, signal) if signal else Pure(epsilon=0.0, neighbours=ADD_REMOVE)

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """One sample."""
        return _sampled(statistics, normals, self.ridge, self.signal / (1.0 + norm_limit(self.records, self.ridge)) ** 2)


@dataclass(frozen=True, slots=True)
class PosteriorSample(Recipe):
    """A sample that leaks at most ``gdp(mu, delta)``, at every epsilon; "no answer" where no precision is small enough."""

    mu: float
    delta: float
    ridge: float
    records: int
    beside: float = 0.0

    @property
    def mechanism(self) -> GaussianDP:
        """The target that the sample stays under, and what is released beside it."""
        return GaussianDP(mu=math.hypot(self.mu, self.beside), delta=self.delta, neighbours=ADD_REMOVE)

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """One sample."""
        signal = largest_signal(1.0 / self.ridge, self.mu, self.delta)
        return _sampled(statistics, normals, self.ridge, signal / (1.0 + norm_limit(self.records, self.ridge)) ** 2)


@lru_cache(maxsize=1024)
def _certified_signal(leverage: float, epsilon: float, delta: float) -> float:
    """That of the search, lowered where it misses the mechanism's own word by its last digits."""
    signal = signal_for(leverage, epsilon, delta)
    for _ in range(40):
        if signal == 0.0 or OPS(leverage, signal).epsilon_at(delta).upper <= epsilon:
            return signal
        signal *= 1.0 - 1e-4
    return 0.0


def _sampled(statistics: Statistics, normals: Normals, ridge: float, precision: float) -> Answer:
    facts = {"ridge": ridge, "precision": precision}
    return Answer(None if precision == 0.0 else posterior_sample(statistics, ridge, precision, normals), facts)


def balanced_ridge(records: int, features: int, epsilon: float, delta: float) -> float:
    """The ridge of OPS-balanced (Wang 2018), which weighs the noise against the shrinking, for solutions of norm 1: from public numbers.

    ``(n C/2)^(1/3)`` with ``C = (d/2 + sqrt(d log(1/risk)) + log(1/risk)) log(2/delta)/e^2``, ``e = min(epsilon/2, sqrt(epsilon/2))``,
    and at least ``(1 + log(2/delta))/epsilon``, so that some precision will do.
    """
    log_risk, log_delta = math.log(1.0 / _RISK), math.log(2.0 / delta)
    share = max(min(0.5 * epsilon, math.sqrt(0.5 * epsilon)), 1e-100)  # whose square is a float
    weight = (0.5 * features + math.sqrt(features * log_risk) + log_risk) * log_delta / share**2
    return max(math.cbrt(0.5 * weight * records), (1.0 + log_delta) / epsilon)
