"""Reference epsilons at delta = 1e-6, reproduced within 0.1%: one table with Gaussian trials, one with DP-SGD trials."""

import numpy as np
import pytest

import privselect as ps
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.selection.bounds.paper_bounds import cor_binomial_to_poisson_epsilon, thm_hs_bin_epsilon, thm_negbin_epsilon
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.bounds.renyi_bounds import interpolate_renyi_curve, thm_rdp_negbin, thm_rdp_poisson

DELTA = 1e-6
WITHIN = 1e-3  # the numbers below are printed with four digits

#      law                                        RDP     paper   Ratio   Exact
GAUSSIAN = [
    (ps.Geometric(mean=30), 2.5551, 2.2883, 1.8868, 1.7886),
    (ps.Geometric(mean=300), 3.0442, 2.7938, 2.3773, 2.2473),
    (ps.Geometric(mean=3000), 3.4536, 3.2136, 2.8111, 2.6640),
    (ps.NegativeBinomial(eta=-0.5, mean=30), 1.8027, 1.6833, 1.5830, 1.5425),
    (ps.NegativeBinomial(eta=0, mean=30), 2.0746, 1.9078, 1.6990, 1.6362),
    (ps.NegativeBinomial(eta=5, mean=30), 4.0851, 3.3369, 2.3814, 2.1838),
    (ps.Poisson(mean=10), 2.0394, 2.1765, 2.1765, 1.9698),
    (ps.Binomial(n=20, p=0.5), None, 2.4895, 2.4895, 2.1922),
]

MNIST = ps.DPSGD(noise_multiplier=1.1, sampling_probability=256 / 60_000, steps=14_063)
CIFAR = ps.DPSGD(noise_multiplier=21.1, sampling_probability=16_384 / 50_000, steps=250)
#   training, mean, base, RDP, paper, Exact
DPSGD = [(MNIST, 30, 2.697, 5.998, 5.379, 4.379), (CIFAR, 300, 1.045, 3.004, 2.755, 2.210)]


def near(value):
    return pytest.approx(value, rel=WITHIN)


def profile(mechanism):
    """The maximum over both orders of the neighbours."""
    return lambda epsilon: np.maximum.reduce([bracket.upper.hockey_stick(epsilon, side=1) for bracket in mechanism.brackets])


def renyi_curve(mechanism):
    if not isinstance(mechanism, ps.DPSGD):
        return mechanism.renyi_at
    orders = np.concatenate([np.arange(1.1, 3.0, 0.05), np.arange(3.0, 12.0, 0.25), np.arange(12, 130)])
    return interpolate_renyi_curve(orders, mechanism.renyi_at(orders))  # all orders would take a minute


def renyi_epsilon(mechanism, count):
    curve = renyi_curve(mechanism)
    if isinstance(count, ps.Poisson):
        return lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_poisson(curve, profile(mechanism), count, alpha), DELTA)
    return lem_rdp_to_dp_epsilon(lambda alpha: thm_rdp_negbin(curve, count, alpha), DELTA)


def paper_epsilon(mechanism, count):
    theorem = {ps.Poisson: cor_binomial_to_poisson_epsilon, ps.Binomial: thm_hs_bin_epsilon}.get(type(count), thm_negbin_epsilon)
    return theorem(profile(mechanism), count, DELTA)


@pytest.mark.parametrize(("count", "renyi", "paper", "ratio", "exact"), GAUSSIAN, ids=str)
def test_a_gaussian_base(count, renyi, paper, ratio, exact):
    base = ps.Gaussian(sigma=4)
    if renyi is not None:
        assert renyi_epsilon(base, count) == near(renyi)
    assert paper_epsilon(base, count) == near(paper)
    assert max(ratio_epsilon(bracket.upper, count, DELTA) for bracket in base.brackets) == near(ratio)
    found = ps.Selection(base, count).epsilon_at(DELTA)
    assert found.lower == near(exact)
    assert found.upper == near(exact)
    assert found.lower <= found.upper


def test_a_gaussian_alone():
    found = ps.Gaussian(sigma=4).epsilon_at(DELTA)
    assert found.lower == near(1.0607)
    assert found.upper == near(1.0607)


def test_three_hundred_trials_to_a_fiftieth_of_a_percent():
    found = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=300)).epsilon_at(DELTA)
    assert found.lower == pytest.approx(2.2473, rel=2e-4)
    assert found.upper == pytest.approx(2.2473, rel=2e-4)


def test_epsilon_is_not_monotone_in_the_cap():
    """1.7890 at cap 120 against 1.7886 without: the two intervals are disjoint."""
    capped = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30, cap=120)).epsilon_at(DELTA)
    free = ps.Selection(ps.Gaussian(sigma=4), ps.Geometric(mean=30)).epsilon_at(DELTA)
    assert capped.lower == pytest.approx(1.7890, rel=1e-4)
    assert capped.upper == pytest.approx(1.7890, rel=1e-4)
    assert free.upper < capped.lower


@pytest.mark.parametrize(("training", "mean", "base", "renyi", "paper", "exact"), DPSGD, ids=["mnist", "cifar"])
def test_dpsgd(training, mean, base, renyi, paper, exact):
    count = ps.Geometric(mean=mean)
    assert training.epsilon_at(DELTA).upper == near(base)
    assert renyi_epsilon(training, count) == near(renyi)
    assert paper_epsilon(training, count) == near(paper)
    assert ps.Selection(training, count).epsilon_at(DELTA).upper == near(exact)


def test_exact_at_300_trials_costs_less_than_the_paper_at_30():
    paper = paper_epsilon(CIFAR, ps.Geometric(mean=30))
    assert paper == near(2.256)
    assert ps.Selection(CIFAR, ps.Geometric(mean=300)).epsilon_at(DELTA).upper < paper
