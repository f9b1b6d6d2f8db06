"""The real runner leaks what the accountant says, and a runner with a fault is rejected.

Each interval covers 99.9%: a test rejects a correct runner with probability 0.1%. In CI, every run uses the same secrets.
"""

import numpy as np
import pytest

import privselect as ps
from privselect.audit.audited_run import OPTIONS, SPACE, make_job, measure, run_correctly, run_once
from privselect.audit.broken_runners import FAULTS, DrawnWithoutReplacement, run_reusing_noise, run_with_resumes
from privselect.audit.independence_test import count_option_pairs
from privselect.audit.two_stage_case import TWO_STAGE_CASES, two_stage_worst_case
from privselect.audit.worst_case import CASES, DATA_SETS, worst_case
from privselect.tuning.randomness import derive_key, draw_trial_count
from privselect.tuning.runner import RunDraws

MILLION = 1_000_000
N = 10_000  # selections on each data set for a fault


def best_piece(job, secret):
    """Return the best piece of K trials, without the runner and the ledger."""
    drawn = RunDraws(secret, draw_trial_count(job.count, secret), SPACE)
    outcomes = [job.work.run(drawn.candidate(slot), drawn.seed(slot)) for slot in range(drawn.trials)]
    return min((int.from_bytes(outcome.artifact, "big") for outcome in outcomes), default=None)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("data", DATA_SETS)
def test_a_selection_releases_the_best_of_its_trials_with_or_without_resumes(case, data, draw_secret):
    job = make_job(worst_case(case), data)
    for _ in range(100):
        secret = draw_secret()
        expected = best_piece(job, secret)
        assert run_once(job, run_correctly, secret) == expected
        assert run_once(job, run_with_resumes, secret) == expected


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_runner_leaks_what_is_predicted(case, draw_secret):
    assert measure(case, 1000, draw_secret=draw_secret).passed


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_runner_leaks_what_is_predicted_in_a_million_selections(case, campaign, draw_secret):
    measured = measure(case, campaign(MILLION) // (2 * len(CASES)), draw_secret=draw_secret)
    assert measured.passed


@pytest.mark.slow
def test_a_run_that_is_stopped_and_resumed_leaks_the_same(draw_secret):
    assert measure(CASES[0], N, run_with_resumes, draw_secret).passed


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_effect_of_a_fault_exceeds_five_standard_errors(fault):
    worst = worst_case(fault.case)
    right, wrong = worst.predict(), worst.predict(fault.transform)
    assert abs(wrong.delta - right.delta) > 5.0 * right.standard_error(N)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_fault_exceeds_the_exact_bound_in_the_last_case(fault):
    case = CASES[-1]
    promised = ps.Selection(case.parse_mechanism(), case.parse_count()).delta_at(case.epsilon).upper
    assert worst_case(case).predict(fault.transform).delta > promised


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_rejected_and_its_effect_is_the_computed_one(fault, draw_secret):
    measured = measure(fault.case, N, fault.coordinator, draw_secret)
    assert not measured.passed
    low, high = worst_case(fault.case).predict(fault.transform).interval(N)
    assert low <= measured.delta <= high


def test_candidates_are_drawn_with_replacement(draw_secret):
    """A chi-square test with 15 degrees of freedom, at level 0.1%."""
    found = count_option_pairs(1000, draw_secret=draw_secret)
    assert found.runs == 1000
    assert found.passed


def test_candidates_without_replacement_are_rejected(draw_secret):
    found = count_option_pairs(1000, DrawnWithoutReplacement, draw_secret)
    assert not found.passed
    # Only 12 of 16 pairs occur: the statistic is at least n/3, with standard error sqrt(2 * 15).
    size = len(OPTIONS)
    pairs = np.full((size, size), 1.0 / (size * (size - 1)))
    np.fill_diagonal(pairs, 0.0)
    effect = found.runs * float(((pairs - size**-2) ** 2 / size**-2).sum())
    assert effect == pytest.approx(found.runs / 3.0)
    assert effect > 5.0 * np.sqrt(2.0 * (size**2 - 1))
    assert found.statistic >= effect


# -- both stages ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", TWO_STAGE_CASES, ids=str)
@pytest.mark.parametrize("data", DATA_SETS)
def test_both_stages_release_the_winner_and_an_independent_final_training(case, data, draw_secret):
    job = make_job(two_stage_worst_case(case), data)
    for _ in range(50):
        secret = draw_secret()
        drawn = RunDraws(secret, draw_trial_count(job.count, secret), SPACE)
        scores = [job.work.run(drawn.candidate(slot), drawn.seed(slot)).score for slot in range(drawn.trials)]
        final = int.from_bytes(job.final.run(drawn.unused_candidate(), derive_key(secret, "final")).artifact, "big")
        expected = (int(-max(scores)), final) if scores else None
        assert run_once(job, run_correctly, secret) == expected
        assert run_once(job, run_with_resumes, secret) == expected


@pytest.mark.parametrize("case", TWO_STAGE_CASES, ids=str)
def test_both_stages_leak_what_is_predicted(case, draw_secret):
    assert measure(case, 1000, draw_secret=draw_secret).passed


@pytest.mark.soak
@pytest.mark.parametrize("case", TWO_STAGE_CASES, ids=str)
def test_both_stages_leak_what_is_predicted_in_100_000_runs(case, campaign, draw_secret):
    assert measure(case, campaign(100_000) // 2, draw_secret=draw_secret).passed


@pytest.mark.parametrize("case", TWO_STAGE_CASES, ids=str)
def test_a_final_training_that_reuses_the_noise_of_the_search_leaks_more_than_is_certified(case):
    certified = ps.search_then_train(case.search.parse_mechanism(), case.search.parse_count(), case.parse_final()).delta_at(case.epsilon)
    assert two_stage_worst_case(case).leak_of_reused_noise() > 1.15 * certified.upper


@pytest.mark.slow
def test_a_final_training_that_reuses_the_noise_of_the_search_is_rejected(draw_secret):
    case = TWO_STAGE_CASES[-1]
    measured = measure(case, N, run_reusing_noise, draw_secret)
    assert not measured.passed
    low, high = two_stage_worst_case(case).predict_reused_noise().interval(N)
    assert low <= measured.delta <= high
