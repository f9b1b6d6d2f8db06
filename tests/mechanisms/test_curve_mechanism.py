"""Curves: upper bounds on delta, each order of the neighbours apart."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from privselect.errors import ParameterError
from privselect.mechanisms.neighbours import ADD_REMOVE

EPSILONS = np.linspace(0.0, 8.0, 400)
WANTED = "`points` must be triples (epsilon, delta of removing, delta of adding) such as ((0, 0.2, 0.1), (1, 1e-3, 1e-4))"


def test_one_text_form_read_and_written():
    curve = ps.Curve(((0, 0.2, 0.1), (1, 1e-3, 1e-4)), neighbours=ADD_REMOVE)
    assert str(curve) == "curve((0, 0.2, 0.1), (1, 0.001, 0.0001), neighbours=add_remove)"
    assert ps.parse(str(curve)) == curve
    assert curve == ps.Curve(np.array([[0, 0.2, 0.1], [1, 1e-3, 1e-4]]), neighbours=ADD_REMOVE)


def test_a_curve_of_a_mechanism_is_above_it_and_near():
    gaussian = ps.Gaussian(sigma=1)
    delta = gaussian.delta_at(EPSILONS).upper
    curve = ps.Curve(np.column_stack([EPSILONS, delta, delta]))
    assert [bracket.direction for bracket in curve.brackets] == ["both"]
    for wanted in (1e-3, 1e-6, 1e-9):
        found = curve.epsilon_at(wanted)
        assert found.lower is None
        assert gaussian.epsilon_at(wanted).lower <= found.upper <= gaussian.epsilon_at(wanted).upper * 1.001


def test_each_order_of_the_neighbthe_result_is_kept_separate():
    run = ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.05, steps=20)
    remove, add = (bracket.upper.hockey_stick(EPSILONS, side=1) for bracket in run.brackets)
    curve = ps.Curve(np.column_stack([EPSILONS, remove, add]))
    assert [bracket.direction for bracket in curve.brackets] == ["remove", "add"]
    for bracket, values in zip(curve.brackets, (remove, add), strict=True):
        found = bracket.upper.hockey_stick(EPSILONS, side=1)
        assert np.all(found >= values * (1.0 - 1e-12))
        np.testing.assert_allclose(found, values, rtol=1e-2, atol=1e-12)
    chosen = ps.Selection(curve, ps.Geometric(mean=10)).epsilon_at(1e-4).upper
    assert chosen == pytest.approx(ps.Selection(run, ps.Geometric(mean=10)).epsilon_at(1e-4).upper, rel=1e-2)


@given(st.floats(0.0, 20.0), st.floats(0.0, 0.9))
def test_one_guarantee_for_both_orders_is_approximate_dp(epsilon, delta):
    curve, known = ps.Curve(((epsilon, delta, delta),)), ps.Approximate(epsilon=epsilon, delta=delta)
    for asked in (0.0, 0.5 * epsilon, epsilon, epsilon + 1.0, -0.3):
        truth, found = known.delta_at(asked), curve.delta_at(asked)
        assert truth.lower <= found.upper
        assert found.upper == pytest.approx(truth.upper, rel=1e-9, abs=1e-7)  # the finest epsilon is 1e-8, and the slopes above it


def test_epsilons_that_floats_cannot_distinguish():
    close = [(0.0, 0.5, 0.5), (1e-300, 0.4, 0.4), (1.0, 1e-3, 1e-3), (math.nextafter(1.0, 2.0), 1e-4, 1e-4)]
    found = ps.Curve(close).delta_at([0.0, 1e-6, 1.5])
    assert np.all(found.upper >= ps.Points([(epsilon, delta) for epsilon, delta, _ in close]).delta_at([0.0, 1e-6, 1.5]).lower)
    assert found.upper[-1] == pytest.approx(1e-4)


@pytest.mark.parametrize(
    ("points", "sentence"),
    [
        ((), "`curve` needs at least one (epsilon, delta, delta), got none"),
        (None, f"{WANTED}, got None"),
        (((0, 0.1),), "each point must be a triple (epsilon, delta of removing, delta of adding), got (0, 0.1)"),
        (((0, 0.1, 0.1), (0, 0.1, 0.1)), "`curve` needs ascending epsilons, got 0 after 0"),
        (((1, 0.1, 0.1), (0.5, 0.1, 0.1)), "`curve` needs ascending epsilons, got 0.5 after 1"),
        (((-1, 0.1, 0.1),), "`epsilon` must be in [0, 700], got -1"),
        (((1, 0.1, 1.5),), "`delta` must be in [0, 1], got 1.5"),
        (((1, math.nan, 0.5),), "`delta` must be in [0, 1], got nan"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(points, sentence):
    with pytest.raises(ParameterError) as caught:
        ps.Curve(points)
    assert str(caught.value) == sentence
