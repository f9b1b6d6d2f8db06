"""OPS-PTR end to end: what it certifies, measured on a worst case, and what it says where it has no answer."""

import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from privselect.errors import ParameterError
from privselect.regression.gaussian_sampler import normals_from
from privselect.regression.methods.sufficient_statistics import Statistics
from privselect.regression.ops.calibration import largest_mu
from privselect.regression.ptr.ops_ptr import PosteriorAfterTest
from privselect.regression.ridge_sensitivity import log_norm_sensitivity

RIDGE, FAILURE, LEAK = 5.0, 1e-4, 1e-4
RECIPE = PosteriorAfterTest(mu=1.5, delta=LEAK, failure=FAILURE, ridge=RIDGE, records=101, shares=(0.2, 0.2))

# A hundred records (1, 1), and one more, (-1, 1), whose residual is as long as one can be.
ROWS, TARGETS = np.array([[1.0]] * 100 + [[-1.0]]), np.ones(101)
SMALLER, LARGER = (Statistics.of(ROWS[:n], TARGETS[:n], 101) for n in (100, 101))


def outcomes(recipe, data, seed, runs):
    """(noisy least eigenvalue, length, coefficient) of many runs."""
    normals = normals_from(seed)
    answers = [recipe.run(data, normals) for _ in range(runs)]
    return np.array([[a.facts["smallest_eigenvalue"], a.facts["length"], a.facts["precision"], a.coefficients[0]] for a in answers])


def log_density(recipe, data, seen):
    """Of these outcomes, up to a term that is the same for both data sets; holds where neither bound is cut off."""
    smallest, length, precision, coefficient = seen.T
    quantile = -ndtri(recipe.failure / 2)
    mu_smallest, mu_norm = (recipe.mu * math.sqrt(share) for share in recipe.shares)
    theta = float(data.solution(recipe.ridge)[0])
    first = norm.logpdf((smallest - data.smallest()) * mu_smallest + quantile)
    sensitivity = np.array([log_norm_sensitivity(recipe.ridge, value) for value in smallest])
    second = norm.logpdf((np.log(length) - math.log1p(abs(theta))) * mu_norm / sensitivity - quantile)
    hessian = precision * (data.gram[0, 0] + recipe.ridge)
    return first + second + norm.logpdf((coefficient - theta) * np.sqrt(hessian)) + 0.5 * np.log(hessian)


def measured(recipe, order, epsilons, runs):
    """The share of runs on each of two data sets whose loss exceeds epsilon: an event, so their difference bounds delta from below."""
    found = []
    first, second = order
    one, other = outcomes(recipe, first, 1, runs), outcomes(recipe, second, 2, runs)
    losses = [log_density(recipe, first, seen) - log_density(recipe, second, seen) for seen in (one, other)]
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
    delta, error = measured(RECIPE, order, EPSILONS, runs)
    certified = RECIPE.mechanism.delta_at(EPSILONS).upper
    # 5.5 standard errors, eight times: a false alarm of 2e-7.
    assert np.all(delta - 5.5 * error <= certified)
    # It is a worst case in earnest: much of what is certified is really leaked.
    assert np.all(delta[:3] + 5.5 * error[:3] >= 0.5 * certified[:3])


class TooPrecise(PosteriorAfterTest):
    """A fault: the sample is four times as precise as the bounds allow."""

    def run(self, statistics, normals):
        proposal = self.proposal
        plan = proposal.propose(statistics, normals)
        plan = type(plan)(plan.smallest, plan.length, 4 * plan.precision)
        facts = {"smallest_eigenvalue": plan.smallest, "length": plan.length, "precision": plan.precision}
        from privselect.regression.methods.method import Answer

        return Answer(proposal.release(statistics, plan, normals), facts)


def test_a_sample_that_is_too_precise_is_caught():
    faulty = TooPrecise(mu=RECIPE.mu, delta=LEAK, failure=FAILURE, ridge=RIDGE, records=101, shares=RECIPE.shares)
    delta, error = measured(faulty, ORDERS[0], EPSILONS, 3_000)
    assert np.any(delta - 5.5 * error > faulty.mechanism.delta_at(EPSILONS).upper)


@pytest.mark.parametrize("runs", [6_000, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_bounds_hold_but_for_the_chance_of_failure(runs):
    recipe = PosteriorAfterTest(mu=1.5, delta=LEAK, failure=0.1, ridge=RIDGE, records=101, shares=(0.2, 0.2))
    seen = outcomes(recipe, LARGER, 5, runs)
    truth = 1 + abs(float(LARGER.solution(RIDGE)[0]))
    wrong = (seen[:, 0] > LARGER.smallest()) | (seen[:, 1] < truth)
    # At most 0.1; both fail on their own with 0.05: 0.0975. 5.2 standard errors, a false alarm of 2e-7.
    assert abs(wrong.mean() - 0.0975) < 5.2 * math.sqrt(0.0975 * 0.9025 / runs)


def test_the_budget_is_met_and_used():
    mu = largest_mu(lambda mu: PosteriorAfterTest(mu, 1e-7, 1e-7, RIDGE, 101).mechanism, 1.0, 1e-6)
    price = PosteriorAfterTest(mu, 1e-7, 1e-7, RIDGE, 101).mechanism.epsilon_at(1e-6).upper
    assert 0.9999 < price <= 1.0


def test_the_mechanism_does_not_depend_on_ridge_or_records():
    others = [PosteriorAfterTest(1.5, LEAK, FAILURE, ridge, records, (0.2, 0.2)) for ridge, records in ((5.0, 101), (500.0, 7))]
    assert others[0].mechanism == others[1].mechanism == RECIPE.mechanism


@pytest.mark.parametrize("ridge", [0.0, 0.3])
def test_a_budget_too_small_has_no_answer(ridge):
    answer = PosteriorAfterTest(mu=0.01, delta=1e-9, failure=1e-9, ridge=ridge, records=101).run(LARGER, normals_from(0))
    assert answer.coefficients is None


def test_without_a_ridge_a_singular_matrix_has_no_answer_and_a_good_one_has():
    rows = np.zeros((50, 2))
    rows[:, 0] = 1.0
    singular = Statistics.of(rows, np.ones(50))
    recipe = PosteriorAfterTest(mu=2.0, delta=1e-6, failure=1e-6, ridge=0.0, records=400)
    normals = normals_from(0)
    assert all(recipe.run(singular, normals).coefficients is None for _ in range(50))
    good = Statistics.of(np.tile(np.eye(2), (200, 1)), np.ones(400))
    assert recipe.run(good, normals).coefficients is not None


@pytest.mark.parametrize("shares", [(0.0, 0.0), (0.5, 0.5), (-0.1, 0.3)])
def test_shares_that_leave_nothing_are_refused(shares):
    with pytest.raises(ParameterError, match="shares"):
        PosteriorAfterTest(1.0, 1e-6, 1e-6, 5.0, 10, shares)


def test_a_release_left_out_uses_what_always_holds():
    plan = PosteriorAfterTest(1.5, LEAK, FAILURE, RIDGE, 101, (0.0, 0.2)).proposal.propose(LARGER, normals_from(0))
    assert plan.smallest == 0.0
    plan = PosteriorAfterTest(1.5, LEAK, FAILURE, RIDGE, 101, (0.2, 0.0)).proposal.propose(LARGER, normals_from(0))
    assert plan.length == pytest.approx(1 + math.sqrt(101 / 20))
