"""AdaSSP (Wang 2018): sufficient statistics with noise, and a ridge fitted to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from scipy.special import ndtri

from privselect.regression.methods.method import Answer, Recipe, one_gaussian
from privselect.regression.methods.noisy_statistics import gaussian_sigma, noisy_gram, noisy_moment, noisy_smallest, solved

if TYPE_CHECKING:
    from privselect.mechanisms import Gaussian
    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics

_RISK = 0.05  # that the ridge is chosen too small; privacy does not rest on it


@dataclass(frozen=True, slots=True)
class AdaSSP(Recipe):
    """X'X, X'y and the least eigenvalue of X'X with noise, each a third of mu^2; the noisier, the greater the ridge.

    The three are calibrated together, as one Gaussian. The published constant for each, ``sqrt(log(6/delta))/(epsilon/3)``, is not
    (epsilon/3, delta/3)-DP where epsilon is about 1 or more.
    """

    mu: float
    beside: float = 0.0

    @property
    def mechanism(self) -> Gaussian:
        """One Gaussian: the squares of mu add up."""
        return one_gaussian(self.mu, self.beside)

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """The noisy sums, solved with the ridge that their noise asks for."""
        sigma, features = gaussian_sigma(self.mu, 3), statistics.features
        smallest = noisy_smallest(statistics, sigma, normals, float(-ndtri(_RISK)))
        # The norm of the noise on X'X is below this but for the risk; a matrix with more than that to spare needs no ridge.
        norm = sigma * math.sqrt(features * math.log(2.0 * features**2 / _RISK))
        ridge = max(norm - smallest, 0.0)
        gram, moment = noisy_gram(statistics, sigma, normals), noisy_moment(statistics, sigma, normals)
        return Answer(solved(gram, moment, ridge, sigma), {"smallest_eigenvalue": smallest, "ridge": ridge})
