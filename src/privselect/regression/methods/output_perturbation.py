"""Output perturbation: the solution itself with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect.regression.methods.method import Answer, Recipe, one_gaussian
from privselect.regression.ridge_sensitivity import solution_sensitivity

if TYPE_CHECKING:
    from privselect.mechanisms import Gaussian
    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics


@dataclass(frozen=True, slots=True)
class OutputPerturbation(Recipe):
    """``th + N(0, (sensitivity/mu)^2 I)``, th the ridge solution, which one row among ``records`` moves by a bounded distance."""

    mu: float
    ridge: float
    records: int
    beside: float = 0.0

    @property
    def mechanism(self) -> Gaussian:
        """One Gaussian: the squares of mu add up."""
        return one_gaussian(self.mu, self.beside)

    def run(self, statistics: Statistics, normals: Normals) -> Answer:
        """The solution, with noise on each coefficient."""
        scale = solution_sensitivity(self.records, self.ridge) / self.mu
        return Answer(statistics.solution(self.ridge) + scale * normals.draw(statistics.features))
