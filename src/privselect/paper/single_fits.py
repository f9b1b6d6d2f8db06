"""One private regression, without a selection: the corrected variants of what was published."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect.paper.allowed_noise import single_mu
from privselect.regression.ada_ssp import AdaSSP
from privselect.regression.limits import norm_limit
from privselect.regression.posterior import posterior_sample
from privselect.regression.posterior_sample import ExactPosteriorSample, balanced_ridge

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.normals import Normals
    from privselect.regression.statistics import Statistics

    Floats = NDArray[np.float64]


def corrected_ada_ssp(statistics: Statistics, epsilon: float, delta: float, normals: Normals) -> Floats:
    """AdaSSP, its three releases calibrated together as one Gaussian."""
    coefficients = AdaSSP(single_mu(epsilon, delta)).run(statistics, normals).coefficients
    return np.zeros(statistics.features) if coefficients is None else coefficients


def corrected_ops_balanced(statistics: Statistics, epsilon: float, delta: float, normals: Normals) -> Floats:
    """OPS-balanced with the published ridge, the right covariance, and the precision that the exact profile allows."""
    ridge, precision = balanced_precision(statistics.records, statistics.features, epsilon, delta)
    return posterior_sample(statistics, ridge, precision, normals) if precision else np.zeros(statistics.features)


@lru_cache(maxsize=256)
def balanced_precision(records: int, features: int, epsilon: float, delta: float) -> tuple[float, float]:
    """The ridge, and the precision of the sample: as the recipe has it, kept for the next time."""
    ridge = balanced_ridge(records, features, epsilon, delta)
    signal = ExactPosteriorSample(epsilon, delta, ridge, records).signal
    return ridge, signal / (1.0 + norm_limit(records, ridge)) ** 2
