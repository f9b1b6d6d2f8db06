"""What the tests of drawn noise share: chi-square against an exact distribution, and entropy that can be run again."""

import random

import numpy as np
from scipy.special import gammaincc
from scipy.stats import gumbel_r, laplace, norm

from privselect.noisy_max.sampling.rejection_sampler import Density

CDF = {
    Density.NORMAL: norm.cdf,
    Density.LAPLACE: laplace.cdf,
    Density.EXPONENTIAL: lambda z: -np.expm1(-np.maximum(z, 0.0)),
    Density.GUMBEL: gumbel_r.cdf,
}
TAIL = {Density.NORMAL: norm.sf, Density.LAPLACE: laplace.sf, Density.EXPONENTIAL: lambda z: np.exp(-z), Density.GUMBEL: gumbel_r.sf}


def seeded(seed):
    return random.Random(seed)  # noqa: S311 -- a test that can be run again


def chi_square(found, shares):
    """The p-value of counts against probabilities; cells that expect less than 20 are joined with their neighbours."""
    counts, wanted = [0.0], [0.0]
    for count, share in zip(found, shares, strict=True):
        if wanted[-1] >= 20:
            counts.append(0.0)
            wanted.append(0.0)
        counts[-1] += count
        wanted[-1] += share * np.sum(found)
    if wanted[-1] < 20 and len(wanted) > 1:
        counts[-2:], wanted[-2:] = [sum(counts[-2:])], [sum(wanted[-2:])]
    square = sum((c - w) ** 2 / w for c, w in zip(counts, wanted, strict=True))
    return float(gammaincc((len(counts) - 1) / 2, square / 2)) if len(counts) > 1 else 1.0


def placed(staircase, drawn, entropy):
    """The noise as floats in units of the noise, each box refined far beyond a float's digits."""
    values = np.empty(len(drawn))
    for i in range(len(drawn)):
        place = drawn.box(i, staircase.grid)
        place.refine(entropy)
        values[i] = float(staircase.grid.exact_bounds(place)[0])
    return values


def whole_shares(shape, scale, most):
    """The masses at -most ... most, with all that lies beyond at the ends."""
    k = np.arange(-100 * most - 2000, 100 * most + 2001)
    with np.errstate(over="ignore", under="ignore"):
        weights = shape.density(k / scale)
    weights /= weights.sum()
    middle = weights[np.abs(k) < most]
    return np.concatenate([[weights[k <= -most].sum()], middle, [weights[k >= most].sum()]])
