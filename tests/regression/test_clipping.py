"""Clipping, counting and centring of records."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from privselect.errors import ParameterError
from privselect.regression.clipping import RecordBounds, clip_records, noisy_centre, noisy_clipped_count
from privselect.regression.noise_source import make_noise_source

ANY = st.floats(-1.7e308, 1.7e308)
SIZE = st.sampled_from([1e-100, 1e-3, 1.0, 7.0, 1e100])


@given(rows=arrays.arrays(float, (4, 3), elements=ANY), targets=arrays.arrays(float, 4, elements=ANY), row=SIZE, target=SIZE)
def test_every_record_is_within_the_bounds(rows, targets, row, target):
    found = clip_records(rows, targets, RecordBounds(row, target))
    assert np.isfinite(found.rows).all()
    assert (np.sum(found.rows.astype(np.longdouble) ** 2, axis=1) <= 1).all()
    assert (np.abs(found.targets) <= 1).all()


def test_a_row_keeps_its_direction_however_long_it_is():
    found = clip_records(np.array([[3e300, 4e300], [3.0, 4.0], [0.3, 0.4], [0.0, 0.0]]), np.zeros(4), RecordBounds(1.0, 1.0))
    assert np.allclose(found.rows, [[0.6, 0.8], [0.6, 0.8], [0.3, 0.4], [0.0, 0.0]], rtol=1e-11)
    assert found.clipped.tolist() == [True, True, False, False]


def test_a_record_within_the_bounds_is_only_divided_by_them():
    found = clip_records(np.array([[3.0, 0.0]]), np.array([-1.5]), RecordBounds(4.0, 2.0))
    assert (found.rows.tolist(), found.targets.tolist(), found.clipped.tolist()) == ([[0.75, 0.0]], [-0.75], [False])


@pytest.mark.parametrize(("over", "counts"), [(1.0 + 5e-10, False), (1.0 + 2e-9, True)])
def test_excess_by_rounding_is_clipped_and_not_counted(over, counts):
    by_row = clip_records(np.array([[2.0 * over]]), np.zeros(1), RecordBounds(2.0, 1.0))
    by_target = clip_records(np.zeros((1, 1)), np.array([-3.0 * over]), RecordBounds(2.0, 3.0))
    assert by_row.rows[0, 0] <= 1.0
    assert by_target.targets[0] == -1.0
    assert by_row.clipped[0] == by_target.clipped[0] == counts


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf"), 1e101, "1", True])
def test_a_bound_is_a_positive_number(bad):
    with pytest.raises(ParameterError, match=r"`row_bound` must be in \[1e-100, 1e\+100\], got"):
        RecordBounds(bad, 1.0)
    with pytest.raises(ParameterError, match=r"`target_bound` must be"):
        RecordBounds(1.0, bad)


def test_the_count_has_the_stated_noise_and_no_bias():
    clipped, normals, mu = np.arange(100) < 7, make_noise_source(5), 0.1
    drawn = np.array([noisy_clipped_count(clipped, mu, normals) for _ in range(20_000)])
    assert {type(noisy_clipped_count(clipped, mu, normals))} == {int}
    # 6 standard errors, false alarm 2e-9; rounding adds 1/12 to the variance. The variance of 20,000 is within 6 %: false alarm 2e-9.
    assert abs(drawn.mean() - 7) < 6 * 10.0 / 20_000**0.5
    assert abs(drawn.var() / (100 + 1 / 12) - 1) < 0.06
    assert drawn.min() < 0  # not cut off, which would be a bias


def test_the_centre_has_the_stated_noise_and_no_bias():
    rows, targets = np.tile([0.5, -0.25], (100, 1)), np.full(100, 0.75)
    found, normals, mu = clip_records(rows, targets, RecordBounds(1.0, 1.0)), make_noise_source(6), 0.5
    drawn = [noisy_centre(found, RecordBounds(2.0, 3.0), 100, mu, normals) for _ in range(20_000)]
    centres = np.array([[*row, target] for row, target in drawn]) / [2.0, 2.0, 3.0]
    sigma = 2**0.5 / mu / 100
    # As above: three means and three variances, false alarm 1.2e-8 in all.
    assert np.abs(centres.mean(axis=0) - [0.5, -0.25, 0.75]).max() < 6 * sigma / 20_000**0.5
    assert np.abs(centres.var(axis=0) / sigma**2 - 1).max() < 0.06


def test_one_record_moves_the_sums_of_a_centre_by_at_most_the_square_root_of_two():
    rng = np.random.default_rng(0)
    rows, targets = rng.normal(size=(50, 3)), rng.normal(size=50)
    for place in range(50):
        pair = [
            noisy_centre(
                clip_records(rows[kept], targets[kept], RecordBounds(1.0, 1.0)), RecordBounds(1.0, 1.0), 50, 1e3, make_noise_source(1)
            )
            for kept in (np.arange(50) >= 0, np.arange(50) != place)
        ]
        moved = np.hypot(np.linalg.norm(pair[0][0] - pair[1][0]), pair[0][1] - pair[1][1]) * 50
        assert moved <= 2**0.5 * (1 + 1e-9)


def test_a_centre_lies_within_the_bounds_whatever_the_noise():
    found = clip_records(np.ones((3, 2)), np.ones(3), RecordBounds(1.0, 1.0))
    row, target = noisy_centre(found, RecordBounds(2.0, 3.0), 3, 1e-6, make_noise_source(1))
    assert np.linalg.norm(row) <= 2.0 * (1 + 1e-12)
    assert abs(target) <= 3.0
