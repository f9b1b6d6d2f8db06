"""The published data-dependent bound for one posterior sample is false."""

import numpy as np
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from privselect.regression.ops.calibration import signal_for_dp
from privselect.regression.ops.worst_leverage import worst_deltas

RIDGE, LENGTH, EPSILON, DELTA = 1000.0, 1.5, 1.0, 1e-6


def published_epsilon(precision):
    """Wang 2018, for the least eigenvalue RIDGE and rows of signal precision LENGTH^2."""
    log_delta = np.log(2 / DELTA)
    return np.sqrt(precision * LENGTH**2 * log_delta / RIDGE) + precision * LENGTH**2 / (2 * (RIDGE + 1)) + (1 + log_delta) / (2 * RIDGE)


def test_the_published_precision_leaks_four_times_the_delta_it_claims():
    precision = brentq(lambda gamma: published_epsilon(gamma) - EPSILON, 1e-6, 1e6)
    exact = worst_deltas(1 / RIDGE, precision * LENGTH**2, np.array([EPSILON]), 1e-40)
    assert max(lower[0] for lower in exact.lowers) > 3.8e-6
    assert max(upper[0] for upper in exact.uppers) < 4.0e-6

    # The same by quadrature of two normal densities in one dimension, with a row of leverage 1/RIDGE and that signal.
    leverage, residual = 1 / RIDGE, LENGTH
    without = norm(residual, np.sqrt(leverage / precision))
    with_it = norm(residual / (1 + leverage), np.sqrt(leverage / (precision * (1 + leverage))))
    span = 14 * without.std()
    value, _ = quad(
        lambda w: max(without.pdf(w) - np.exp(EPSILON) * with_it.pdf(w), 0.0), residual - span, residual + span, limit=500, epsabs=1e-12
    )
    assert 3.8e-6 < value < 4.0e-6


def test_ours_keeps_the_delta():
    signal = signal_for_dp(1 / RIDGE, EPSILON, DELTA)
    exact = worst_deltas(1 / RIDGE, signal, np.array([EPSILON]), 1e-40)
    assert max(upper[0] for upper in exact.uppers) <= DELTA
    assert max(lower[0] for lower in exact.lowers) > 0.98 * DELTA
