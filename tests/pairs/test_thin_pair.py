"""A pair with fewer outcomes dominates the given one, and is hardly larger."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privselect as ps
from closed_forms import discrete_hockey
from privselect.mechanisms.gaussian import gaussian_bracket
from privselect.pairs.thin_pair import thin_upper
from small_pairs import SHARES, pair_of

TRAINING = ps.DPSGD(noise_multiplier=1.1, sampling_probability=0.02, steps=400)
PAIRS = [
    gaussian_bracket(0.25).upper,
    gaussian_bracket(3.0).upper,
    *(bracket.upper for bracket in TRAINING.brackets),
    ps.GaussianDP(mu=0.5, delta=1e-7).brackets[0].upper,
    ps.Laplace(scale=0.5).brackets[0].upper,
]


@pytest.mark.parametrize("step", [0.02, 0.04, 0.3, 3.0])
@pytest.mark.parametrize("pair", PAIRS, ids=["gaussian", "leaky gaussian", "remove", "add", "gdp with a leak", "laplace"])
def test_it_dominates_in_both_orders(pair, step):
    thin = thin_upper(pair, step)
    middle = 0.5 * (thin.losses[1:] + thin.losses[:-1])
    line = np.unique(np.concatenate([thin.losses, middle, np.linspace(-8.0, 8.0, 501), [-720.0, 720.0]]))
    # The true pair lies above the rounding down of its floats, and a pair that dominates must not fall below that.
    assert np.all(thin.hockey_stick(line, side=1) >= pair.hockey_stick(line, side=-1))
    assert np.all(thin.reverse.hockey_stick(line, side=1) >= pair.reverse.hockey_stick(line, side=-1))
    assert len(thin.p) <= len(pair.p)


@given(SHARES, st.sampled_from([0.04, 0.5, 5.0]))
def test_a_small_pair_is_dominated_exactly(laws, step):
    thin = thin_upper(pair_of(*laws), step)
    for epsilon in (-3.0, -0.4, 0.0, 0.2, 1.0, 4.0):
        assert discrete_hockey(*laws, epsilon) <= thin.hockey_stick(epsilon, side=1)


@pytest.mark.parametrize("pair", PAIRS[:4], ids=["gaussian", "leaky gaussian", "remove", "add"])
def test_it_is_much_smaller_and_hardly_larger_in_value(pair):
    thin = thin_upper(pair, 0.04)
    assert len(thin.p) < len(pair.p)
    deltas = np.array([1e-2, 1e-5, 1e-10])
    np.testing.assert_allclose(thin.epsilon_at(deltas, side=1), pair.epsilon_at(deltas, side=1), rtol=5e-4)
