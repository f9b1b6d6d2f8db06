"""The bound of ``max_along_path`` lies above every point of the path, and close to the largest."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect.selection.bounds.ratio import max_along_path


@given(st.lists(st.tuples(st.integers(1, 20), st.integers(0, 20)), min_size=2, max_size=6), st.integers(1, 6), st.floats(1.0, 4.0))
def test_max_along_path_bounds_every_point_and_is_near_one(steps, degree, gain):
    u = np.concatenate([[0.0], np.cumsum([a for a, _ in steps])]) / sum(a for a, _ in steps)
    v = np.concatenate([[0.0], np.cumsum([b for _, b in steps])]) / max(sum(b for _, b in steps), 1)
    v[-1] = 1.0

    def log_weight(x):
        return np.log((1.0 + (1.0 - x) ** degree) / 2.0)

    bound = max_along_path(log_weight, (u, v), gain=gain, cost=1.0)
    place = np.linspace(0.0, len(steps), 4001)
    values = gain * log_weight(np.interp(place, np.arange(len(u)), u)) - log_weight(np.interp(place, np.arange(len(v)), v))
    assert values.max() <= bound <= values.max() + 2e-3  # the 4001 points miss the top by their own spacing


@pytest.mark.parametrize("degree", [1, 2, 7])
def test_a_law_that_vanishes_at_one_is_bounded_by_its_slopes(degree):
    """``phi'(z) ~ z^degree``: along (1-v) = (1-u)/2 the quotient is 2^degree everywhere, although both terms vanish at the end."""

    def log_weight(x):
        with np.errstate(divide="ignore"):
            return degree * np.log1p(-x)

    path = (np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.6, 1.0]))
    assert max_along_path(log_weight, path) == pytest.approx(degree * math.log(2.0), abs=2e-6)
    below = (path[1], path[0])
    assert max_along_path(log_weight, below) == pytest.approx(0.0, abs=2e-6)
