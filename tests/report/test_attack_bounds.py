"""No test finds more than is shown."""

import math

from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

import privselect as ps
from privselect.certificates.model import ProfilePoint, TotalEpsilon
from privselect.certificates.profile import profile_points
from privselect.report.attack_bounds import max_detection_rate, max_guess_probability
from privselect.report.number_format import percent_up

SIGMAS = st.floats(0.15, 30.0)
ALARMS = st.floats(1e-6, 0.999)


def curve_of(mechanism, delta=1e-6):
    return profile_points(mechanism, TotalEpsilon(lower=None, upper=float(mechanism.epsilon_at(delta).upper), delta=delta))


@given(SIGMAS, ALARMS)
def test_the_best_test_of_a_gaussian_finds_no_more(sigma, alarms):
    truth = norm.cdf(norm.ppf(alarms) + 1.0 / sigma)
    bound = max_detection_rate(curve_of(ps.Gaussian(sigma=sigma)), alarms)
    assert truth <= bound <= 1.0
    assert truth <= float(percent_up(bound).removesuffix("%")) / 100 * (1 + 1e-15)
    assert bound <= truth + 0.02  # about fifty points leave little between them


@given(SIGMAS)
def test_the_best_guess_about_a_gaussian_is_right_no_more_often(sigma):
    truth = norm.cdf(0.5 / sigma)
    assert truth <= max_guess_probability(curve_of(ps.Gaussian(sigma=sigma))) <= truth + 0.002


@given(st.floats(1e-3, 10.0), ALARMS)
def test_randomised_response_is_met_on_both_sides(epsilon, alarms):
    # Its trade-off is two lines, one for each order of the data sets.
    truth = min(math.exp(epsilon) * alarms, 1.0 - math.exp(-epsilon) * (1.0 - alarms))
    assert (
        truth
        <= max_detection_rate((ProfilePoint(epsilon=0.0, delta=1.0), ProfilePoint(epsilon=epsilon, delta=0.0)), alarms)
        <= truth + 0.002 * epsilon + 1e-9
    )


@given(ALARMS)
def test_more_alarms_find_no_less(alarms):
    curve = curve_of(ps.Gaussian(sigma=2))
    assert max_detection_rate(curve, alarms) <= max_detection_rate(curve, min(1.1 * alarms, 1.0))


def test_a_curve_that_promises_nothing_bounds_nothing():
    assert max_detection_rate((ProfilePoint(epsilon=0.0, delta=1.0),), 0.01) == 1.0
    assert max_guess_probability((ProfilePoint(epsilon=700.0, delta=1.0),)) == 1.0
