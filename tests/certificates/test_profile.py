"""One Gaussian DP pair above a whole curve, also between its points."""

import numpy as np
import pytest
from example_certificates import PLANS, issued
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import log_ndtr, ndtr

import privselect as ps
from privselect.certificates.model import ApproximateGDP, ProfilePoint
from privselect.certificates.profile import fit_gdp, gdp_covers


def profile(leaky, epsilon):
    clean = ndtr(0.5 * leaky.mu - epsilon / leaky.mu) - np.exp(epsilon + log_ndtr(-0.5 * leaky.mu - epsilon / leaky.mu))
    return leaky.delta + (1.0 - leaky.delta) * clean


@pytest.mark.parametrize("name", ["geometric", "poisson", "leak", "negative binomial"])
def test_the_pair_lies_above_the_curve_of_the_selection(name):
    certificate = issued(name)
    last = certificate.curve[-1].epsilon
    upper = certificate.plan.whole.upper_curve()
    for epsilon in np.linspace(0.0, 1.3 * last, 90).tolist():
        # Both are upper bounds: the computed curve may be above the true one by what its mesh leaves open, 2e-3.
        assert upper(epsilon) * (1.0 - 2e-3) <= profile(certificate.gaussian_dp, epsilon)


def test_the_text_form_of_the_pair_is_a_mechanism_that_dominates():
    certificate = issued("geometric")
    pair = ps.GaussianDP(mu=certificate.gaussian_dp.mu, delta=certificate.gaussian_dp.delta)
    assert pair.epsilon_at(1e-6).upper >= certificate.total.lower


def test_a_gaussian_gets_about_its_own_mu():
    assert issued("one trial").gaussian_dp.mu == pytest.approx(0.25, rel=0.01)  # chords between about fifty points


@pytest.mark.parametrize("name", [name for name in PLANS if name != "everything leaks at first"])
def test_a_smaller_mu_or_leak_does_not_cover(name):
    certificate = issued(name)
    pair = certificate.gaussian_dp
    assert gdp_covers(pair, certificate.curve)
    assert not gdp_covers(ApproximateGDP(mu=pair.mu * (1 - 1e-4), delta=pair.delta), certificate.curve)
    assert pair.delta <= certificate.total.delta


def test_where_everything_may_leak_there_is_no_mu():
    assert issued("everything leaks at first").gaussian_dp is None
    assert fit_gdp((ProfilePoint(epsilon=0.0, delta=1.0), ProfilePoint(epsilon=5.0, delta=0.0)), 1e-6) is None


def test_a_curve_that_ends_above_the_leak_is_not_covered():
    assert not gdp_covers(
        ApproximateGDP(mu=10.0, delta=1e-9), (ProfilePoint(epsilon=0.0, delta=0.1), ProfilePoint(epsilon=1.0, delta=1e-6))
    )


@given(
    st.lists(st.floats(0.001, 2.0), min_size=1, max_size=8),
    st.lists(st.floats(0.0, 6.0), min_size=1, max_size=8),
    st.floats(0.05, 5.0),
    st.floats(1e-9, 0.1),
)
def test_what_covers_lies_above_every_chord(steps, falls, mu, leak):
    size = min(len(steps), len(falls))
    epsilon = np.concatenate([[0.0], np.cumsum(steps[:size])])
    delta = 0.6 * np.exp(-np.concatenate([[0.0], np.cumsum(falls[:size])]))
    delta[-1] = min(delta[-1], leak)
    curve = [ProfilePoint(epsilon=float(e), delta=float(d)) for e, d in zip(epsilon, delta, strict=True)]
    pair = fit_gdp(curve, 10.0 * leak) if mu < 1.0 else ApproximateGDP(mu=mu, delta=leak)
    dense = np.linspace(0.0, epsilon[-1] + 1.0, 400)
    chords = np.interp(np.exp(dense), np.exp(epsilon), delta)
    assert mu >= 1.0 or gdp_covers(pair, curve)
    if gdp_covers(pair, curve):
        assert np.all(profile(pair, dense) >= chords * (1 - 1e-12))
