"""One sample from the posterior of a ridge regression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics

    Floats = NDArray[np.float64]


def posterior_sample(statistics: Statistics, ridge: float, precision: float, normals: Normals) -> Floats:
    """``N(th, (precision H)^-1)``, with ``H = X'X + ridge I`` and ``th = H^-1 X'y``.

    With ``H = R'R``, R upper triangular, ``R^-1 z`` has the covariance ``R^-1 R^-T = H^-1``. The other factor would not do: ``R^-T z`` has
    ``(R R')^-1``, which is another matrix unless H is diagonal.
    """
    upper = cholesky(statistics.gram + ridge * np.eye(statistics.features))
    middle = solve_triangular(upper, statistics.moment, trans="T")
    return np.asarray(solve_triangular(upper, middle + normals.draw(statistics.features) / np.sqrt(precision)))
