"""A numerical test of each error in docs/errata.md."""

import math

import numpy as np
import pytest
from reference_theorems import selected_masses, selection_divergence
from scipy.special import log_ndtr, ndtr

from privselect.counts import Binomial, Geometric, NegativeBinomial, Poisson
from privselect.mechanisms import Gaussian
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.pairs import DominatingPair, bracket_from_points
from privselect.selection.bounds.paper_bounds import cor_binomial_to_poisson_epsilon, cor_pointwise, lem_gdp, thm_hs_bin, thm_negbin
from privselect.selection.bounds.renyi_bounds import thm_rdp_poisson
from research.theorems.main_theorem import HockeyStick, Power, main_thm


def gaussian(epsilon):
    return Gaussian(sigma=4).brackets[0].upper.hockey_stick(epsilon, side=1)


@pytest.mark.parametrize("eta", [0.5, 1, 5])
def test_cor_pointwise_needs_the_factor_eta_plus_1(eta):
    """A base that reveals everything with probability d and nothing otherwise: the theorem exceeds m d at the printed epsilon."""
    count, d = NegativeBinomial(eta=eta, gamma=0.01), 1e-4
    pair = bracket_from_points([(0.0, d)]).upper
    printed = (eta + 2.0) * 0.0 + d / count.resolved_gamma
    corrected, total = cor_pointwise(0.0, d, count)
    assert float(thm_negbin(pair.hockey_stick, count, printed)) > total * 1.1
    assert float(thm_negbin(pair.hockey_stick, count, corrected)) <= total * (1.0 + 1e-9)


@pytest.mark.parametrize("delta", [1e-6, 1e-2])
def test_lem_gdp_needs_the_mean_under_the_logarithm(delta):
    """For eta > 1 the mean is above 1/gamma: at the printed e_1 the tail bound exceeds delta/m, but the proof needs at most delta/m."""
    sigma, count = 4.0, NegativeBinomial(eta=5, mean=30)
    mean = count.expected()
    assert mean > 1.0 / count.resolved_gamma

    def tail(epsilon):
        return math.exp(-0.5 * (epsilon - 0.5 / sigma**2) ** 2 * sigma**2)

    def first(chance):
        return 0.5 / sigma**2 + math.sqrt(2.0 * math.log(1.0 / chance)) / sigma

    assert tail(first(count.resolved_gamma * delta)) > 2.0 * delta / mean
    assert tail(first(delta / mean)) <= delta / mean * (1.0 + 1e-12)
    assert 7.0 * first(count.resolved_gamma * delta) + delta < lem_gdp(sigma, count, delta)


def test_lem_gdp_loses_the_factor_eta_plus_1():
    """The last step keeps ``log(1 + delta(e_1)/gamma)`` once instead of eta+1 times."""
    count, profile_at_first = Geometric(mean=30), 0.01 / 30
    shift = 2.0 * math.log(1.0 + (1.0 - count.resolved_gamma) / count.resolved_gamma * profile_at_first)  # e_1 = 0 for simplicity
    assert shift > 0.01
    assert shift <= 2.0 * 0.01


def test_lem_composition_rnm_needs_k_fold_composition():
    """Thirty noisy maxima of two queries: the m-fold (twofold) composition is far below the true delta, the k-fold composition is not."""
    m, k, sigma, epsilon = 2, 30, 1.0, 30.0
    # The gap of the two scores is -1 on one data set and +1 on the other; the event: the first query wins every time.
    always, always_there = k * log_ndtr(1.0 / (math.sqrt(2.0) * sigma)), k * log_ndtr(-1.0 / (math.sqrt(2.0) * sigma))
    true_at_least = math.exp(always) - math.exp(epsilon + always_there)

    def gaussian_delta(folds):
        mu = 2.0 * math.sqrt(folds) / sigma
        return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))

    assert true_at_least > 1e-5
    assert m**k * gaussian_delta(m) < 1e-9
    assert m**k * gaussian_delta(k) > true_at_least


def test_thm_hs_bin_has_its_optimum_at_the_constraint_root():
    count = Binomial(n=20, p=0.5)
    first = np.linspace(0.0, 1.0, 20_001)
    allowed = first >= np.log1p(count.p / (1.0 - count.p) * gaussian(first))
    shifts = (count.n - 1) * np.log1p(count.p * (np.expm1(first) + gaussian(first)))
    root = first[allowed][0]
    assert shifts[allowed].argmin() == 0
    assert shifts[allowed][0] == pytest.approx((count.n - 1) * root, rel=1e-3)  # the grid misses the root by half a step
    epsilon = np.array([1.5, 2.0, 2.5])
    scanned = (count.expected() * gaussian(epsilon - shifts[allowed][::50, None])).min(axis=0)
    assert np.all(thm_hs_bin(gaussian, count, epsilon) <= scanned * (1.0 + 1e-9))


def test_cor_binomial_to_poisson_has_its_optimum_at_zero():
    first = np.linspace(0.0, 1.0, 20_001)
    shifts = np.expm1(first) + gaussian(first)
    assert np.all(np.diff(shifts) >= -1e-12)
    assert shifts.argmin() == 0


def test_the_poisson_corollary_is_not_below_renyi_in_all_regimes():
    count = Poisson(mean=10)
    profile_bound = cor_binomial_to_poisson_epsilon(gaussian, count, 1e-6)
    renyi_bound = lem_rdp_to_dp_epsilon(lambda a: thm_rdp_poisson(lambda order: order / 32.0, gaussian, count, a), 1e-6)
    assert profile_bound == pytest.approx(2.1765, rel=1e-3)
    assert renyi_bound == pytest.approx(2.0394, rel=1e-3)
    assert renyi_bound < profile_bound


def test_the_weight_in_the_main_proof_is_the_second_law():
    """``sum f(A/A') A`` is not a hockey stick: it far exceeds the hockey stick, and can exceed 1."""
    p, q, count = np.array([0.5, 0.5]), np.array([0.05, 0.95]), Geometric(mean=3)
    a, b = selected_masses(p, count), selected_masses(q, count)
    events = max(a[0] - b[0], a[1] - b[1], 0.0, a.sum() - b.sum())
    assert np.sum(np.maximum(a / b - 1.0, 0.0) * b) == pytest.approx(events)
    assert selection_divergence(HockeyStick(0.0), p, q, count) == pytest.approx(events)
    assert np.sum(np.maximum(a / b - 1.0, 0.0) * a) > 1.0


def test_the_signs_of_the_remark_on_poisson():
    """Its second line states ``q - q' <= q' (1 - exp(e_1)) + delta(e_1)``; it holds with ``exp(e_1) - 1``."""
    pair = DominatingPair.from_masses([0.6, 0.4], [0.4, 0.6])
    above, above_there = pair.high_nodes  # chances of the same events on both data sets
    for first in (0.1, 0.3, math.log(1.5)):
        delta = float(pair.hockey_stick(first))
        gap = above - above_there
        assert np.any(gap > above_there * (1.0 - math.exp(first)) + delta + 0.05)
        assert np.all(gap <= above_there * (math.exp(first) - 1.0) + delta + 1e-12)


def test_the_outcome_of_no_trial_adds_f_of_1():
    """Equal data sets: the divergence of z^2 is 1, and without ``f(1) P(K=0)`` the right-hand side is the mean, here 1/2."""
    p, count, f = np.array([0.3, 0.7]), Poisson(mean=0.5), Power(2.0)
    none = math.exp(-0.5)
    assert selection_divergence(f, p, p, count) == pytest.approx(1.0)
    assert main_thm(f, p, p, count) - none == pytest.approx(0.5)
    assert main_thm(f, p, p, count) >= 1.0
    # The Renyi bound for Poisson as printed is log(m)/(alpha-1) here: below 0, where no divergence is.
    assert math.log(0.5) < 0.0 <= float(thm_rdp_poisson(np.zeros_like, np.zeros_like, count, 2.0))
