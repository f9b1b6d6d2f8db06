"""Noise on the integers: held against sums of all outcomes, in many digits."""

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privselect as ps
from closed_forms import approximate_hockey
from privselect.errors import ParameterError
from privselect.mechanisms.discrete_gaussian import gaussian_weights

DIGITS = 60  # deltas below 1e-30 are differences of terms that size, and the sums are near 1


def discrete_gaussian_hockey(sigma, epsilon):
    """Around 1 against around 0, outcome by outcome; beyond 60 sigma the masses are below 1e-780."""
    with mpmath.workdps(DIGITS):
        rate, factor, reach = 1 / (2 * mpmath.mpf(sigma) ** 2), mpmath.exp(mpmath.mpf(epsilon)), int(60 * sigma) + 60
        weights = [mpmath.exp(-k * k * rate) for k in range(reach + 2)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        return mpmath.fsum(max(weights[abs(k - 1)] - factor * weights[abs(k)], 0) for k in range(-reach, reach + 1)) / total


def standings(sigma):
    """Epsilons at which delta goes from near 1/sigma to below 1e-30."""
    return [-1.0, -0.2 / sigma, 0.0, 0.01 / sigma, 0.5 / sigma, 2.0 / sigma, 5.0 / sigma + 0.5 / sigma**2, 11.5 / sigma + 0.5 / sigma**2]


@pytest.mark.parametrize("sigma", [0.03, 0.05, 0.2, 0.5, 1.0, 1.7, 5.0, 20.3, 99.9, 100.5, 151.7])
def test_a_discrete_gaussian_holds_the_sum_of_its_outcomes(sigma):
    epsilon = standings(sigma)
    found = ps.DiscreteGaussian(sigma=sigma).delta_at(epsilon)
    for e, low, high in zip(epsilon, found.lower.tolist(), found.upper.tolist(), strict=True):
        true = discrete_gaussian_hockey(sigma, e)
        assert low <= true <= high
        if sigma < 100 and e < 5 / sigma:  # beyond, a loss may be epsilon itself
            assert low == pytest.approx(high, rel=1e-8)  # the rounding of a sum of thousands


def test_deltas_below_1e_30_keep_their_digits():
    mechanism = ps.DiscreteGaussian(sigma=3)
    for delta in (1e-10, 1e-20, 1e-30):
        found = mechanism.epsilon_at(delta)
        assert discrete_gaussian_hockey(3, found.upper) <= delta <= discrete_gaussian_hockey(3, found.lower)
        assert found.lower == pytest.approx(found.upper, rel=1e-9)


@settings(max_examples=15)
@given(st.floats(0.03, 30.0), st.floats(-3.0, 12.0))
def test_a_discrete_gaussian_of_any_size(sigma, standard):
    epsilon = standard / sigma + 0.5 / sigma**2
    found = ps.DiscreteGaussian(sigma=sigma).delta_at(epsilon)
    assert found.lower <= discrete_gaussian_hockey(sigma, epsilon) <= found.upper


@pytest.mark.parametrize("sigma", [1e3, 1e4, 1e5])
def test_a_wide_one_is_nearly_continuous(sigma):
    """By Poisson summation the two differ by less than exp(-2 pi^2 sigma^2) in each tail, except one outcome's mass, 0.4/sigma of it."""
    wide, smooth = (kind(sigma=sigma) for kind in (ps.DiscreteGaussian, ps.Gaussian))
    for delta in (1e-3 / sigma, 1e-9, 1e-30):
        found, other = wide.epsilon_at(delta), smooth.epsilon_at(delta)
        assert found.lower == pytest.approx(found.upper, rel=1e-4)
        assert found.upper == pytest.approx(other.upper, rel=1e-4 + 1.0 / sigma)
        assert len(wide.brackets[0].upper.p) < 2e4


@pytest.mark.parametrize("sigma", [0.05, 0.3, 1.0, 7.3, 1e4, 1e6])
def test_weights_are_right_to_the_last_digits(sigma):
    k = np.unique(np.floor(np.linspace(0.0, 36.0, 200) * sigma))
    for place, weight in zip(k.tolist(), gaussian_weights(k, sigma).tolist(), strict=True):
        with mpmath.workdps(DIGITS):
            true = mpmath.exp(-(mpmath.mpf(place) ** 2) / (2 * mpmath.mpf(sigma) ** 2))
            assert abs(weight / true - 1) < 4 * 2.0**-53


@pytest.mark.parametrize("sigma", [0.05, 0.4, 1.0, 10.0, 1e4])
def test_the_masses_are_divided_by_the_right_sum(sigma):
    """The sum of all weights is a theta function."""
    with mpmath.workdps(DIGITS):
        # As itself for small sigma, by Poisson summation for large.
        if sigma < 1:
            total = mpmath.jtheta(3, 0, mpmath.exp(-1 / (2 * mpmath.mpf(sigma) ** 2)))
        else:
            total = mpmath.mpf(sigma) * mpmath.sqrt(2 * mpmath.pi) * mpmath.jtheta(3, 0, mpmath.exp(-2 * (mpmath.pi * sigma) ** 2))
        lower = ps.DiscreteGaussian(sigma=sigma).brackets[0].lowers[0]
        width = max(int(0.02 * sigma), 1)
        first = mpmath.fsum(mpmath.exp(-(mpmath.mpf(k) ** 2) / (2 * mpmath.mpf(sigma) ** 2)) for k in range(1, width + 1))
        middle = len(lower.q) // 2  # the outcomes from 1 on
        assert abs(lower.q[middle] * total / first - 1) < (2 * width + 8) * 2.0**-53


@pytest.mark.parametrize("sigma", [1e-300, 1e-3, 1.0 / 37.0])
def test_where_neighbours_have_next_to_nothing_in_common(sigma):
    found = ps.DiscreteGaussian(sigma=sigma).epsilon_at(1e-6)
    assert 500.0 < found.lower < found.upper == np.inf


def test_two_runs_of_a_discrete_gaussian_hold_all_pairs_of_outcomes():
    sigma, epsilon = 1.5, 1.1
    (pair,) = ps.DiscreteGaussian(sigma=sigma).composed_pairs(2)
    with mpmath.workdps(30):
        weights = {k: mpmath.exp(-mpmath.mpf(k * k) / (2 * sigma**2)) for k in range(-31, 32)}
        total = mpmath.fsum(weights.values())
        masses = [(weights[k - 1] / total, weights[k] / total) for k in range(-30, 31)]
        factor = mpmath.exp(epsilon)
        true = mpmath.fsum(max(a * c - factor * b * d, 0) for a, b in masses for c, d in masses)
    assert true <= float(pair.hockey_stick(epsilon, side=1)) <= true * 1.02


def test_a_selection_of_discrete_gaussians_is_proved_from_both_sides():
    found = ps.Selection(ps.DiscreteGaussian(sigma=4), ps.Geometric(mean=30)).epsilon_at(1e-6)
    assert 0.0 < found.lower <= found.upper
    assert found.upper == pytest.approx(1.7886, rel=0.05)  # that of the continuous one


@pytest.mark.parametrize("scale", [1.0 / 700.0, 0.05, 0.5, 2.0, 1e3, 1e9])
def test_a_discrete_laplace_is_randomised_response(scale):
    with mpmath.workdps(DIGITS):
        most = 1 / mpmath.mpf(scale)
    mechanism = ps.DiscreteLaplace(scale=scale)
    for share in (-1.5, -1.0, -0.3, 0.0, 0.2, 0.9, 0.999, 1.0, 1.2):
        epsilon = share / scale
        found = mechanism.delta_at(epsilon)
        assert found.lower <= approximate_hockey(most, 0.0, epsilon) <= found.upper
        assert found.lower == pytest.approx(found.upper, abs=1e-12)


def test_a_discrete_laplace_is_the_sum_of_its_outcomes():
    scale, epsilon = 1.3, 0.4
    with mpmath.workdps(DIGITS):
        weights = [mpmath.exp(-mpmath.mpf(k) / mpmath.mpf(scale)) for k in range(402)]
        total = weights[0] + 2 * mpmath.fsum(weights[1:])
        factor = mpmath.exp(mpmath.mpf(epsilon))
        true = mpmath.fsum(max(weights[abs(k - 1)] - factor * weights[abs(k)], 0) for k in range(-400, 401)) / total
    found = ps.DiscreteLaplace(scale=scale).delta_at(epsilon)
    assert found.lower <= true <= found.upper


@pytest.mark.parametrize("scale", [0.01, 0.5, 4.0, 1e4])
def test_the_renyi_divergence_of_a_discrete_laplace(scale):
    orders = np.array([1.0 + 1e-6, 1.01, 1.5, 2.0, 30.0, 1e4])
    found = ps.DiscreteLaplace(scale=scale).renyi_at(orders)
    for order, value in zip(orders.tolist(), found.tolist(), strict=True):
        with mpmath.workdps(DIGITS):
            a, t = mpmath.mpf(order), mpmath.exp(-1 / mpmath.mpf(scale))
            p, q = 1 / (1 + t), t / (1 + t)
            true = mpmath.log(p**a * q ** (1 - a) + q**a * p ** (1 - a)) / (a - 1)
        assert true <= value <= true * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [0.2, 1.0, 6.0])
def test_the_renyi_divergence_of_a_discrete_gaussian(sigma):
    orders = np.array([1.1, 2.0, 2.5, 17.0])
    found = ps.DiscreteGaussian(sigma=sigma).renyi_at(orders)
    for order, value in zip(orders.tolist(), found.tolist(), strict=True):
        with mpmath.workdps(400):
            rate, a, reach = 1 / (2 * mpmath.mpf(sigma) ** 2), mpmath.mpf(order), int(60 * sigma) + 60
            total = mpmath.fsum(mpmath.exp(-k * k * rate) for k in range(-reach, reach + 1))
            terms = mpmath.fsum(mpmath.exp(-rate * (a * (k - 1) ** 2 + (1 - a) * k * k)) for k in range(-reach, reach + 1))
            true = mpmath.log(terms / total) / (a - 1)
        assert true <= value
        assert value == pytest.approx(float(true), rel=1e-9 if order == int(order) or sigma > 3 else 1.0)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: ps.DiscreteGaussian(sigma=0), "`sigma` must be in (0, 1e+06], got 0"),
        (lambda: ps.DiscreteGaussian(sigma=1e7), "`sigma` must be in (0, 1e+06], got 10000000.0"),
        (lambda: ps.DiscreteGaussian(sigma=float("nan")), "`sigma` must be in (0, 1e+06], got nan"),
        (lambda: ps.DiscreteGaussian(sigma="2"), "`sigma` must be in (0, 1e+06], got '2'"),
        (lambda: ps.DiscreteLaplace(scale=1e-3), "`scale` must be in [0.00142857, inf), got 0.001"),
        (lambda: ps.DiscreteLaplace(scale=float("inf")), "`scale` must be in [0.00142857, inf), got inf"),
    ],
)
def test_invalid_input_is_rejected_in_one_sentence(make, sentence):
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == sentence
