import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect._util.safe_search import grid_argmin, solve_epsilon
from privselect.selection.bounds.ratio import max_along_path

SCALES = st.floats(1e-6, 600.0)


@given(SCALES, st.floats(1e-12, 0.9))
def test_the_answer_is_a_point_where_the_inequality_holds_and_near_the_first_one(scale, delta):
    def curve(epsilon):
        return math.exp(-epsilon / scale)

    found = solve_epsilon(curve, delta)
    exact = -scale * math.log(delta)
    if exact > 700.0:
        assert math.isinf(found)
    else:
        assert curve(found) <= delta
        assert found == pytest.approx(exact, rel=1e-9)  # the search stops at 1e-10; the curve itself is right to 1e-16


@given(st.floats(1e-9, 699.0))
def test_a_cliff_is_found_on_its_safe_side(place):
    found = solve_epsilon(lambda epsilon: 1.0 if epsilon < place else 0.0, 1e-6)
    assert place <= found <= place * (1.0 + 1e-9)


def test_few_evaluations_on_a_smooth_curve():
    calls = []

    def curve(epsilon):
        calls.append(epsilon)
        return math.erfc(2.0 * epsilon)

    solve_epsilon(curve, 1e-6)
    assert len(calls) <= 20


def test_nothing_to_find():
    assert solve_epsilon(lambda _: 1e-7, 1e-6) == 0.0
    assert math.isinf(solve_epsilon(lambda _: 1e-5, 1e-6))


def test_least_returns_an_argument_that_was_tried():
    assert grid_argmin(lambda x: (x - 0.3) ** 2, np.linspace(0.0, 1.0, 5)) == pytest.approx(0.3, abs=1e-6)
    assert grid_argmin(lambda x: np.full_like(x, np.inf), np.array([2.0, 3.0])) == 2.0


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
    """``phi'(z) ~ z^degree``: along (1-v) = (1-u)/2 the quotient is 2^degree everywhere, though both ends vanish."""

    def log_weight(x):
        with np.errstate(divide="ignore"):
            return degree * np.log1p(-x)

    path = (np.array([0.0, 0.2, 1.0]), np.array([0.0, 0.6, 1.0]))
    assert max_along_path(log_weight, path) == pytest.approx(degree * math.log(2.0), abs=2e-6)
    below = (path[1], path[0])
    assert max_along_path(log_weight, below) == pytest.approx(0.0, abs=2e-6)


def test_an_epsilon_of_zero_is_said_exactly():
    chosen = ps.Selection(ps.Gaussian(sigma=4), ps.Finite({0: 999, 1: 1}))
    assert chosen.delta_at(0.0).upper < 1e-3
    assert chosen.epsilon_at(1e-2).upper == 0.0
