"""The hockey sticks of one posterior sample with and without one row, against quadrature and against many digits."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from privselect.regression.ops.ops_profile import with_over_without, without_over_with
from privselect.regression.ops.worst_leverage import worst_deltas

PROBLEMS = range(24)


def problem(seed):
    """Random small data in one or two dimensions, and a row."""
    rng = np.random.default_rng(seed)
    features = 1 + seed % 2
    rows = rng.normal(size=(int(rng.integers(1, 6)), features))
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    targets = rng.uniform(-1, 1, size=len(rows))
    row = rng.normal(size=features)
    row *= rng.uniform(0.3, 1.0) / np.linalg.norm(row)
    return rows, targets, row, float(rng.uniform(-1, 1)), float(rng.uniform(0.2, 4.0)), float(10 ** rng.uniform(-1, 1.2))


def posterior(rows, targets, ridge, precision):
    hessian = rows.T @ rows + ridge * np.eye(rows.shape[1])
    return np.linalg.solve(hessian, rows.T @ targets), precision * hessian


def by_quadrature(first, second, epsilon):
    """The integral of (p - e^epsilon q)_+ over a fine grid around both normal laws; knows nothing of leverages."""
    (mean, inverse), (other, other_inverse) = first, second
    spread = np.sqrt(np.maximum(np.diag(np.linalg.inv(inverse)), np.diag(np.linalg.inv(other_inverse))))
    low, high = np.minimum(mean, other) - 9 * spread, np.maximum(mean, other) + 9 * spread
    count = 400_001 if len(mean) == 1 else 1201
    axes = [np.linspace(a, b, count) for a, b in zip(low, high, strict=True)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)

    def density(centre, weight):
        away = grid - centre
        return np.sqrt(np.linalg.det(weight / (2 * np.pi))) * np.exp(-0.5 * np.einsum("...i,ij,...j->...", away, weight, away))

    p, q = density(mean, inverse), density(other, other_inverse)
    step = math.prod(axis[1] - axis[0] for axis in axes)
    return np.array([np.maximum(p - np.exp(e) * q, 0).sum() * step for e in epsilon])


@pytest.mark.parametrize("seed", PROBLEMS)
def test_the_closed_form_is_the_integral_in_both_orders(seed):
    rows, targets, row, target, ridge, precision = problem(seed)
    without = posterior(rows, targets, ridge, precision)
    with_it = posterior(np.vstack([rows, row]), np.append(targets, target), ridge, precision)
    hessian = rows.T @ rows + ridge * np.eye(len(row))
    leverage = row @ np.linalg.solve(hessian, row)
    signal = precision * (target - row @ without[0]) ** 2
    epsilon = np.array([0.0, 0.05, 0.2, 0.5, 1.0, 2.0])
    # The grid's error is at the kinks of the positive part, of second order in its step.
    assert with_over_without(leverage, signal, epsilon) == pytest.approx(by_quadrature(with_it, without, epsilon), abs=4e-6)
    assert without_over_with(leverage, signal, epsilon) == pytest.approx(by_quadrature(without, with_it, epsilon), abs=4e-6)
    # And the worst row of that leverage and signal leaks no less.
    worst = worst_deltas(leverage, signal, epsilon, 1e-30)
    assert np.all(worst.uppers[0] >= by_quadrature(with_it, without, epsilon) - 4e-6)
    assert np.all(worst.uppers[1] >= by_quadrature(without, with_it, epsilon) - 4e-6)


def in_many_digits(leverage, signal, epsilon):
    with mpmath.workdps(50):
        h, rho, e = map(mpmath.mpf, (leverage, signal, epsilon))
        nu, grown = mpmath.sqrt(rho / h), mpmath.sqrt(1 + h)
        middle = mpmath.log(1 + h) / 2 + rho / (2 * (1 + h))
        first = mpmath.mpf(0)
        if middle > e:
            v = mpmath.sqrt(2 * (middle - e) / h)
            inside = [mpmath.ncdf(s * (v - m)) - mpmath.ncdf(s * (-v - m)) for s, m in ((grown, nu / (1 + h)), (1, nu))]
            first = inside[0] - mpmath.exp(e) * inside[1]
        v = mpmath.sqrt(2 * (middle + e) / h)
        outside = [mpmath.ncdf(s * (m - v)) + mpmath.ncdf(s * (-v - m)) for s, m in ((1, nu), (grown, nu / (1 + h)))]
        return first, outside[0] - mpmath.exp(e) * outside[1]


@given(
    log_leverage=st.floats(-9, 0.5),
    log_mu=st.floats(-3, 1),
    away=st.floats(0, 8),
    more=st.floats(0, 3),
)
def test_both_sides_catch_the_true_value(log_leverage, log_mu, away, more):
    leverage, mu = 10**log_leverage, 10**log_mu
    signal, epsilon = mu * mu / leverage, mu * away + leverage * more
    for direction, truth in zip((with_over_without, without_over_with), in_many_digits(leverage, signal, epsilon), strict=True):
        lower, upper = (float(direction(leverage, signal, epsilon, side=side)) for side in (-1, 1))
        assert lower <= truth <= upper
        if truth > 1e-12:
            assert upper - lower <= 1e-5 * truth


@given(log_leverage=st.floats(2, 6), log_signal=st.floats(-12, 2), log_away=st.floats(-13, -1))
@example(log_leverage=5.3395, log_signal=-2.1655, log_away=-9)
def test_both_sides_catch_the_true_value_of_a_great_leverage_where_hardly_anything_is_left(log_leverage, log_signal, log_away):
    leverage, signal = 10**log_leverage, 10**log_signal
    epsilon = (0.5 * math.log1p(leverage) + 0.5 * signal / (1 + leverage)) * (1 - 10**log_away)
    for direction, truth in zip((with_over_without, without_over_with), in_many_digits(leverage, signal, epsilon), strict=True):
        lower, upper = (float(direction(leverage, signal, epsilon, side=side)) for side in (-1, 1))
        assert lower <= truth <= upper


@pytest.mark.parametrize(
    ("leverage", "signal", "epsilon"),
    [
        (31720.793459973043, 0.09693089371154433, 5.181140115508835),  # e^e times what lies below -v is 100 times what lies within
        (218545.99872521436, 0.006831437963640951, 6.14737819844854),
        (401422.73632029316, 1.3553755484921213e-07, 6.4513864237143475),  # v is 0 but for rounding
        (308767.13050932746, 7.817208173983394e-06, 6.320172943761484),
    ],
)
def test_rounding_is_in_units_of_the_larger_term(leverage, signal, epsilon):
    truth = in_many_digits(leverage, signal, epsilon)[0]
    assert (
        float(with_over_without(leverage, signal, epsilon, side=-1)) <= truth <= float(with_over_without(leverage, signal, epsilon, side=1))
    )


def test_where_nothing_is_left_is_zero_and_not_nan():
    assert with_over_without(0.1, 0.0, [0.0, 1.0, 5.0]).tolist()[1:] == [0.0, 0.0]
    assert np.all(np.isfinite(without_over_with(1e-200, 1.0, [0.0, 1.0])))


@given(
    nu=st.floats(0, 30),
    low=st.floats(1e-6, 3),
    factor=st.floats(1.0, 4.0),
    share=st.floats(0, 3),
)
def test_at_a_fixed_nu_both_orders_rise_with_the_leverage(nu, low, factor, share):
    # The lemma that bounds a cell by its corner.
    high, epsilon = low * factor, share * (low + nu * low)
    for direction in (with_over_without, without_over_with):
        assert direction(low, nu**2 * low, epsilon, side=-1) <= direction(high, nu**2 * high, epsilon, side=1)


@given(leverage=st.floats(1e-6, 3), signal=st.floats(1e-6, 100), factor=st.floats(1.0, 4.0), share=st.floats(0, 3))
def test_at_a_fixed_leverage_both_orders_rise_with_the_signal(leverage, signal, factor, share):
    epsilon = share * (leverage + math.sqrt(leverage * signal))
    for direction in (with_over_without, without_over_with):
        assert direction(leverage, signal, epsilon, side=-1) <= direction(leverage, signal * factor, epsilon, side=1)


def test_at_a_fixed_signal_the_largest_leverage_is_not_always_the_worst():
    # Why cells are needed: the corner with the cell's own signal would be unsound.
    leverages = np.linspace(0.05, 3, 300)
    values = without_over_with(leverages, 0.01, 1.0)
    more = with_over_without(leverages, 8.0, 0.5)
    assert values.max() > values[-1] * 1.001 or more.max() > more[-1] * 1.001
