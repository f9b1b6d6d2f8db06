"""One private regression, without a selection: the corrected variants of what was published."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.regression.methods.ada_ssp import AdaSSP
from privselect.regression.methods.ops_methods import ExactPosteriorSample, balanced_ridge
from research.figures.allowed_noise import single_mu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.method import Recipe
    from privselect.regression.methods.sufficient_statistics import Statistics

    Floats = NDArray[np.float64]


def corrected_ada_ssp(statistics: Statistics, epsilon: float, delta: float, normals: Normals) -> Floats:
    """AdaSSP, its three releases calibrated together as one Gaussian."""
    return _answered(AdaSSP(single_mu(epsilon, delta)), statistics, normals)


def corrected_ops_balanced(statistics: Statistics, epsilon: float, delta: float, normals: Normals) -> Floats:
    """OPS-balanced with the published ridge, the right covariance, and the precision that the exact profile allows."""
    ridge = balanced_ridge(statistics.records, statistics.features, epsilon, delta)
    return _answered(ExactPosteriorSample(epsilon, delta, ridge, statistics.records), statistics, normals)


def _answered(recipe: Recipe, statistics: Statistics, normals: Normals) -> Floats:
    """The coefficients; zeros without an answer."""
    coefficients = recipe.run(statistics, normals).coefficients
    return np.zeros(statistics.features) if coefficients is None else coefficients
