"""What is wrong with the published variants, and what is not: no data needed."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

from privselect.mechanisms.gaussian import gaussian_delta
from privselect.regression import OPS
from privselect.regression.noise_source import make_noise_source
from privselect.regression.ridge_sensitivity import solution_norm_bound
from privselect.regression.sufficient_statistics import SufficientStatistics
from research.figures.published_regression import (
    published_ada_ssp,
    published_ops_balanced,
    published_ops_numbers,
    published_scale,
)

DELTA = 1e-6


@pytest.mark.parametrize(("epsilon", "factor"), [(1.0, 2.6), (5.0, 25.0)])
def test_one_release_of_ada_ssp_is_not_as_private_as_its_third(epsilon, factor):
    assert gaussian_delta(1.0 / published_scale(epsilon, DELTA), epsilon / 3.0) > factor * DELTA / 3.0


def test_one_release_is_as_private_as_its_third_up_to_epsilon_0_42():
    assert (
        gaussian_delta(1.0 / published_scale(0.41, DELTA), 0.41 / 3.0)
        < DELTA / 3.0
        < gaussian_delta(1.0 / published_scale(0.42, DELTA), 0.42 / 3.0)
    )


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
def test_the_three_together_are_more_private_than_stated(epsilon):
    assert gaussian_delta(math.sqrt(3.0) / published_scale(epsilon, DELTA), epsilon) < 1e-5 * DELTA


def test_where_epsilon_and_delta_are_large_not_even_the_three_together_are():
    assert gaussian_delta(math.sqrt(3.0) / published_scale(20.0, 0.1), 20.0) > 0.2


def test_symmetric_noise_tells_as_much_as_independent_noise():
    row = np.array([0.6, -0.3, 0.2])
    moved = np.outer(row, row)
    # Variances of (A + A')/2: 1 on the diagonal, 1/2 off it, each entry off it there once only.
    told = np.sum(np.diag(moved) ** 2) + 2.0 * np.sum(np.triu(moved, 1) ** 2)
    assert told == pytest.approx(np.sum(moved**2))


@pytest.mark.parametrize("records", [14939, 15641])
def test_ops_balanced_with_the_residual_it_assumes_leaks_more_than_stated(records):
    numbers = published_ops_numbers(records, 17, 1.0, DELTA)
    assumed = 1.0 + min(math.sqrt(records / (2.0 * numbers.ridge)), records / numbers.ridge)
    ridge = numbers.ridge + 1.0
    assert OPS(1.0 / ridge, (numbers.root_precision * assumed) ** 2).delta_at(1.0).lower > 2.0 * DELTA
    # But no residual is as large, so that the right covariance would keep the promise.
    largest = 1.0 + solution_norm_bound(records, ridge)
    assert OPS(1.0 / ridge, (numbers.root_precision * largest) ** 2).delta_at(1.0).upper < DELTA


def test_the_transposed_factor_is_not_private():
    """Two data sets, one with a row more: a half-space whose chances differ by far more than (1, 1e-6)-DP allows."""
    records, epsilon = 15640, 1.0
    numbers = published_ops_numbers(records, 2, epsilon, DELTA)
    ridge = numbers.ridge + 1.0
    strong, weak = np.array([1.0, 1.0]) * math.sqrt(0.5), np.array([1.0, -1.0]) * math.sqrt(0.5)
    small = math.sqrt(ridge / records)
    rows = math.sqrt(1.0 - small**2) * np.outer(np.resize([1.0, -1.0], records), strong) + small * weak
    without = SufficientStatistics.from_records(rows, -np.ones(records))
    more = SufficientStatistics.from_records(np.vstack([rows, weak]), np.append(-np.ones(records), 1.0))
    laws = [published_law(one, numbers) for one in (without, more)]
    towards = np.linalg.solve(laws[0][1], laws[1][0] - laws[0][0])
    (low, low_spread), (high, high_spread) = ((mean @ towards, math.sqrt(towards @ cov @ towards)) for mean, cov in laws)
    cuts = np.linspace(low, high + 3.0 * high_spread, 2001)
    told = ndtr((high - cuts) / high_spread) - math.exp(epsilon) * ndtr((low - cuts) / low_spread)
    assert told.max() > 1e-2


def published_law(statistics, numbers):
    """Mean and covariance of the published sample: ``R'`` in place of R."""
    matrix = statistics.gram + (1.0 + numbers.ridge) * np.eye(2)
    upper = np.linalg.cholesky(matrix).T
    return np.linalg.solve(matrix, statistics.moment), np.linalg.inv(upper @ upper.T) / numbers.root_precision**2


def test_the_published_sampler_has_that_covariance_and_not_the_posterior_s():
    """4000 samples: an estimated variance is off by 2.2% (one deviation); 7 of them, two-sided, less than 3e-12 by the normal law."""
    statistics, draws = SufficientStatistics(np.array([[500.0, 450.0], [450.0, 500.0]]), np.array([300.0, 100.0]), 1000), 4000
    normals = make_noise_source(3)
    numbers = published_ops_numbers(1000, 2, 1.0, DELTA)
    sample = np.array([published_ops_balanced(statistics, 1.0, DELTA, normals) for _ in range(draws)])
    mean, published = published_law(statistics, numbers)
    off = 7.0 * math.sqrt(2.0 / draws)
    assert sample.var(axis=0) == pytest.approx(np.diag(published), rel=off)
    assert sample.mean(axis=0) == pytest.approx(mean, abs=7.0 * math.sqrt(published.max() / draws))
    right = np.linalg.inv(statistics.gram + (1.0 + numbers.ridge) * np.eye(2)) / numbers.root_precision**2
    assert not np.allclose(np.diag(published), np.diag(right), rtol=2.0 * off)


def test_with_much_budget_both_tend_to_ridge_regression():
    generator = np.random.default_rng(5)
    rows = generator.normal(size=(4000, 3))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    statistics = SufficientStatistics.from_records(rows, rows @ np.array([0.5, -0.2, 0.1]))
    fitted = published_ada_ssp(statistics, 1e6, DELTA, make_noise_source(1))
    assert fitted == pytest.approx(statistics.ridge_solution(1.0), abs=1e-3)
    assert published_ops_balanced(statistics, 1e6, DELTA, make_noise_source(1)) == pytest.approx(statistics.ridge_solution(1.0), abs=0.01)
