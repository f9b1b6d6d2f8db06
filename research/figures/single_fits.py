"""Single private regressions without selection: corrected variants of the published ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.regression.methods import AdaSSP, ExactPosteriorSample, balanced_ridge
from research.figures.allowed_noise import single_mu

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.methods import RegressionMethod
    from privselect.regression.noise_source import NoiseSource
    from privselect.regression.sufficient_statistics import SufficientStatistics

    Floats = NDArray[np.float64]


def corrected_ada_ssp(statistics: SufficientStatistics, epsilon: float, delta: float, normals: NoiseSource) -> Floats:
    """Run AdaSSP with its three releases calibrated jointly as one Gaussian."""
    return _answered(AdaSSP(single_mu(epsilon, delta)), statistics, normals)


def corrected_ops_balanced(statistics: SufficientStatistics, epsilon: float, delta: float, normals: NoiseSource) -> Floats:
    """Run OPS-balanced with the published ridge, the right covariance, and the precision that the exact profile allows."""
    ridge = balanced_ridge(statistics.records, statistics.features, epsilon, delta)
    return _answered(ExactPosteriorSample(epsilon, delta, ridge, statistics.records), statistics, normals)


def _answered(recipe: RegressionMethod, statistics: SufficientStatistics, normals: NoiseSource) -> Floats:
    """Return the coefficients; zeros if there is no answer."""
    coefficients = recipe.run(statistics, normals).coefficients
    return np.zeros(statistics.features) if coefficients is None else coefficients
