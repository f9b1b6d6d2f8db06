"""Probabilities, means and quantiles of the laws of K, and special cases of one law that equal another."""

import dataclasses
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from counts_laws import ONE, SMALL_LAWS, caps, etas, laws
from counts_reference import DIGITS, exact, log_dpgf, truncated_below
from hypothesis import assume, example, given
from hypothesis import strategies as st

from privselect.counts import Binomial, Finite, Fixed, Geometric, Logarithmic, NegativeBinomial, Poisson


def everything(law):
    """Return all relevant k and their probabilities; the rest has probability below 1e-30."""
    top = law.largest if law.largest is not None else 3 * law.quantile(1 - 1e-15) + 3
    k = np.arange(0, top + 1)
    return k, np.exp(law.log_pmf(k))


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_probabilities_sum_to_one_and_give_the_mean(law):
    k, p = everything(law)
    assert math.fsum(p) == pytest.approx(1, abs=2e-14)  # each term has an error of a few units
    assert math.fsum(k * p) == pytest.approx(law.expected(), rel=1e-12)
    assert law.probability_of_zero() == pytest.approx(p[0], rel=1e-12)


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_log_dpgf_is_the_sum_over_the_probabilities(law):
    k, p = everything(law)
    k, p = k[1:], p[1:]
    for u in (0.0, 1e-9, 0.01, 0.3, 1.0):
        assert math.fsum(k * p * (1.0 - u) ** (k - 1.0)) == pytest.approx(math.exp(law.log_dpgf(u)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("law", SMALL_LAWS, ids=str)
def test_quantiles_against_brute_force(law):
    k, p = everything(law)
    below = np.cumsum(p)
    for q in (1e-9, 0.01, 0.1001, 0.2499, 0.5001, 0.7501, 0.9001, 0.99, 0.999999):
        assert law.quantile(q) == k[np.searchsorted(below, q)]
    if law.largest is not None:
        assert law.quantile(1) == law.largest


def test_quantiles_at_ties():
    assert Geometric(gamma=0.5).quantile(0.5) == 1
    assert Geometric(gamma=0.5).quantile(0.75) == 2
    assert Binomial(n=1, p=0.5).quantile(0.5) == 0
    assert Finite({0: 1, 5: 9}).quantile(0.1) == 0
    assert Finite({0: 1, 5: 9}).quantile(0.1000001) == 5


@pytest.mark.parametrize("mean", [1e5, 1e9])
@pytest.mark.parametrize("eta", [-0.9, -0.5, -1e-12, 0.0, 0.5, 1.0, 5.0])
def test_quantiles_of_large_laws(eta, mean):
    law = NegativeBinomial(eta=eta, mean=mean)
    for q in (0.3, 0.5, 0.9, 0.99, 1 - 1e-9):
        k = law.quantile(q)
        assert mp.mpf(q) - truncated_below(law, k) < 2e-13
        if k > 1:
            assert mp.mpf(q) - truncated_below(law, k - 1) > -2e-13


@pytest.mark.parametrize("law", [Poisson(mean=1e9), Binomial(n=2 * 10**9, p=0.5)], ids=str)
def test_quantiles_of_broad_bells(law):
    spread = math.sqrt(law.expected() if isinstance(law, Poisson) else law.expected() / 2)
    for q, z in ((0.5, 0.0), (0.8413447460685429, 1.0), (0.022750131948179212, -2.0)):
        assert law.quantile(q) == pytest.approx(law.expected() + z * spread, abs=2)  # Edgeworth: (z^2-1)/6 off the normal


@pytest.mark.parametrize("k", [1, 2, 10, 1000, 10**6, 10**9, 10**12])
@pytest.mark.parametrize("eta", [-0.9, -0.5, -1e-12, 0.0, 0.5, 5.0, 1000.0])
def test_truncated_probabilities_against_the_definition(eta, k):
    law = NegativeBinomial(eta=eta, mean=1e9)
    with mp.workdps(DIGITS):
        gamma, shape = exact(law.resolved_gamma), exact(eta)
        head = shape / mp.expm1(-shape * mp.log(gamma)) if shape else -1 / mp.log(gamma)
        rest = mp.loggamma(k + shape) - mp.loggamma(1 + shape) - mp.loggamma(k + 1)
        wanted = k * mp.log1p(-gamma) + mp.log(head) + rest
        # A few units of the log and of its terms.
        assert float(law.log_pmf(k) - wanted) == pytest.approx(0, abs=1e-12 + 1e-15 * abs(float(wanted)))


@pytest.mark.parametrize("k", [0, 1, 10, 10**6, 10**9 - 100_000, 10**9, 10**9 + 3000, 2 * 10**9])
def test_poisson_and_binomial_probabilities_against_the_definition(k):
    with mp.workdps(DIGITS):
        m, n = mp.mpf(10**9), 2 * 10**9
        poisson = k * mp.log(m) - m - mp.loggamma(k + 1)
        assert float(Poisson(mean=1e9).log_pmf(k) - poisson) == pytest.approx(0, abs=1e-12 + 1e-15 * abs(float(poisson)))
        p, ways = exact(0.3), mp.loggamma(n + 1) - mp.loggamma(k + 1) - mp.loggamma(n - k + 1)
        binomial = ways + k * mp.log(p) + (n - k) * mp.log(1 - p)
        assert float(Binomial(n=n, p=0.3).log_pmf(k) - binomial) == pytest.approx(0, abs=1e-12 + 1e-15 * abs(float(binomial)))


@pytest.mark.parametrize("law", [Geometric(mean=3), Poisson(mean=3, cap=9), Fixed(k=3), Finite({3: 1})], ids=str)
def test_impossible_values_have_probability_zero(law):
    impossible = np.array([-1.0, 0.5, 2.5, np.inf, np.nan, 1e300])
    assert np.all(np.exp(law.log_pmf(impossible)) == 0.0)
    assert law.log_pmf(np.zeros((2, 3))).shape == (2, 3)


@given(laws, st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_phi_prime_falls_as_u_grows(law, u):
    values = law.log_dpgf(sorted(u))
    # Neighbouring u may differ by less than the rounding of the values.
    slack = 2e-12 + 1e-14 * np.abs(np.where(np.isfinite(values[:-1]), values[:-1], 0.0))
    assert all(b <= a + s for (a, b), s in zip(itertools.pairwise(values), slack, strict=True))


@given(laws)
def test_phi_prime_at_one_is_the_mean(law):
    assert math.exp(law.log_dpgf(0.0)) == pytest.approx(law.expected(), rel=1e-12)
    assert law.expected() <= (law.largest or math.inf) * (1 + 1e-12)


@given(laws)
def test_phi_prime_at_zero_is_the_probability_of_one(law):
    assert float(law.log_dpgf(1.0)) == pytest.approx(float(law.log_pmf(1)), rel=1e-12, abs=1e-12)


@given(laws, st.floats(1e-6, 1 - 1e-6))
def test_the_quantile_inverts(law, q):
    k = law.quantile(q)
    assume(k < 10**5)
    sums = np.cumsum(np.exp(law.log_pmf(np.arange(k + 1))))
    assert sums[-1] >= q - 1e-12
    assert k == 0 or sums[-2] < q + 1e-12


@given(etas, st.floats(1, 1e4), st.floats(0, 1))
def test_a_far_cap_changes_nothing(eta, mean, u):
    law = NegativeBinomial(eta=eta, mean=mean)
    far = NegativeBinomial(eta=eta, mean=mean, cap=10**15)
    assume(law.quantile(1 - 1e-15) < 10**13)
    assert float(far.log_dpgf(u)) == pytest.approx(float(law.log_dpgf(u)), rel=1e-13, abs=1e-12)


@given(st.floats(1e-3, 1e4), st.floats(0, 1))
def test_a_far_cap_changes_nothing_for_poisson_and_binomial(mean, u):
    far = 2 * round(mean + 20 * math.sqrt(mean)) + 60
    assert float(Poisson(mean=mean, cap=far).log_dpgf(u)) == pytest.approx(float(Poisson(mean=mean).log_dpgf(u)), rel=1e-13, abs=1e-12)
    binomial, capped = (Binomial(n=10**6, p=mean / 10**6, cap=cap) for cap in (None, far))
    assert float(capped.log_dpgf(u)) == pytest.approx(float(binomial.log_dpgf(u)), rel=1e-13, abs=1e-12)


@given(laws, st.integers(1, 3000))
@example(NegativeBinomial(eta=-0.5, mean=1e4), 257)
@example(Poisson(mean=300.0), 257)
def test_a_cap_divides_by_the_probability_it_keeps(law, cap):
    assume(law.cap is None and not isinstance(law, (Fixed, Finite)))
    capped = dataclasses.replace(law, cap=cap)
    k = np.arange(0, min(cap, capped.largest) + 1)
    whole = law.log_pmf(k)
    top = whole.max()
    assume(top > -500)
    kept = top + math.log(math.fsum(np.exp(whole - top)))
    possible = np.isfinite(whole)
    assert np.allclose(capped.log_pmf(k)[possible], whole[possible] - kept, rtol=1e-13, atol=1e-11)


@given(st.floats(1e-3, 50), st.floats(0, 1))
def test_binomial_tends_to_poisson(mean, u):
    n = 10**9
    # (n-1) log(1 - m u/n) = -m u + O((m u + m^2 u^2)/n), and p = fl(m/n) adds a rounding of m u.
    distance = abs(float(Binomial(n=n, p=mean / n).log_dpgf(u) - Poisson(mean=mean).log_dpgf(u)))
    assert distance <= (mean * u + (mean * u) ** 2) / n + 1e-12


@given(st.floats(1e-9, 1), st.floats(0, 1))
def test_the_family_has_geometric_and_logarithmic_as_members(gamma, u):
    assert float(NegativeBinomial(eta=1, gamma=gamma).log_dpgf(u)) == float(Geometric(gamma=gamma).log_dpgf(u))
    assert float(NegativeBinomial(eta=0, gamma=gamma).log_dpgf(u)) == float(Logarithmic(gamma=gamma).log_dpgf(u))


@given(st.floats(1e-9, 1), st.floats(-1e-9, 1e-9), st.floats(0, 1), caps)
def test_continuity_at_eta_zero(gamma, eta, u, cap):
    near, at = NegativeBinomial(eta=eta, gamma=gamma, cap=cap), Logarithmic(gamma=gamma, cap=cap)
    # d/d eta of log phi' is at most about 2 log(1/gamma) < 42.
    assert float(near.log_dpgf(u)) == pytest.approx(float(at.log_dpgf(u)), rel=0, abs=42 * abs(eta) + 1e-12)
    assert near.expected() == pytest.approx(at.expected(), rel=42 * abs(eta) + 1e-12)
    assert float(near.log_pmf(3)) == pytest.approx(float(at.log_pmf(3)), rel=1e-12, abs=42 * abs(eta) + 1e-12)


@pytest.mark.parametrize("law", ONE, ids=str)
def test_one_trial_is_no_selection(law):
    assert np.all(law.log_dpgf(np.array([0.0, 1e-300, 0.3, 1.0])) == 0.0)
    assert law.expected() == 1.0
    assert law.probability_of_zero() == 0.0
    assert law.quantile(0.5) == law.quantile(1) == law.largest == law.sample() == 1
    assert float(law.log_pmf(1)) == 0.0


def test_poisson_capped_at_one_is_a_coin():
    law = Poisson(mean=3, cap=1)
    assert law.expected() == pytest.approx(0.75, rel=1e-15)
    assert law.probability_of_zero() == pytest.approx(0.25, rel=1e-15)


@pytest.mark.parametrize("mean", [1.0, 1.0 + 2.0**-52, 1.0001, 2.0, 30.0, 300.0, 1e6, 1e9])
@pytest.mark.parametrize("eta", [-0.9, -0.5, -1e-12, 0.0, 1e-12, 0.5, 1.0, 5.0, 1000.0])
def test_gamma_is_found_from_the_mean(eta, mean):
    law = NegativeBinomial(eta=eta, mean=mean)
    # One unit of gamma moves the mean by about (1+eta) (mean/gamma) units; near gamma = 1 that is the grid of floats.
    assert law.expected() == pytest.approx(mean, rel=(3 + abs(eta)) * 2.0**-51)
    assert float(log_dpgf(law, 0)) == pytest.approx(math.log(law.expected()), abs=1e-14, rel=1e-15)


def test_the_largest_k():
    assert Geometric(mean=3).largest is None
    assert Geometric(mean=3, cap=9).largest == 9
    assert Binomial(n=20, p=0.5).largest == 20
    assert Binomial(n=20, p=0.5, cap=30).largest == 20
    assert Binomial(n=20, p=0.5, cap=3).largest == 3
    assert Finite({0: 1, 5: 9, 11: 4}, cap=7).largest == 5
    assert Fixed(k=8).largest == 8


def test_weights_are_shares_or_probabilities():
    assert Finite({0: 1, 5: 9}) == Finite({5: 0.9, 0: 0.1}) == Finite({0: 2, 5: 18, 7: 0}) == Finite(((0, 1), (5, 9)))
    assert hash(Finite({0: 1, 5: 9})) == hash(Finite({5: 0.9, 0: 0.1}))
    assert Finite({0: 0.1, 1: 0.2, 2: 0.7}).pmf == ((0, 1), (1, 2), (2, 7))


def test_a_law_can_be_copied_with_another_cap():
    assert dataclasses.replace(Finite({0: 1, 5: 9, 11: 4}), cap=7) == Finite({0: 1, 5: 9, 11: 4}, cap=7)
    assert dataclasses.replace(Geometric(mean=30), cap=7) == Geometric(mean=30, cap=7)


def test_samplers_are_exact():
    assert all(law.sampling_error == 0.0 for law in SMALL_LAWS)
