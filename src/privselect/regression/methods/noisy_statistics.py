"""The sums over records, released with Gaussian noise."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import eigh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.gaussian_sampler import Normals
    from privselect.regression.methods.sufficient_statistics import Statistics

    Floats = NDArray[np.float64]


def noisy_gram(statistics: Statistics, sigma: float, normals: Normals) -> Floats:
    """X'X with symmetric noise: ``sigma`` on the diagonal, ``sigma/sqrt(2)`` beside it.

    Claim: this is a Gaussian mechanism of noise sigma. Proof: a row x moves the sum by xx', and the squares of its entries, each over the
    variance of its noise, are ``(sum_i x_i^4 + 2 sum_{i<j} x_i^2 x_j^2)/sigma^2 = ||x||^4/sigma^2``.
    """
    noise = normals.draw(statistics.features, statistics.features)
    return np.asarray(statistics.gram + 0.5 * sigma * (noise + noise.T))


def noisy_moment(statistics: Statistics, sigma: float, normals: Normals) -> Floats:
    """X'y with noise; a row moves it by at most 1."""
    return np.asarray(statistics.moment + sigma * normals.draw(statistics.features))


def noisy_smallest(statistics: Statistics, sigma: float, normals: Normals, confidence: float) -> float:
    """The least eigenvalue of X'X with noise, so many deviations lower, and at least 0; a row moves it by at most 1 (Weyl)."""
    return max(statistics.smallest() + sigma * (float(normals.draw(1)[0]) - confidence), 0.0)


def solved(gram: Floats, moment: Floats, ridge: float, least: float) -> Floats:
    """``(gram + ridge I)^-1 moment``; X'X has no negative eigenvalue, so noisy ones below 0 are raised to it, and sums to ``least``."""
    values, vectors = eigh(gram)
    return np.asarray(vectors @ (vectors.T @ moment / np.maximum(np.maximum(values, 0.0) + ridge, least)))


def gaussian_sigma(mu: float, releases: int) -> float:
    """The noise of each of so many releases that are together a Gaussian of this mu."""
    return math.sqrt(releases) / mu
