"""The maximum over all leverages, and the largest signal under a target."""

import mpmath
import numpy as np
import pytest

import privselect as ps
from privselect.mechanisms.gaussian import gaussian_delta
from privselect.regression.ops.calibration import _rounded_up, _target_knots, largest_mu, largest_signal, signal_for_dp
from privselect.regression.ops.ops_profile import with_over_without, without_over_with
from privselect.regression.ops.worst_leverage import _delta_bound_below, _maximum, is_under_limits, worst_deltas

CASES = [(1e-4, 30.0), (0.01, 20.0), (0.1, 5.0), (0.4, 1.0), (0.4, 0.01), (2.0, 0.5), (2.0, 30.0)]


@pytest.mark.parametrize(("leverage", "signal"), CASES)
def test_no_row_exceeds_the_upper_bound_and_one_nearly_attains_it(leverage, signal):
    epsilon = np.linspace(0, 6 * np.sqrt(leverage * signal) + 3 * leverage, 25)
    worst = worst_deltas(leverage, signal, epsilon, 1e-50)
    some = leverage * np.concatenate([np.linspace(1e-3, 1, 2000), np.geomspace(1e-12, 1e-3, 200)])[:, None]
    for direction, upper, lower in zip((with_over_without, without_over_with), worst.uppers, worst.lowers, strict=True):
        attained = direction(some, signal, epsilon).max(axis=0)
        assert np.all(attained <= upper * (1 + 1e-9))
        assert np.all(lower <= upper)
        seen = attained > 1e-20  # further out a cell of 2^-13 of h makes more than this
        assert np.all(upper[seen] <= attained[seen] * 1.02)


@pytest.mark.parametrize("leverage", [1e-5, 1e-3, 0.03, 0.1, 0.3])
@pytest.mark.parametrize("mu", [0.01, 0.1, 1.0, 3.0])
def test_the_largest_signal_stays_under_the_target_at_every_epsilon(leverage, mu):
    delta = 1e-9
    signal = largest_signal(leverage, mu, delta)
    if signal == 0.0:
        # Even without a signal the two covariances differ by more than the target allows.
        epsilon = np.linspace(0, 12 * mu, 4000)
        assert np.any(without_over_with(leverage, 1e-9, epsilon) > delta + (1 - delta) * gaussian_delta(mu, epsilon))
        return
    epsilon = np.linspace(0, 14 * mu + 0.5 * mu**2, 20_001)  # far more than the knots, and beyond them
    target = delta + (1 - delta) * gaussian_delta(mu, epsilon)
    for share in (1.0, 0.999, 0.9, 0.5, 0.1, 1e-3):
        for direction in (with_over_without, without_over_with):
            assert np.all(direction(share * leverage, signal, epsilon) <= target)
    # The signal is not too small: 3% more, and the target is exceeded somewhere.
    more = [direction(leverage, 1.03 * signal, epsilon) > target for direction in (with_over_without, without_over_with)]
    assert np.any(more)


def test_a_target_of_little_leak_allows_less():
    assert largest_signal(0.01, 0.3, 1e-20) < largest_signal(0.01, 0.3, 1e-8)
    assert largest_signal(0.01, 0.3, 1e-8) < largest_signal(0.01, 0.31, 1e-8)
    assert largest_signal(0.011, 0.3, 1e-8) < largest_signal(0.01, 0.3, 1e-8)
    assert largest_signal(0.5, 0.01, 1e-8) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1.0, 1e-6), (5.0, 1e-10)])
def test_the_signal_for_one_point_is_within_a_thousandth_of_the_largest(epsilon, delta):
    signal = signal_for_dp(1e-3, epsilon, delta)
    assert is_under_limits(1e-3, signal, np.array([epsilon]), np.array([delta]))
    assert not is_under_limits(1e-3, 1.003 * signal, np.array([epsilon]), np.array([delta]))


def test_the_largest_mu_meets_the_budget_by_the_mechanisms_own_accountant():
    mu = largest_mu(lambda mu: ps.Gaussian(sigma=1 / mu), 1.0, 1e-6)
    assert ps.Gaussian(sigma=1 / mu).epsilon_at(1e-6).upper <= 1.0
    assert ps.Gaussian(sigma=1 / (1.0001 * mu)).epsilon_at(1e-6).upper > 1.0


def test_no_mu_is_small_enough_if_the_rest_leaks_too_much():
    assert largest_mu(lambda mu: ps.GaussianDP(mu=mu, delta=1e-3), 1.0, 1e-6) == 0.0


@pytest.mark.parametrize("mu", [30.0, 50.0, 1e3])
def test_a_target_beyond_the_range_of_floats_is_truncated(mu):
    signal = largest_signal(0.01, mu, 1e-6)
    epsilon = np.linspace(0, 700, 2001)
    target = 1e-6 + (1 - 1e-6) * gaussian_delta(mu, epsilon)
    for share in (1.0, 0.5, 0.01):
        for direction in (with_over_without, without_over_with):
            assert signal == 0.0 or np.all(direction(share * 0.01, signal, epsilon) <= target)


def test_a_target_without_a_leak_allows_nothing():
    assert largest_signal(0.01, 1.0, 0.0) == 0.0


def test_leverages_are_rounded_up():
    near = [np.nextafter(np.exp(k / 1000), end) for k in range(-20_000, 10_000) for end in (0.0, np.inf)]
    assert all(_rounded_up(float(leverage)) >= leverage for leverage in near)


@pytest.mark.parametrize("epsilon", [1e-20, 1e-16, 1e-12])
def test_tiny_epsilons_are_valid_budgets(epsilon):
    assert signal_for_dp(1e-3, epsilon, 1e-6) == 0.0
    mu = largest_mu(lambda mu: ps.Gaussian(sigma=1 / mu), epsilon, 1e-6)
    assert mu == pytest.approx(np.sqrt(2 * np.pi) * 1e-6, rel=1e-3)


@pytest.mark.parametrize("delta", [1e-160, 1e-250])
def test_a_delta_whose_leverages_are_not_representable_is_decided(delta):
    epsilon = np.array([40.0])
    signal = signal_for_dp(1e-3, 40.0, delta)
    assert signal > 0.0
    assert is_under_limits(1e-3, signal, epsilon, np.array([delta]))
    # From epsilon 0 on, leverages that are not representable may leak more than this, so the bound cannot be proved.
    assert not is_under_limits(1e-3, 1.0, np.array([0.0, 40.0]), np.array([1.0, delta]))


@pytest.mark.parametrize(("leverage", "signal"), [(1e-5, 1e-3), (1e-8, 1.0), (1e-3, 1e-6)])
def test_delta_underflows_beyond_the_loss_at_40_deviations(leverage, signal):
    epsilon = 1.001 * (0.5 * signal * leverage + 40 * np.sqrt(signal * leverage) + 800 * leverage)
    assert _delta_bound_below(leverage, signal, epsilon) == 0.0 < _delta_bound_below(leverage, signal, 0.99 * epsilon)
    for direction in (with_over_without, without_over_with):
        assert np.all(direction(leverage * np.geomspace(1e-9, 1, 50), signal, epsilon) < 1e-300)


def test_what_rounding_hides_is_not_searched():
    sizes = []

    def counting(*values, side):
        sizes.append(np.size(values[0]))
        return without_over_with(*values, side=side)

    _maximum(counting, 1e-14, 1e-12, np.geomspace(1e-20, 1e-12, 20), 1e-60)
    assert sum(sizes) < 20_000


@pytest.mark.parametrize("mu", [1e-8, 1e-6, 1e-3, 0.3, 5.0])
def test_the_lowered_target_is_below_the_target_by_more_than_rounding(mu):
    # In 40 digits: what the knots allow, and the chords between them, stay below T, also where T is a small difference.
    delta = 1e-12
    epsilon, lowered = _target_knots(mu, delta)
    with mpmath.workdps(40):
        m, d = mpmath.mpf(mu), mpmath.mpf(delta)

        def target(e):
            a = m / 2 - e / m
            return d + (1 - d) * (mpmath.ncdf(a) - mpmath.exp(e) * mpmath.ncdf(a - m))

        for index in range(0, len(epsilon) - 1, 7):
            low, high = (mpmath.mpf(float(epsilon[index + step])) for step in (0, 1))
            for share in (mpmath.mpf(0), mpmath.mpf("0.3"), mpmath.mpf("0.5"), mpmath.mpf("0.8")):
                ratio = (1 - share) * mpmath.exp(low) + share * mpmath.exp(high)
                chord = (1 - share) * mpmath.mpf(float(lowered[index])) + share * mpmath.mpf(float(lowered[index + 1]))
                assert chord <= target(mpmath.log(ratio))
