"""Sufficient statistics with noise: ridge regression as post-processing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.regression.methods.method import Answer, Recipe, one_gaussian
from privselect.regression.methods.noisy_statistics import gaussian_sigma, noisy_gram, noisy_moment, solved

if TYPE_CHECKING:
    from privselect.mechanisms import Gaussian
    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics


@dataclass(frozen=True, slots=True)
class SSP(Recipe):
    """X'X and X'y with noise, each half of mu^2. Every ridge costs the same."""

    mu: float
    ridge: float
    beside: float = 0.0

    @property
    def mechanism(self) -> Gaussian:
        """One Gaussian: the squares of mu add up."""
        return one_gaussian(self.mu, self.beside)

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """The noisy sums, solved."""
        sigma = gaussian_sigma(self.mu, 2)
        gram, moment = noisy_gram(statistics, sigma, normals), noisy_moment(statistics, sigma, normals)
        return Answer(solved(gram, moment, self.ridge, sigma))
