"""Two mechanisms on the same data, both outputs released: the bounds enclose what every pair of small mechanisms leaks."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from closed_forms import discrete_hockey, gaussian_hockey
from privselect.mechanisms.gaussian import gaussian_bracket
from privselect.pairs import DominatingPair
from privselect.pairs.pair_product import PairProduct
from small_pairs import SHARES, pair_of, product

EPSILONS = [-720.0, -3.0, -0.5, 0.0, 1e-9, 0.3, 1.0, 2.5, 50.0, 720.0]


def both_sides(first, second):
    return tuple(PairProduct(pair_of(*first), pair_of(*second), side=side) for side in (-1, 1))


@settings(max_examples=400)
@given(SHARES, SHARES, st.lists(st.floats(-20.0, 20.0), max_size=4))
def test_the_bounds_enclose_the_exact_hockey_stick(first, second, more):
    below, above = both_sides(first, second)
    p, q = product(first, second)
    losses = [float(mpmath.log(a / b)) for a, b in zip(p, q, strict=True) if a and b]  # at a loss the outcome may count or not
    for epsilon in [*EPSILONS, *more, *losses]:
        true = discrete_hockey(p, q, epsilon)
        low, high = below.delta(epsilon), above.delta(epsilon)
        assert 0.0 <= low <= true <= high <= 1.0
        assert high - low <= 1e-11


@given(SHARES, SHARES)
def test_the_order_of_the_two_does_not_matter(first, second):
    for one, other in zip(both_sides(first, second), both_sides(second, first), strict=True):
        np.testing.assert_allclose(one.hockey_stick(EPSILONS), other.hockey_stick(EPSILONS), rtol=0.0, atol=1e-11)


@settings(max_examples=200)
@given(SHARES, SHARES, st.sampled_from([1e-1, 1e-3, 1e-6, 1e-10]))
def test_an_epsilon_is_safe_above_and_exceeded_below(first, second, delta):
    p, q = product(first, second)
    below, above = both_sides(first, second)
    low, high = below.epsilon_at(delta), above.epsilon_at(delta)
    assert low >= 0.0
    if np.isfinite(high):
        assert low <= high
        assert discrete_hockey(p, q, high) <= delta
    else:
        leaked = sum(a for a, b in zip(p, q, strict=True) if b == 0)
        assert leaked * (1 + 1e-9) > delta
    if 0.0 < low < np.inf:
        assert discrete_hockey(p, q, low) > delta


@pytest.mark.parametrize(("mu", "other"), [(0.3, 0.4), (1.0, 0.05), (2.0, 1.5)])
def test_two_gaussians_are_one(mu, other):
    first, second = gaussian_bracket(mu), gaussian_bracket(other)
    above = PairProduct(first.upper, second.upper, side=1)
    below = PairProduct(first.lowers[0], second.lowers[0], side=-1)
    for epsilon in (-1.0, 0.0, 0.5, 2.0, 5.0):
        true = gaussian_hockey(float(np.hypot(mu, other)), epsilon)
        assert below.delta(epsilon) <= true <= above.delta(epsilon)
        assert above.delta(epsilon) == pytest.approx(float(true), rel=1e-3, abs=1e-12)


def test_leaks_of_both_add_up():
    leaky = DominatingPair(np.array([0.9]), np.array([1.0]), 0.1, 0.0)
    assert PairProduct(leaky, leaky, side=1).delta(300.0) == pytest.approx(1.0 - 0.9**2, rel=1e-12)
    assert PairProduct(leaky, leaky, side=-1).delta(1e6) == pytest.approx(1.0 - 0.9**2, rel=1e-12)
    assert PairProduct(leaky, leaky, side=1).epsilon_at(0.1) == np.inf


def test_many_epsilons_have_their_shape():
    pair = gaussian_bracket(0.5).upper
    product = PairProduct(pair, pair, side=1)
    grid = np.array([[0.0, 0.5], [1.0, -2.0]])
    found = product.hockey_stick(grid)
    assert found.shape == (2, 2)
    assert found.ravel().tolist() == [product.delta(epsilon) for epsilon in grid.ravel()]
