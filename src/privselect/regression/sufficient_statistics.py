"""Sums over records that linear regression needs, their noisy releases, and posterior samples computed from them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, cholesky, eigh, eigvalsh, solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.noise_source import NoiseSource

    Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class SufficientStatistics:
    """``gram`` = X'X and ``moment`` = X'y of rows of norm at most 1 and targets in [-1, 1], with the public number of ``records``.

    They are private: there is no repr.
    """

    gram: Floats
    moment: Floats
    records: int

    @classmethod
    def from_records(cls, rows: Floats, targets: Floats, records: int | None = None) -> SufficientStatistics:
        """Sum over clipped records; ``records`` is a public upper bound on their number, and their own number if None."""
        return cls(rows.T @ rows, rows.T @ targets, len(rows) if records is None else records)

    @property
    def features(self) -> int:
        """Number of columns."""
        return len(self.moment)

    def smallest_eigenvalue(self) -> float:
        """Return the smallest eigenvalue of X'X, which one record moves by at most 1."""
        return max(float(eigvalsh(self.gram, subset_by_index=(0, 0))[0]), 0.0)

    def ridge_solution(self, ridge: float) -> Floats:
        """Return ``(X'X + ridge I)^-1 X'y``, for ridge > 0."""
        return np.asarray(cho_solve(cho_factor(self.gram + ridge * np.eye(self.features)), self.moment))


def noisy_gram(statistics: SufficientStatistics, sigma: float, source: NoiseSource) -> Floats:
    """Return X'X with symmetric noise: ``sigma`` on the diagonal, ``sigma/sqrt(2)`` off the diagonal.

    Claim: this is a Gaussian mechanism of noise sigma. Proof: a row x adds xx' to the sum. The squares of its entries, each divided by the
    variance of its noise, add up to ``(sum_i x_i^4 + 2 sum_{i<j} x_i^2 x_j^2)/sigma^2 = ||x||^4/sigma^2``.
    """
    noise = source.standard_normals(statistics.features, statistics.features)
    return np.asarray(statistics.gram + 0.5 * sigma * (noise + noise.T))


def noisy_moment(statistics: SufficientStatistics, sigma: float, source: NoiseSource) -> Floats:
    """Return X'y with noise; a row moves X'y by at most 1."""
    return np.asarray(statistics.moment + sigma * source.standard_normals(statistics.features))


def noisy_smallest_eigenvalue(statistics: SufficientStatistics, sigma: float, source: NoiseSource, quantile: float) -> float:
    """Return the noisy smallest eigenvalue of X'X, lowered by ``quantile`` standard deviations and at least 0.

    A row moves the eigenvalue by at most 1 (Weyl).
    """
    return max(statistics.smallest_eigenvalue() + sigma * (float(source.standard_normals(1)[0]) - quantile), 0.0)


def solve_noisy_ridge(gram: Floats, moment: Floats, ridge: float, smallest: float) -> Floats:
    """Return ``(gram + ridge I)^-1 moment``, with the eigenvalues of a noisy ``gram`` repaired.

    X'X has no negative eigenvalues, so negative ones of ``gram`` are raised to 0. Eigenvalues plus ridge are raised to ``smallest``.
    """
    values, vectors = eigh(gram)
    return np.asarray(vectors @ (vectors.T @ moment / np.maximum(np.maximum(values, 0.0) + ridge, smallest)))


def sigma_per_release(mu: float, releases: int) -> float:
    """Return the noise of each of several unit-sensitivity releases whose composition is a Gaussian of this mu."""
    return math.sqrt(releases) / mu


def posterior_sample(statistics: SufficientStatistics, ridge: float, precision: float, source: NoiseSource) -> Floats:
    """Sample from ``N(th, (precision H)^-1)``, with ``H = X'X + ridge I`` and ``th = H^-1 X'y``.

    With ``H = R'R`` and R upper triangular, ``R^-1 z`` has the covariance ``R^-1 R^-T = H^-1``. The transposed factor would be wrong:
    ``R^-T z`` has the covariance ``(R R')^-1``, which differs from ``H^-1`` unless H is diagonal.
    """
    factor = cholesky(statistics.gram + ridge * np.eye(statistics.features))
    whitened_mean = solve_triangular(factor, statistics.moment, trans="T")
    return np.asarray(solve_triangular(factor, whitened_mean + source.standard_normals(statistics.features) / np.sqrt(precision)))
