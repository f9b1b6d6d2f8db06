"""OPS-PTR: one posterior sample whose precision is fitted to bounds on the data that are released first."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from privselect.mechanisms import Gaussian, GaussianDP
from privselect.regression.calibration import largest_signal
from privselect.regression.limits import log_norm_sensitivity, norm_limit
from privselect.regression.noisy_statistics import noisy_smallest
from privselect.regression.posterior import posterior_sample
from privselect.regression.propose_test_release import ProposeTestRelease
from privselect.regression.recipe import Answer, Recipe

if TYPE_CHECKING:
    from privselect.mechanisms.base import Mechanism
    from privselect.regression.normals import Normals
    from privselect.regression.statistics import Statistics

_UP = 1.0 + 1e-9


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the test releases: a lower bound on the least eigenvalue of X'X and an upper one on ``1 + ||th||``."""

    smallest: float
    length: float


@dataclass(frozen=True, slots=True)
class PosteriorAfterTest(Recipe):
    """Release bounds on X'X and th with noise, then a sample as precise as these bounds allow; "no answer" where none is.

    ``mu`` is shared out by its square: ``shares`` are those of the least eigenvalue and of the norm (0: not released, and the bound that
    always holds is used), the rest is the sample's. Each bound is shifted to the safe side by its noise's quantile, so that it is wrong
    with chance at most ``failure/2``. The sample stays under ``gdp(mu, delta)`` of its share, wherever the bounds hold.

    Why the target covers it: let both bounds hold for the data at hand. A row that is added has leverage at most ``1/(ridge + smallest)``
    and ``|y - x'th| <= length``. For one that is taken away, h being its leverage in the data at hand, the reference is the data
    without it: there its leverage is ``h/(1-h)`` and its residual ``r/(1-h)``, with ``h <= min(1/(ridge + smallest), 1/(1 + ridge))``. The
    second is the worse, so both orders are covered by the largest leverage and the largest residual of a row that is taken away.
    """

    mu: float
    delta: float
    failure: float
    ridge: float
    records: int
    shares: tuple[float, float] = (0.1, 0.1)
    beside: float = 0.0

    @property
    def target(self) -> GaussianDP:
        """What the sample leaks, wherever the bounds hold."""
        return GaussianDP(mu=self.mu * math.sqrt(1.0 - sum(self.shares)), delta=self.delta)

    @property
    def mechanism(self) -> Mechanism:
        """Propose-test-release, its test and what is released beside it as one Gaussian."""
        test = math.hypot(self.mu * math.sqrt(sum(self.shares)), self.beside)
        if test == 0.0:
            return self.target
        failure = self.failure if sum(self.shares) else 0.0
        return ProposeTestRelease(Gaussian(sigma=1.0 / test), self.target, failure=failure, calibrated=True)

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """Bounds, then a sample."""
        bounds = self.test(statistics, normals)
        precision = self.precision(bounds)
        facts = {"ridge": self.ridge, "smallest_eigenvalue": bounds.smallest, "length": bounds.length, "precision": precision}
        return Answer(None if precision == 0.0 else posterior_sample(statistics, self.ridge, precision, normals), facts)

    def test(self, statistics: Statistics, normals: Normals) -> Bounds:
        """The bounds, each with noise and shifted to the safe side."""
        quantile = float(-ndtri(0.5 * self.failure)) * _UP
        always = 1.0 + norm_limit(self.records, self.ridge) if self.ridge > 0.0 else math.inf
        for_smallest, for_norm = (self.mu * math.sqrt(share) for share in self.shares)
        smallest = noisy_smallest(statistics, 1.0 / for_smallest, normals, quantile) if for_smallest else 0.0
        sensitivity = log_norm_sensitivity(self.ridge, smallest)
        if for_norm == 0.0 or math.isinf(sensitivity):
            return Bounds(smallest, always)
        noise = (float(normals.draw(1)[0]) + quantile) * sensitivity / for_norm
        log_length = math.log1p(float(np.linalg.norm(statistics.solution(self.ridge)))) + noise
        return Bounds(smallest, min(math.exp(min(log_length, 700.0)), always))

    def precision(self, bounds: Bounds) -> float:
        """The greatest that these bounds allow; 0 where none is small enough."""
        share = 1.0 / max(self.ridge + bounds.smallest, 1.0 + self.ridge)
        if share >= 1.0 or math.isinf(bounds.length):
            return 0.0
        signal = largest_signal(share / (1.0 - share), self.target.mu, self.delta)
        return signal * ((1.0 - share) / bounds.length) ** 2
