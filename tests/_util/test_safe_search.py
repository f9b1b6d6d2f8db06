"""Safe searches: every result was evaluated and is on the safe side, after few evaluations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privselect._util.safe_search import BracketedSecant, grid_argmin, solve_epsilon

SCALES = st.floats(1e-6, 600.0)
CLOSE = 4e-4


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


def test_grid_argmin_returns_an_evaluated_argument():
    assert grid_argmin(lambda x: (x - 0.3) ** 2, np.linspace(0.0, 1.0, 5)) == pytest.approx(0.3, abs=1e-6)
    assert grid_argmin(lambda x: np.full_like(x, np.inf), np.array([2.0, 3.0])) == 2.0


# -- bracketed secant -------------------------------------------------------------------------------------------------------


def exponential(_, rate):
    return lambda e: math.exp(-rate * e)


def cliff(edge, power):
    """A bound that falls to 0 at the edge, like the delta of a pure base."""
    return lambda e: max(edge - e, 0.0) ** power


def steps(edge, rate):
    return lambda e: math.exp(-rate * math.floor(8.0 * e / edge) * edge / 8.0)


def all_or_nothing(edge, _):
    return lambda e: 1.0 if e < 0.7 * edge else 0.0


def not_quite_monotone(_, rate):
    """A bound that is not exactly nonincreasing, like one on an adaptive mesh."""
    return lambda e: math.exp(-rate * e + 0.3 * math.sin(50.0 * e))


SHAPES = st.sampled_from([exponential, cliff, steps, all_or_nothing, not_quite_monotone])


class Recorded:
    """A bound that records its evaluations."""

    def __init__(self, bound):
        self.bound, self.values = bound, {}

    def __call__(self, epsilon):
        self.values[epsilon] = self.bound(epsilon)
        return self.values[epsilon]


@given(SHAPES, st.floats(0.01, 30.0), st.floats(0.2, 40.0), st.floats(-40.0, -0.01), st.floats(0.0, 1.2), st.floats(0.2, 1e4))
def test_a_secant_result_was_evaluated_on_the_requested_side(shape, edge, rate, log_delta, guess, slope):
    delta = math.exp(log_delta)
    for direction in ("above", "below"):
        bound = Recorded(shape(edge, min(rate, 20.0 / edge)))
        search = BracketedSecant(bound, delta, slope, CLOSE)
        if direction == "above":
            found = search.from_above(guess * edge, 0.0, edge)
            assert found == edge or bound.values[found] <= delta
        else:
            found = search.from_below(guess * edge, edge)
            assert found == 0.0 or bound.values[found] >= delta
        assert 0.0 <= found <= edge


@given(st.sampled_from([exponential, cliff]), st.floats(0.05, 20.0), st.floats(0.5, 4.0), st.floats(0.02, 0.98))
def test_smooth_bounds_take_few_steps(shape, edge, rate, share):
    curve = shape(edge, rate)
    delta = curve(share * edge)
    bound = Recorded(curve)
    found = BracketedSecant(bound, delta, 1.0, CLOSE).from_above(0.97 * edge, 0.0, edge)
    assert bound.values.get(found, 0.0) <= delta
    assert abs(found - share * edge) <= max(2e-5 * edge, 2.0 * CLOSE / rate * max(1.0, edge))
    assert len(bound.values) <= 24
