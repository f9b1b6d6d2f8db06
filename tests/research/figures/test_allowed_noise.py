"""What each accounting allows to a trial, and the claim behind the figure: ours never allows less."""

import numpy as np
import pytest

from privselect.errors import ParameterError
from privselect.mechanisms import Disjoint, Gaussian, GaussianDP
from privselect.selection.selection import Selection
from research.csv_io import read_csv
from research.figures.allowed_noise import (
    ACCOUNTINGS,
    COUNT,
    TrialNoise,
    gaussian_mu,
    largest_leak,
    selection_epsilon,
    single_mu,
    trial_mechanism,
    trial_noise,
)
from research.figures.linear_regression import DELTA, EPSILONS, NOISE, STORED
from research.figures.tuned_regression import RIDGES, precisions

TABLE = STORED / NOISE
FEW = (0, 7, 14)


def stored():
    found = {}
    for row in read_csv(TABLE):
        numbers = (float(row[key]) for key in ("mu", "target_delta", "failure", "score_mu"))
        found[round(float(row["epsilon"]), 6), row["accounting"]] = TrialNoise(*numbers)
    return found


def noise_at(place, accounting):
    return stored()[round(EPSILONS[place], 6), accounting]


def test_the_table_has_every_epsilon_and_accounting():
    assert set(stored()) == {(round(epsilon, 6), name) for epsilon in EPSILONS for name in ACCOUNTINGS}


@pytest.mark.parametrize("accounting", ACCOUNTINGS)
def test_the_stored_noise_keeps_the_budget_and_no_more_would(accounting):
    assert_fits(7, accounting)


@pytest.mark.slow
@pytest.mark.parametrize("accounting", ACCOUNTINGS)
@pytest.mark.parametrize("place", range(15))
def test_all_stored_noise_keeps_the_budget_and_no_more_would(place, accounting):
    assert_fits(place, accounting)


def assert_fits(place, accounting):
    epsilon, noise = EPSILONS[place], noise_at(place, accounting)

    def cost(factor):
        return selection_epsilon(accounting, trial_mechanism(noise.mu * factor, noise.delta, noise.failure), COUNT, DELTA)

    assert cost(1.0) <= epsilon < cost(1.0 + 5e-4)
    assert selection_epsilon(accounting, Gaussian(sigma=1.0 / noise.score_mu), COUNT, DELTA) <= epsilon


def test_the_stored_noise_is_what_is_solved():
    for accounting in ACCOUNTINGS:
        solved, kept = trial_noise(accounting, EPSILONS[10], DELTA), noise_at(10, accounting)
        assert [solved.mu, solved.delta, solved.failure, solved.score_mu] == pytest.approx(
            [kept.mu, kept.delta, kept.failure, kept.score_mu], rel=1e-5
        )


@pytest.mark.parametrize("place", FEW)
def test_ours_allows_the_most_precise_sample_at_every_ridge(place):
    assert_ordered(place)


@pytest.mark.slow
@pytest.mark.parametrize("place", [place for place in range(15) if place not in FEW])
def test_ours_allows_the_most_precise_sample_at_every_ridge_everywhere(place):
    assert_ordered(place)


def assert_ordered(place):
    """Precisions with no noise in the released bounds: for a singular X'X and for one that is not."""
    zero = np.zeros(len(RIDGES))
    for least, norm in ((0.0, 1.0), (300.0, 0.6)):
        ours, paper, liu_talwar = (
            precisions(noise_at(place, name).recipe(1.0, 10_000).protocol, RIDGES, (least, np.full(len(RIDGES), norm)), (zero, zero))
            for name in ACCOUNTINGS
        )
        assert (ours >= paper).all()
        assert (paper >= liu_talwar).all()
        answered = liu_talwar > 0.0
        assert answered.any()
        assert (ours[answered] > 1.2 * paper[answered]).all()
        assert (paper[answered] > 2.0 * liu_talwar[answered]).all()


def test_more_than_the_largest_leak_has_no_epsilon():
    for accounting in ACCOUNTINGS:
        leak = largest_leak(accounting, DELTA)
        assert selection_epsilon(accounting, GaussianDP(mu=1e-3, delta=0.5 * leak), COUNT, DELTA) < 0.1
        assert selection_epsilon(accounting, GaussianDP(mu=1e-3, delta=1.01 * leak), COUNT, DELTA) > 1.0


def test_the_selection_with_a_paid_score_keeps_the_budget():
    noise = noise_at(7, "ours")
    trial = Disjoint((trial_mechanism(noise.mu, noise.delta, noise.failure), Gaussian(sigma=1.0 / noise.score_mu)))
    assert Selection(trial, COUNT).epsilon_at(DELTA).upper <= EPSILONS[7]


def test_one_release_alone_may_leak_more():
    assert single_mu(1.0, DELTA) > 2.0 * gaussian_mu("ours", 1.0, DELTA)
    assert Gaussian(sigma=1.0 / single_mu(1.0, DELTA)).epsilon_at(DELTA).upper <= 1.0


def test_an_unknown_accounting_and_a_budget_of_nothing_are_refused():
    with pytest.raises(ParameterError, match="`accounting` must be one of ours, paper, liu_talwar, got 'mine'"):
        trial_noise("mine", 1.0, DELTA)
    with pytest.raises(ParameterError, match="`epsilon` must be in"):
        trial_noise("ours", 0.0, DELTA)
