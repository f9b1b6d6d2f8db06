"""The proven interval is narrow: upper/lower - 1 is below 1e-3 for delta <= 1e-5."""

import math

import pytest

import privselect as ps

DELTAS = [1e-5, 1e-6, 1e-9]
BASES = [
    ps.Gaussian(sigma=4),
    ps.Gaussian(sigma=1),
    ps.Laplace(scale=4),
    ps.Laplace(scale=1),
    ps.Pure(epsilon=0.7),
    ps.Approximate(epsilon=0.4, delta=1e-9),
]
COUNTS = [
    ps.Geometric(mean=30),
    ps.Geometric(mean=300),
    ps.NegativeBinomial(eta=-0.5, mean=30),
    ps.NegativeBinomial(eta=0, mean=30),
    ps.NegativeBinomial(eta=0.5, mean=30),
    ps.NegativeBinomial(eta=5, mean=30),
    ps.Poisson(mean=10),
]
MNIST = ps.DPSGD(noise_multiplier=1.1, sampling_probability=256 / 60_000, steps=14_063)
CIFAR = ps.DPSGD(noise_multiplier=21.1, sampling_probability=16_384 / 50_000, steps=250)


def check(base, count, deltas):
    leak = max(bracket.upper.p_only for bracket in base.brackets)
    found = ps.Selection(base, count).epsilon_at(deltas)
    for delta, low, high in zip(deltas, found.lower.tolist(), found.upper.tolist(), strict=True):
        if delta <= leak * count.expected():
            continue  # a leak in any of m trials: no epsilon need be finite
        assert math.isfinite(high)
        assert high / low - 1.0 < 1e-3, f"{base}, {count}, delta={delta}: {low} to {high}"


@pytest.mark.parametrize("count", COUNTS, ids=str)
@pytest.mark.parametrize("base", BASES, ids=str)
def test_the_interval_is_narrow_at_one_in_a_million(base, count):
    check(base, count, [1e-6])


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS, ids=str)
@pytest.mark.parametrize("base", BASES, ids=str)
def test_the_interval_is_narrow(base, count):
    check(base, count, DELTAS)


def test_the_step_of_selection_leaves_little_open_for_dpsgd():
    assert ps.Selection(CIFAR, ps.Geometric(mean=300)).selection_gap(1e-6) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("count", COUNTS, ids=str)
@pytest.mark.parametrize("training", [MNIST, CIFAR], ids=["mnist", "cifar"])
def test_the_step_of_selection_leaves_little_open(training, count):
    for delta in (1e-5, 1e-6):
        assert ps.Selection(training, count).selection_gap(delta) < 1e-3
