"""Private regressions as published in 2018, with the constants and factors of their code: **for comparison only, do not use**.

They show that the published numbers can be reproduced, and what the corrections change. Both take sums over records whose rows have
norm at most 1 and whose targets lie within [-1, 1], and both first add 1 to the diagonal of X'X. Each docstring says what is wrong:
the argument for AdaSSP fails (its guarantee holds for another reason), and OPS-balanced is not private as stated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cholesky, solve, solve_triangular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.noise_source import NoiseSource
    from privselect.regression.sufficient_statistics import SufficientStatistics

    Floats = NDArray[np.float64]

_MISS = 0.05  # failure probability of the published bounds on the noise; affects utility only


@dataclass(frozen=True, slots=True)
class PublishedOPS:
    """The parameters of OPS-balanced as published: the ridge in addition to the 1 on the diagonal, and the square root of the precision."""

    ridge: float
    root_precision: float


def published_scale(epsilon: float, delta: float) -> float:
    """Return the deviation of each of the three releases of AdaSSP, ``sqrt(log(6/delta))/(epsilon/3)``.

    It was meant to make each release, of sensitivity 1, (epsilon/3, delta/3)-DP. It does not: the factor of the classical Gaussian
    mechanism is ``sqrt(2 log(1.25/(delta/3)))``. At delta 1e-6 the exact profile exceeds delta/3 by a factor of 2.6 at epsilon 1 and
    of 25 at epsilon 5. Up to epsilon 0.41 it does not exceed delta/3.
    """
    return math.sqrt(math.log(6.0 / delta)) / (epsilon / 3.0)


def published_ada_ssp(statistics: SufficientStatistics, epsilon: float, delta: float, normals: NoiseSource) -> Floats:
    """Run AdaSSP as its code does.

    What is wrong: above epsilon 0.42 no release keeps its third of the budget (:func:`published_scale`), so the argument fails. The
    three together are Gaussian with ``mu = sqrt(3)/scale``. For epsilon up to 5 their exact profile is far below delta, so the
    guarantee holds for another reason, with more noise than needed. Joint calibration is more accurate. The noise on X'X, ``(A +
    A')/2``, is correct: off the diagonal it has half the variance, but each entry occurs twice, so a row that moves X'X by 1 in
    Frobenius norm is hidden as by independent noise.
    """
    features, scale = statistics.features, published_scale(epsilon, delta)
    gram = statistics.gram + np.eye(features)
    wanted = scale * math.sqrt(features * math.log(2.0 * features**2 / _MISS))
    smallest = float(np.linalg.eigvalsh(gram)[0]) + scale * float(normals.standard_normals(1)[0]) - math.log(6.0 / delta) / (epsilon / 3.0)
    ridge = max(0.0, wanted - max(smallest, 0.0))
    moment = statistics.moment + scale * normals.standard_normals(features)
    square = normals.standard_normals(features, features)
    noisy = gram + scale * 0.5 * (square + square.T) + ridge * np.eye(features)
    return np.asarray(solve(noisy, moment, assume_a="sym"))


def published_ops_numbers(records: int, features: int, epsilon: float, delta: float) -> PublishedOPS:
    """Return the ridge and the precision of OPS-balanced as its code computes them.

    What is wrong: they come from a false bound on the leak, ``sqrt(precision L^2 log(2/delta)/ridge) + precision L^2/(2(ridge+1)) + (1
    + log(2/delta))/(2 ridge) <= epsilon``. The code drops the factor 1/2 of the middle term, which compensates for a part of it. With
    a residual of the L assumed here the exact delta is 2.2e-6 instead of 1e-6, at epsilon 1. No residual is as large as that L
    (``solution_norm_bound``), so a sample with the right covariance would keep the guarantee.
    """
    told, chance = math.log(2.0 / delta), math.log(1.0 / _MISS)
    reach = min(0.5 * epsilon, math.sqrt(0.5 * epsilon))
    cost = (0.5 * features + math.sqrt(features * chance) + chance) * told / reach**2
    ridge = max((0.5 * cost * records) ** (1.0 / 3.0), (1.0 + told) / epsilon)
    slope = min(math.sqrt(records) / math.sqrt(2.0 * ridge), records / ridge) + 1.0
    a, b, c = slope**2 / (ridge + 1.0), slope * math.sqrt(told / ridge), (1.0 + told) / (2.0 * ridge) - epsilon
    return PublishedOPS(ridge, (-b + math.sqrt(b * b - 4.0 * a * c)) / (2.0 * a))


def published_ops_balanced(statistics: SufficientStatistics, epsilon: float, delta: float, normals: NoiseSource) -> Floats:
    """Run OPS-balanced as its code does.

    What is wrong: the precision (:func:`published_ops_numbers`) and the sample. With ``H = R'R`` the code solves with R' instead of R,
    so the covariance is ``(R R')^-1`` over the precision, not ``H^-1``. It has the same eigenvalues in other directions, and can be
    narrow in the directions in which a record moves the mean most. There are neighbours with delta above 0.01 instead of the claimed
    1e-6 (``tests/research/figures/test_published_regression.py``).
    """
    numbers = published_ops_numbers(statistics.records, statistics.features, epsilon, delta)
    upper = cholesky(statistics.gram + (1.0 + numbers.ridge) * np.eye(statistics.features))
    middle = solve_triangular(upper, solve_triangular(upper, statistics.moment, trans="T"))
    noise = solve_triangular(upper, normals.standard_normals(statistics.features), trans="T")
    return np.asarray(middle + noise / numbers.root_precision)
