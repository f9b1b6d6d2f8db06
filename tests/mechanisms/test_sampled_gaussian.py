"""One step on a batch without replacement: its curve, real data sets below it, and several steps of them."""

from itertools import combinations

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privselect as ps
from closed_forms import gaussian_hockey
from privselect.errors import NeighbourError, ParameterError
from privselect.mechanisms.gaussian import normal_cells
from privselect.mechanisms.neighbours import REPLACE_ONE

DIGITS = 60
LINE = [-3.0, -0.5, -0.01, 0.0, 1e-4, 0.01, 0.2, 1.0, 3.0, 6.0]


def envelope(noise_multiplier, batch_size, records, epsilon):
    """``r H(1 + (a-1)/r)`` for a >= 1, and the reverse below."""
    with mpmath.workdps(DIGITS):
        if epsilon < 0:
            factor = mpmath.exp(mpmath.mpf(epsilon))
            return 1 - factor + factor * envelope(noise_multiplier, batch_size, records, -epsilon)
        rate = mpmath.mpf(batch_size) / records
        inner = mpmath.log1p(mpmath.expm1(mpmath.mpf(epsilon)) / rate)
        return rate * gaussian_hockey(2 / mpmath.mpf(noise_multiplier), inner)


@pytest.mark.parametrize("noise_multiplier", [0.3, 1.0, 4.0, 30.0])
@pytest.mark.parametrize(("batch_size", "records"), [(1, 3), (256, 60_000), (9, 10), (10, 10), (1, 10**7)])
def test_one_step_holds_the_curve_and_is_tight(noise_multiplier, batch_size, records):
    found = ps.SampledGaussian(noise_multiplier, batch_size, records).delta_at(LINE)
    for e, low, high in zip(LINE, found.lower.tolist(), found.upper.tolist(), strict=True):
        true = envelope(noise_multiplier, batch_size, records, e)
        assert low <= true <= high
        assert low == pytest.approx(high, rel=5e-3, abs=1e-9)


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-30])
def test_epsilon_holds_the_curve(delta):
    found = ps.SampledGaussian(1.1, 256, 60_000).epsilon_at(delta)
    assert envelope(1.1, 256, 60_000, found.upper) <= delta <= envelope(1.1, 256, 60_000, found.lower)
    assert found.lower == pytest.approx(found.upper, rel=1e-3)


def test_every_record_sampled_is_the_gaussian_of_twice_the_sensitivity():
    whole, plain = ps.SampledGaussian(4, 7, 7), ps.Gaussian(sigma=2)
    assert whole.epsilon_at(1e-6).upper == pytest.approx(plain.epsilon_at(1e-6).upper, rel=1e-4)
    assert whole.delta_at(0.3).upper == pytest.approx(plain.delta_at(0.3).upper, rel=1e-3)


def real_pair(data, other, batch_size, noise_multiplier):
    """Masses of cells of the noisy sum of a random batch: a post-processing, so below what the mechanism leaks."""
    z = np.linspace(-40.0, 40.0, 1601)

    def masses(values):
        sums = [sum(batch) for batch in combinations(values, batch_size)]
        return sum(normal_cells(z - total / noise_multiplier) for total in sums) / len(sums)

    return masses(data), masses(other)


@settings(max_examples=40)
@given(st.lists(st.floats(-1.0, 1.0), min_size=2, max_size=5), st.floats(-1.0, 1.0), st.integers(1, 5), st.floats(0.3, 5.0))
def test_no_data_leak_more_than_the_curve(data, replacement, batch_size, noise_multiplier):
    size = min(batch_size, len(data))
    mechanism = ps.SampledGaussian(noise_multiplier, size, len(data))
    p, q = real_pair(data, [replacement, *data[1:]], size, noise_multiplier)
    for epsilon, high in zip(LINE, mechanism.delta_at(LINE).upper.tolist(), strict=True):
        # Sums of 1600 cells, each a difference of tails.
        assert np.maximum(p - np.exp(epsilon) * q, 0.0).sum() <= high + 1e-13
        assert np.maximum(q - np.exp(epsilon) * p, 0.0).sum() <= high + 1e-13


@pytest.mark.parametrize(("noise_multiplier", "batch_size", "records"), [(1.0, 1, 3), (2.0, 3, 10), (0.7, 1, 100)])
def test_two_steps_hold_what_real_steps_leak_in_any_orders(noise_multiplier, batch_size, records):
    """In each step the replaced record, or the one that replaces it, may be the one unlike all others: neither order alone is worst."""
    mechanism = ps.SampledGaussian(noise_multiplier, batch_size, records)
    (upper,) = mechanism.composed_pairs(2)
    z = np.linspace(-8.0, 8.0 + 2.0 / noise_multiplier, 400)
    base, moved = normal_cells(z), normal_cells(z - 2.0 / noise_multiplier)
    rate = batch_size / records
    one = ((1.0 - rate) * base + rate * moved, base)
    for first in (one, one[::-1]):
        for second in (one, one[::-1]):
            p, q = (np.outer(first[i], second[i]).ravel() for i in (0, 1))
            for epsilon in (-0.5, 0.0, 0.1, 0.7, 2.0):
                assert np.maximum(p - np.exp(epsilon) * q, 0.0).sum() <= float(upper.hockey_stick(epsilon, side=1)) + 1e-12


@pytest.mark.parametrize(("noise_multiplier", "batch_size", "records"), [(1.0, 1, 3), (2.0, 3, 10), (4.0, 256, 60_000)])
def test_the_renyi_bound_is_above_the_real_divergence(noise_multiplier, batch_size, records):
    mechanism = ps.SampledGaussian(noise_multiplier, batch_size, records)
    orders = np.array([1.01, 1.5, 2.0, 8.0])
    p, q = mechanism.brackets[0].lowers[0].p, mechanism.brackets[0].lowers[0].q
    for order, bound in zip(orders.tolist(), mechanism.renyi_at(orders).tolist(), strict=True):
        for one, other in ((p, q), (q, p)):
            assert np.log(np.sum(one * (one / other) ** (order - 1.0))) / (order - 1.0) <= bound + 1e-12
    assert np.all(mechanism.renyi_at(orders) <= ps.Gaussian(sigma=noise_multiplier / 2).renyi_at(orders))


def test_it_is_stated_for_replacing_a_record():
    mechanism = ps.SampledGaussian(1, 10, 100)
    assert mechanism.neighbours == REPLACE_ONE
    with pytest.raises(NeighbourError, match="replace_one"):
        ps.Mixture(((0.5, mechanism), (0.5, ps.DPSGD(noise_multiplier=2, sampling_probability=0.1, steps=10))))
    found = ps.Selection(mechanism, ps.Geometric(mean=5)).epsilon_at(1e-6)
    assert 0.0 < found.lower <= found.upper


def test_almost_no_noise():
    mechanism = ps.SampledGaussian(1e-3, 1, 4)
    assert mechanism.delta_at(1.0).upper == pytest.approx(0.25)
    assert mechanism.epsilon_at(0.1).upper == np.inf
    assert mechanism.epsilon_at(0.3).upper == 0.0


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ps.SampledGaussian(1, 11, 10), "`batch_size` must be at most `records`, got 11 of 10"),
        (lambda: ps.SampledGaussian(0, 1, 10), "`noise_multiplier` must be in (0, inf), got 0"),
        (lambda: ps.SampledGaussian(1, 0, 10), "`batch_size` must be an integer >= 1 and <= 1000000000000000, got 0"),
        (lambda: ps.SampledGaussian(1, 2.5, 10), "`batch_size` must be an integer >= 1 and <= 1000000000000000, got 2.5"),
        (lambda: ps.SampledGaussian(1, 2, "10"), "`records` must be an integer >= 1 and <= 1000000000000000, got '10'"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence
