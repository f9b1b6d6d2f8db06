"""Upper and lower discrete pairs of continuous ones, against closed forms with 40 digits, without tolerance."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privselect as ps
from closed_forms import discrete_hockey, gaussian_hockey, laplace_hockey
from privselect.mechanisms.gaussian import gaussian_bracket, normal_cells
from privselect.pairs import connect_the_dots, merge_cells


def check_gaussian(mu, upper, lower, epsilons):
    for e in epsilons:
        true = gaussian_hockey(mu, e)
        assert float(lower.hockey_stick(e, side=-1)) <= true, f"mu={mu}, epsilon={e!r}"
        assert true <= float(upper.hockey_stick(e, side=1)), f"mu={mu}, epsilon={e!r}"


def line(mu):
    """Return epsilons around the mean loss, far in both tails, and at 0."""
    reach = np.concatenate([np.linspace(-12.0, 12.0, 31), [-36.0, -30.0, -20.0, 20.0, 30.0, 36.0]])
    epsilon = mu * (reach + 0.5 * mu)
    return [0.0, 1e-12, -1e-12, *epsilon[np.abs(epsilon) < 699.0].tolist()]


@pytest.mark.parametrize("mu", [1e-6, 0.01, 0.25, 1.0, 3.0, 10.0, 25.0, 30.0])
@pytest.mark.parametrize("cell", [0.01, 0.3, 1.5])
def test_a_gaussian_lies_between_its_brackets(mu, cell):
    bracket = gaussian_bracket(mu, cell)
    check_gaussian(mu, bracket.upper, bracket.lowers[0], line(mu))


@pytest.mark.parametrize("mu", [37.0, 45.0, 80.0, 300.0, 5000.0])
def test_noise_too_small_to_matter_stays_sound(mu):
    """Losses beyond the range of floats: the bounds remain valid."""
    bracket = gaussian_bracket(mu)
    check_gaussian(mu, bracket.upper, bracket.lowers[0], [-650.0, -10.0, 0.0, 10.0, 300.0, 650.0])


@pytest.mark.parametrize("mu", [0.25, 2.0])
def test_at_the_knots_both_curves_are_the_truth(mu):
    z = np.array([-3.0, -1.2, -0.9, 0.0, 0.1, 0.8, 2.5, 4.0])
    losses = mu * (z - 0.5 * mu)
    p, q = normal_cells(z - mu), normal_cells(z)
    upper, lower = connect_the_dots(losses, p, q), merge_cells(p, q)
    check_gaussian(mu, upper, lower, line(mu))
    for e in losses.tolist():
        true = float(gaussian_hockey(mu, e))
        # Masses of cells, with an absolute error of a few units in the last place of 1.
        assert float(upper.hockey_stick(e)) == pytest.approx(true, rel=1e-10, abs=1e-15)
        assert float(lower.hockey_stick(e)) == pytest.approx(true, rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("scale", [0.01, 0.1, 0.5, 1.0, 4.0, 100.0])
def test_a_laplace_lies_between_its_brackets(scale):
    (bracket,) = ps.Laplace(scale=scale).brackets
    most = 1.0 / scale
    for e in [0.0, *(most * np.linspace(-1.5, 1.5, 61)).tolist(), most, -most, np.nextafter(most, 0.0)]:
        true = laplace_hockey(scale, e)
        assert float(bracket.lowers[0].hockey_stick(e, side=-1)) <= true
        assert true <= float(bracket.upper.hockey_stick(e, side=1))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 50)), min_size=3, max_size=12),
    st.lists(st.floats(-3.0, 3.0), min_size=1, max_size=5, unique_by=lambda x: round(x, 3)),
)
def test_dots_connected_over_any_discrete_pair_lie_above_and_cells_below(weights, knots):
    """A discrete pair lies between both constructions for any cells."""
    p, q = ([Fraction(w, sum(side)) for w in side] for side in zip(*weights, strict=True))
    ends = np.sort(np.array(knots))
    losses = np.array([float(np.log(float(a / b))) for a, b in zip(p, q, strict=True)])
    cell = np.searchsorted(ends, losses)
    cell_p, cell_q = (np.bincount(cell, weights=[float(x) for x in masses], minlength=len(ends) + 1) for masses in (p, q))
    upper = connect_the_dots(ends, cell_p, cell_q)
    lower = merge_cells(cell_p, cell_q)
    for e in np.concatenate([np.linspace(-5.0, 5.0, 21), ends, losses]).tolist():
        true = discrete_hockey(p, q, e)
        assert float(lower.hockey_stick(e, side=-1)) <= true <= float(upper.hockey_stick(e, side=1))
    for pair in (upper, lower):
        assert pair.p.sum() + pair.p_only == pytest.approx(1.0, abs=1e-14)
        assert pair.q.sum() + pair.q_only == pytest.approx(1.0, abs=1e-14)


def test_mass_exactly_on_a_knot_stays_there():
    knots = np.array([-1.0, 0.0, 1.0])
    atoms = np.array([0.2, 0.3, 0.5])
    pair = connect_the_dots(knots, np.zeros(4), np.zeros(4), atoms)
    np.testing.assert_allclose(pair.losses, knots, atol=1e-15)
    np.testing.assert_array_equal(pair.p, atoms)


def test_cells_that_underflow_in_one_law_are_not_called_infinite_losses():
    lower = merge_cells(np.array([0.0, 0.5, 0.5, 1e-320]), np.array([1e-310, 0.9, 0.1, 0.0]))
    assert (lower.p_only, lower.q_only) == (0.0, 0.0)
    upper = connect_the_dots(np.array([-1.0, 0.0, 1.0]), np.array([0.0, 0.2, 0.5, 0.3]), np.array([0.1, 0.4, 0.5, 0.0]))
    assert upper.p_only >= 0.3
    assert upper.q_only >= 0.1
