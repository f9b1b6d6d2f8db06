"""OPS-PTR end to end: the certified delta against a worst case, and the outcome "no answer"."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from privselect.errors import ParameterError
from privselect.regression.methods import RegressionResult
from privselect.regression.noise_source import make_noise_source
from privselect.regression.ops.calibration import largest_mu
from privselect.regression.ptr.ops_ptr import OPSPTR
from privselect.regression.ridge_sensitivity import log_norm_sensitivity
from privselect.regression.sufficient_statistics import SufficientStatistics

RIDGE, FAILURE, LEAK = 5.0, 1e-4, 1e-4
METHOD = OPSPTR(mu=1.5, delta=LEAK, failure=FAILURE, ridge=RIDGE, records=101, shares=(0.2, 0.2))

# A hundred records (1, 1), and one more, (-1, 1), whose residual is as long as one can be.
ROWS, TARGETS = np.array([[1.0]] * 100 + [[-1.0]]), np.ones(101)
SMALLER, LARGER = (SufficientStatistics.from_records(ROWS[:n], TARGETS[:n], 101) for n in (100, 101))


def outcomes(method, data, seed, runs):
    """Return (smallest eigenvalue, residual bound, precision, coefficient) of many runs."""
    normals = make_noise_source(seed)
    answers = [method.run(data, normals) for _ in range(runs)]
    return np.array([[a.facts["smallest_eigenvalue"], a.facts["residual_bound"], a.facts["precision"], a.coefficients[0]] for a in answers])


def log_density(method, data, seen):
    """Return the log density up to a term that both data sets share; valid if neither bound is cut off."""
    smallest, residual, precision, coefficient = seen.T
    quantile = -ndtri(method.failure / 2)
    mu_eigenvalue, mu_norm = (method.mu * math.sqrt(share) for share in method.shares)
    theta = float(data.ridge_solution(method.ridge)[0])
    first = norm.logpdf((smallest - data.smallest_eigenvalue()) * mu_eigenvalue + quantile)
    sensitivity = np.array([log_norm_sensitivity(method.ridge, value) for value in smallest])
    second = norm.logpdf((np.log(residual) - math.log1p(abs(theta))) * mu_norm / sensitivity - quantile)
    hessian = precision * (data.gram[0, 0] + method.ridge)
    return first + second + norm.logpdf((coefficient - theta) * np.sqrt(hessian)) + 0.5 * np.log(hessian)


def measured(method, order, epsilons, runs):
    """Estimate a lower bound on delta from the event that the loss exceeds epsilon."""
    found = []
    first, second = order
    one, other = outcomes(method, first, 1, runs), outcomes(method, second, 2, runs)
    losses = [log_density(method, first, seen) - log_density(method, second, seen) for seen in (one, other)]
    for epsilon in epsilons:
        p, q = (float(np.mean(loss > epsilon)) for loss in losses)
        error = math.sqrt((p * (1 - p) + math.exp(2 * epsilon) * q * (1 - q)) / runs + 1e-9)
        found.append((p - math.exp(epsilon) * q, error))
    return np.array(found).T


EPSILONS = np.array([0.0, 0.5, 1.0, 2.0])
ORDERS = [(SMALLER, LARGER), (LARGER, SMALLER)]


@pytest.mark.parametrize("order", ORDERS, ids=["add", "remove"])
@pytest.mark.parametrize("runs", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_the_measured_delta_is_below_the_certified_one(order, runs):
    delta, error = measured(METHOD, order, EPSILONS, runs)
    certified = METHOD.mechanism.delta_at(EPSILONS).upper
    # 5.5 standard errors, eight times: a false alarm of 2e-7.
    assert np.all(delta - 5.5 * error <= certified)
    # It is nearly a worst case: at least half of the certified delta is leaked.
    assert np.all(delta[:3] + 5.5 * error[:3] >= 0.5 * certified[:3])


class TooPrecise(OPSPTR):
    """A faulty method: the sample is four times as precise as the bounds allow."""

    def run(self, statistics, normals):
        protocol = self.protocol
        plan = protocol.propose(statistics, normals)
        plan = replace(plan, precision=4 * plan.precision)
        facts = {"smallest_eigenvalue": plan.smallest_eigenvalue, "residual_bound": plan.residual, "precision": plan.precision}
        return RegressionResult(protocol.release(statistics, plan, normals), facts)


def test_a_sample_that_is_too_precise_is_caught():
    faulty = TooPrecise(mu=METHOD.mu, delta=LEAK, failure=FAILURE, ridge=RIDGE, records=101, shares=METHOD.shares)
    delta, error = measured(faulty, ORDERS[0], EPSILONS, 3_000)
    assert np.any(delta - 5.5 * error > faulty.mechanism.delta_at(EPSILONS).upper)


@pytest.mark.parametrize("runs", [6_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_bounds_fail_with_at_most_the_failure_probability(runs):
    method = OPSPTR(mu=1.5, delta=LEAK, failure=0.1, ridge=RIDGE, records=101, shares=(0.2, 0.2))
    seen = outcomes(method, LARGER, 5, runs)
    truth = 1 + abs(float(LARGER.ridge_solution(RIDGE)[0]))
    wrong = (seen[:, 0] > LARGER.smallest_eigenvalue()) | (seen[:, 1] < truth)
    # At most 0.1; each fails independently with 0.05: 0.0975. 5.2 standard errors, a false alarm of 2e-7.
    assert abs(wrong.mean() - 0.0975) < 5.2 * math.sqrt(0.0975 * 0.9025 / runs)


def test_the_budget_is_met_and_used():
    mu = largest_mu(lambda mu: OPSPTR(mu, 1e-7, 1e-7, RIDGE, 101).mechanism, 1.0, 1e-6)
    cost = OPSPTR(mu, 1e-7, 1e-7, RIDGE, 101).mechanism.epsilon_at(1e-6).upper
    assert 0.9999 < cost <= 1.0


def test_the_mechanism_does_not_depend_on_ridge_or_records():
    others = [OPSPTR(1.5, LEAK, FAILURE, ridge, records, (0.2, 0.2)) for ridge, records in ((5.0, 101), (500.0, 7))]
    assert others[0].mechanism == others[1].mechanism == METHOD.mechanism


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_budget_too_small_has_no_answer(ridge):
    answer = OPSPTR(mu=0.01, delta=1e-9, failure=1e-9, ridge=ridge, records=101).run(LARGER, make_noise_source(0))
    assert answer.coefficients is None


def test_without_a_ridge_a_singular_matrix_has_no_answer_and_a_good_one_has():
    rows = np.zeros((50, 2))
    rows[:, 0] = 1.0
    singular = SufficientStatistics.from_records(rows, np.ones(50))
    method = OPSPTR(mu=2.0, delta=1e-6, failure=1e-6, ridge=0.0, records=400)
    normals = make_noise_source(0)
    assert all(method.run(singular, normals).coefficients is None for _ in range(50))
    good = SufficientStatistics.from_records(np.tile(np.eye(2), (200, 1)), np.ones(400))
    assert method.run(good, normals).coefficients is not None


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.5, 0.5), (-0.1, 0.3)])
def test_shares_that_leave_nothing_are_refused(shares):
    with pytest.raises(ParameterError, match="shares"):
        OPSPTR(1.0, 1e-6, 1e-6, 5.0, 10, shares)


def test_a_release_left_out_uses_a_bound_that_always_holds():
    plan = OPSPTR(1.5, LEAK, FAILURE, RIDGE, 101, (0.0, 0.2)).protocol.propose(LARGER, make_noise_source(0))
    assert plan.smallest_eigenvalue == 0.0
    plan = OPSPTR(1.5, LEAK, FAILURE, RIDGE, 101, (0.2, 0.0)).protocol.propose(LARGER, make_noise_source(0))
    assert plan.residual == pytest.approx(1 + math.sqrt(101 / 20))
