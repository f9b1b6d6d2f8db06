"""How far one row moves a ridge regression."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect.regression.methods.sufficient_statistics import Statistics
from privselect.regression.ridge_sensitivity import log_norm_sensitivity, norm_limit, solution_sensitivity


def solved(rows, targets, ridge):
    return Statistics.of(np.atleast_2d(rows), np.asarray(targets)).solution(ridge)


def test_the_published_sensitivity_of_the_log_norm_is_false_and_ours_is_attained():
    # Ten records (1, 1) and one (-1, 1), ridge 1; the last one is taken away.
    rows, targets = np.array([[1.0]] * 10 + [[-1.0]]), np.ones(11)
    before, after = (math.log1p(abs(float(solved(rows[:n], targets[:n], 1.0)[0]))) for n in (11, 10))
    moved, smallest = abs(after - before), 11.0
    published = math.log1p(1 / (1.0 + smallest))
    assert moved > 1.08 * published
    assert moved == pytest.approx(log_norm_sensitivity(1.0, smallest), rel=1e-12)


@given(st.integers(0, 10**6), st.floats(0.01, 50))
def test_no_row_exceeds_the_limits(seed, ridge):
    rng = np.random.default_rng(seed)
    features, count = int(rng.integers(1, 4)), int(rng.integers(1, 12))
    rows = rng.normal(size=(count + 1, features)) * rng.choice([0.1, 1, 10])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = np.clip(rng.normal(size=count + 1) * 2, -1, 1)
    larger, smaller = solved(rows, targets, ridge), solved(rows[:-1], targets[:-1], ridge)
    for theta, n in ((larger, count + 1), (smaller, count)):
        assert np.linalg.norm(theta) <= norm_limit(n, ridge) * (1 + 1e-9)
    assert np.linalg.norm(larger - smaller) <= solution_sensitivity(count, ridge) * (1 + 1e-9)
    moved = abs(math.log1p(np.linalg.norm(larger)) - math.log1p(np.linalg.norm(smaller)))
    for part in (rows, rows[:-1]):  # at either of the two, by its own least eigenvalue
        assert moved <= log_norm_sensitivity(ridge, Statistics.of(part, np.zeros(len(part))).smallest()) * (1 + 1e-9)


def test_one_row_moves_the_least_eigenvalue_by_at_most_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows = rng.normal(size=(6, 3))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        ends = [Statistics.of(part, np.zeros(len(part))).smallest() for part in (rows, rows[:-1])]
        assert -1e-12 <= ends[0] - ends[1] <= 1.0


def test_the_limits_are_nearly_attained():
    assert float(solved([[0.1]] * 100, np.ones(100), 1.0)[0]) == pytest.approx(norm_limit(100, 1.0))
    assert float(solved([[1.0]] * 3, np.ones(3), 12.0)[0]) == pytest.approx(norm_limit(3, 12.0))
    assert abs(float(solved([[1.0]], [1.0], 9.0)[0])) == pytest.approx(solution_sensitivity(0, 9.0))


def test_without_a_ridge_nothing_is_bounded():
    assert math.isinf(log_norm_sensitivity(0.0, 0.5))
    assert math.isfinite(log_norm_sensitivity(0.0, 1.5))
