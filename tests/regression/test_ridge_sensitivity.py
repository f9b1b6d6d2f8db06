"""How far one row moves a ridge regression."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect.regression.ridge_sensitivity import log_norm_sensitivity, solution_norm_bound, solution_sensitivity
from privselect.regression.sufficient_statistics import SufficientStatistics


def ridge_solution(rows, targets, ridge):
    return SufficientStatistics.from_records(np.atleast_2d(rows), np.asarray(targets)).ridge_solution(ridge)


def test_the_published_sensitivity_of_the_log_norm_is_false_and_ours_is_attained():
    # Ten records (1, 1) and one (-1, 1), ridge 1; the last one is taken away.
    rows, targets = np.array([[1.0]] * 10 + [[-1.0]]), np.ones(11)
    before, after = (math.log1p(abs(float(ridge_solution(rows[:n], targets[:n], 1.0)[0]))) for n in (11, 10))
    moved, smallest = abs(after - before), 11.0
    published = math.log1p(1 / (1.0 + smallest))
    assert moved > 1.08 * published
    assert moved == pytest.approx(log_norm_sensitivity(1.0, smallest), rel=1e-12)


@given(st.integers(0, 10**6), st.floats(0.01, 50))
def test_no_row_exceeds_the_bounds(seed, ridge):
    rng = np.random.default_rng(seed)
    features, count = int(rng.integers(1, 4)), int(rng.integers(1, 12))
    rows = rng.normal(size=(count + 1, features)) * rng.choice([0.1, 1, 10])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = np.clip(rng.normal(size=count + 1) * 2, -1, 1)
    larger, smaller = ridge_solution(rows, targets, ridge), ridge_solution(rows[:-1], targets[:-1], ridge)
    for theta, n in ((larger, count + 1), (smaller, count)):
        assert np.linalg.norm(theta) <= solution_norm_bound(n, ridge) * (1 + 1e-9)
    assert np.linalg.norm(larger - smaller) <= solution_sensitivity(count, ridge) * (1 + 1e-9)
    moved = abs(math.log1p(np.linalg.norm(larger)) - math.log1p(np.linalg.norm(smaller)))
    for part in (rows, rows[:-1]):  # at either data set, by its own smallest eigenvalue
        assert moved <= log_norm_sensitivity(ridge, SufficientStatistics.from_records(part, np.zeros(len(part))).smallest_eigenvalue()) * (
            1 + 1e-9
        )


def test_one_row_moves_the_smallest_eigenvalue_by_at_most_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = rng.normal(size=(6, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        values = [SufficientStatistics.from_records(part, np.zeros(len(part))).smallest_eigenvalue() for part in (rows, rows[:-1])]
        assert -1e-12 <= values[0] - values[1] <= 1.0


def test_the_bounds_are_nearly_attained():
    assert float(ridge_solution([[0.1]] * 100, np.ones(100), 1.0)[0]) == pytest.approx(solution_norm_bound(100, 1.0))
    assert float(ridge_solution([[1.0]] * 3, np.ones(3), 12.0)[0]) == pytest.approx(solution_norm_bound(3, 12.0))
    assert abs(float(ridge_solution([[1.0]], [1.0], 9.0)[0])) == pytest.approx(solution_sensitivity(0, 9.0))


def test_without_a_ridge_the_sensitivity_may_be_infinite():
    assert math.isinf(log_norm_sensitivity(0.0, 0.5))
    assert math.isfinite(log_norm_sensitivity(0.0, 1.5))
