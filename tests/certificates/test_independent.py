"""The numbers of certificates, computed again without the engine that made them.

For a Gaussian base, N(mu, 1) against N(0, 1) with mu = 1/sigma, the functional of the theorem Exact is written down in closed form
and integrated by the trapezoidal rule, maximised over x on a grid at every y. In terms of the thresholds h = the outcome at which
y = Phi(mu - h) of the mass lies above, and l = the one at which x = Phi(l - mu) lies below:

    delta(e) = integral over h of  max over l <= h of ( w(x + y) - e^(e - mu (h - mu/2)) w(Phi(l) + Phi(-h)) )_+  phi(h - mu) dh

with w(u) = phi'(1-u) of the law of K. Nothing here is taken from privselect but the certificate itself.
"""

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import ndtr

import privselect as ps

# Relative, in delta. The rule is of second order in both grids; a test below halves their steps.
QUADRATURE = 1e-4


def truncated(eta, mean):
    def excess(gamma):
        return eta * (1 - gamma) / (gamma * (1 - gamma**eta)) - mean

    gamma = brentq(excess, 1e-9, 0.999, xtol=1e-15)
    return lambda u: mean * (gamma / (gamma + (1 - gamma) * u)) ** (eta + 1)


CASES = {
    "geometric(mean=30)": (4.0, lambda u: 30 * (1 / 30 / (1 / 30 + (29 / 30) * u)) ** 2),
    "negative_binomial(eta=-0.5, mean=30)": (4.0, truncated(-0.5, 30)),
    "negative_binomial(eta=2, mean=10)": (2.0, truncated(2.0, 10)),
    "poisson(mean=10)": (4.0, lambda u: 10 * np.exp(-10 * u)),
    "binomial(n=20, p=0.5)": (3.0, lambda u: 10 * (1 - 0.5 * u) ** 19),
    "geometric(mean=300)": (1.0, lambda u: 300 * (1 / 300 / (1 / 300 + (299 / 300) * u)) ** 2),
}


def quadrature(sigma, weight, epsilon, size=1500):
    mu = 1.0 / sigma
    high = np.linspace(epsilon / mu + 0.5 * mu - 12.0, mu + 9.0, size)  # of lower loss nothing counts: the second weight is at least w(1)
    low = np.linspace(mu - 9.0, mu + 9.0, size)
    y, k = ndtr(mu - high)[:, None], ndtr(-high)[:, None]
    x, g = ndtr(low - mu)[None, :], ndtr(low)[None, :]
    ratio = np.exp(epsilon - mu * (high - 0.5 * mu))[:, None]
    value = weight(np.minimum(x + y, 1.0)) - ratio * weight(np.minimum(g + k, 1.0))
    value = np.where(low[None, :] <= high[:, None], value, -np.inf)
    nothing_below = weight(y[:, 0]) - ratio[:, 0] * weight(k[:, 0])
    best = np.maximum(np.maximum(value.max(axis=1), nothing_below), 0.0)
    return np.trapezoid(best * np.exp(-0.5 * (high - mu) ** 2) / np.sqrt(2 * np.pi), high)


@pytest.mark.parametrize("law", CASES)
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_the_interval_of_a_selection_holds_the_quadrature(law, delta):
    sigma, weight = CASES[law]
    certificate = ps.certify(f"gaussian(sigma={sigma})", law, delta=delta)
    assert quadrature(sigma, weight, certificate.total.upper) <= delta * (1 + QUADRATURE)
    assert quadrature(sigma, weight, certificate.total.lower) >= delta * (1 - QUADRATURE)
    for point in certificate.curve[::6]:
        truth = quadrature(sigma, weight, point.epsilon)
        assert truth <= point.delta * (1 + QUADRATURE) + 1e-14  # differences of weights lose digits below this
        gaussian = leaky(certificate.gaussian_dp, point.epsilon)
        assert truth <= gaussian * (1 + QUADRATURE)


@pytest.mark.parametrize("law", CASES)
def test_the_quadrature_has_the_accuracy_it_claims(law):
    sigma, weight = CASES[law]
    coarse, fine = (quadrature(sigma, weight, 1.2, size) for size in (1500, 3000))
    assert coarse == pytest.approx(fine, rel=QUADRATURE)


@pytest.mark.parametrize("sigma", [0.5, 1, 4, 30])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12])
def test_the_interval_of_one_trial_holds_the_closed_form(sigma, delta):
    certificate = ps.certify(f"gaussian(sigma={sigma})", delta=delta)
    with mpmath.workdps(50):
        for point in certificate.curve:
            assert profile(sigma, point.epsilon) <= point.delta
        assert profile(sigma, certificate.total.upper) <= delta
        if certificate.total.lower > 0.0:
            assert profile(sigma, certificate.total.lower) >= delta
        for epsilon in mpmath.linspace(0, 1.5 * certificate.curve[-1].epsilon, 300):
            assert profile(sigma, epsilon) <= leaky(certificate.gaussian_dp, epsilon)


def profile(sigma, epsilon):
    mu = 1 / mpmath.mpf(sigma)
    return mpmath.ncdf(mu / 2 - epsilon / mu) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


def leaky(pair, epsilon):
    with mpmath.workdps(50):
        return pair.delta + (1 - mpmath.mpf(pair.delta)) * profile(1 / mpmath.mpf(pair.mu), mpmath.mpf(epsilon))
