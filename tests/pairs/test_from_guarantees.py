"""**Points**: the worst pair that satisfies a few guarantees."""

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import privselect as ps
from closed_forms import DIGITS, approximate_hockey
from privselect.pairs import bracket_from_points

POINT = st.tuples(st.floats(0.0, 20.0), st.one_of(st.floats(0.0, 0.9), st.floats(-40.0, -1.0).map(lambda x: 10.0**x)))


def hull_hockey(points, epsilon):
    """Return the lower convex hull, in a = e^epsilon, of all guarantees: breakpoints (0, 1), (1/b, 1 - (1-d)/b), (b, d), and level.

    Sums of positive terms only: heights as small as 1e-300 keep their digits.
    """
    with mpmath.workdps(DIGITS):
        corners = [(mpmath.mpf(0), mpmath.mpf(1))]
        for e, d in points:
            b, leak = mpmath.exp(mpmath.mpf(e)), mpmath.mpf(d)
            corners += [(1 / b, (mpmath.expm1(mpmath.mpf(e)) + leak) / b), (b, leak)]
        least = min(height for _, height in corners)
        corners = sorted([*corners, (mpmath.exp(mpmath.mpf(10**6)), least)])
        a = mpmath.exp(mpmath.mpf(epsilon))
        # The height of the hull at a is the smallest height of all chords over a.
        chords = [(h0 * (a1 - a) + h1 * (a - a0)) / (a1 - a0) for a0, h0 in corners for a1, h1 in corners if a0 < a < a1]
        return min([height for at, height in corners if at == a] + chords)


def assert_inside(bracket, epsilon, true):
    (lower,) = bracket.lowers
    assert float(lower.hockey_stick(epsilon, side=-1)) <= true <= float(bracket.upper.hockey_stick(epsilon, side=1))


@given(POINT, st.lists(st.floats(-25.0, 25.0), max_size=5))
def test_one_point_is_randomised_response_with_a_leak(point, more):
    bracket = bracket_from_points([point])
    pair = bracket.upper
    for e in [*more, 0.0, point[0], -point[0]]:
        assert_inside(bracket, e, approximate_hockey(*point, e))
    assert pair.p_only == pytest.approx(point[1], rel=1e-15)
    assert pair.q_only == pytest.approx(point[1], rel=1e-15)
    assert float(pair.hockey_stick(point[0] + 1e-9)) == pytest.approx(point[1], rel=1e-12)


@example([(0.0, 2.225073858507203e-309), (8.0, 0.0)], [])
@example([(0.5, 1e-25), (20.0, 0.0), (3.0, 1e-320)], [])
@given(st.lists(POINT, min_size=1, max_size=5), st.lists(st.floats(-25.0, 25.0), max_size=5))
def test_several_points_are_the_hull_of_what_each_allows(points, more):
    bracket = bracket_from_points(points)
    for e in [*more, 0.0, *(e for e, _ in points), *(-e for e, _ in points)]:
        true = hull_hockey(points, e)
        assert_inside(bracket, e, true)
        assert_inside(bracket.reverse, e, true)
    for pair in (bracket.upper, *bracket.lowers):
        assert pair.p.sum() + pair.p_only == pytest.approx(1.0, abs=1e-14)
        assert pair.q.sum() + pair.q_only == pytest.approx(1.0, abs=1e-14)
    for e, d in points:
        assert float(bracket.lowers[0].hockey_stick(e, side=-1)) <= d


@pytest.mark.parametrize("points", [[(0.1, 1e-3), (1.0, 1e-9)], [(0.5, 1e-5), (3.0, 1e-30), (8.0, 0.0)], [(0.0, 0.2), (0.7, 1e-40)]])
def test_each_informative_point_is_kept_exactly(points):
    pair = bracket_from_points(points).upper
    for e, d in points:
        # A loss lies on the point: step past its rounding. Masses of 1e-40 keep their precision.
        assert float(pair.hockey_stick(e * (1.0 + 1e-13) + 1e-13)) == pytest.approx(d, rel=1e-9, abs=1e-300)


def test_an_implied_point_changes_nothing():
    alone, both = bracket_from_points([(1.0, 1e-6)]).upper, bracket_from_points([(1.0, 1e-6), (2.0, 0.1), (1.0, 1e-6)]).upper
    np.testing.assert_allclose(both.p, alone.p, rtol=1e-15)
    np.testing.assert_allclose(both.q, alone.q, rtol=1e-15)


@pytest.mark.parametrize("epsilon", [0.0, 1e-300, 1e-9, 700.0])
@pytest.mark.parametrize("delta", [0.0, 1e-300, 0.5, 1.0 - 2.0**-53])
def test_the_ends_of_the_range(epsilon, delta):
    bracket = bracket_from_points([(epsilon, delta)])
    for e in (-700.0, 0.0, 0.5, 700.0):
        assert_inside(bracket, e, approximate_hockey(epsilon, delta, e))


def test_masses_too_small_for_a_float_are_leaks_above_and_nothing_below():
    """The outcome of loss 700 has mass 1e-25 under one distribution and 1e-329, which underflows, under the other."""
    bracket = bracket_from_points([(0.5, 1e-25), (700.0, 0.0)])
    for e in (0.0, 0.5, 50.0, 600.0, 700.0):
        assert_inside(bracket, e, hull_hockey([(0.5, 1e-25), (700.0, 0.0)], e))
    assert float(bracket.upper.hockey_stick(600.0)) == pytest.approx(1e-25)


def test_a_curve_of_many_points_in_an_array():
    gaussian = ps.Gaussian(sigma=1)
    epsilon = np.linspace(0.0, 10.0, 500)
    shuffled = np.random.default_rng(1).permutation(np.column_stack([epsilon, gaussian.delta_at(epsilon).upper]))
    points = ps.Points(shuffled)
    assert len(points.points) == 500
    for delta in (1e-3, 1e-6, 1e-12):
        assert gaussian.epsilon_at(delta).lower <= points.epsilon_at(delta).upper <= gaussian.epsilon_at(delta).upper * 1.001


def test_points_on_one_line_and_points_twice():
    pair = bracket_from_points([(1.0, 0.0), (1.0, 0.1), (2.0, 0.0), (0.0, 0.5), (0.0, 0.5)]).upper
    # The points (1, 0) and (0, 1/2) imply the others.
    small = bracket_from_points([(0.0, 0.5), (1.0, 0.0)]).upper
    np.testing.assert_array_equal(pair.p, small.p)
    np.testing.assert_array_equal(pair.q, small.q)
