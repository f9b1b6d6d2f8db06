"""The real runner leaks what the accountant says, and a runner with a fault does not pass.

Each interval is one of 99.9%: a correct runner is rejected with probability 0.1% by each (in CI the secrets are the same in every run).
"""

import numpy as np
import pytest

import privselect as ps
from privselect.audit.audited_run import OPTIONS, SPACE, correct, job, released
from privselect.audit.broken_runners import FAULTS, Shuffled, resumed
from privselect.audit.cases import DATA_SETS, SETTINGS
from privselect.audit.empirical_delta import measure
from privselect.audit.independence_test import measure_candidates
from privselect.audit.worst_case import worst_case
from privselect.tuning.randomness.secret_draws import draw_trials
from privselect.tuning.runner import Drawn

MILLION = 1_000_000
N = 10_000  # selections on each data set for a fault


def by_hand(here, secret):
    """The best piece of K trials, without the runner and the ledger."""
    drawn = Drawn(secret, draw_trials(here.count, secret), SPACE)
    outcomes = [here.work.outcome(drawn.candidate(slot), drawn.seed(slot)) for slot in range(drawn.trials)]
    return min((int.from_bytes(outcome.artifact, "big") for outcome in outcomes), default=None)


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("data", DATA_SETS)
def test_a_selection_releases_the_best_of_its_trials_also_when_resumed(setting, data, draw_secret):
    here = job(worst_case(setting), data)
    for _ in range(100):
        secret = draw_secret()
        expected = by_hand(here, secret)
        assert released(here, correct, secret) == expected
        assert released(here, resumed, secret) == expected


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_runner_leaks_what_is_predicted(setting, draw_secret):
    assert measure(setting, 1000, draw_secret=draw_secret).inside


@pytest.mark.soak
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_the_runner_leaks_what_is_predicted_in_a_million_selections(setting, campaign, draw_secret):
    measured = measure(setting, campaign(MILLION) // (2 * len(SETTINGS)), draw_secret=draw_secret)
    assert measured.inside


@pytest.mark.slow
def test_a_run_that_is_stopped_and_resumed_leaks_the_same(draw_secret):
    assert measure(SETTINGS[0], N, resumed, draw_secret).inside


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_the_effect_of_a_fault_exceeds_five_standard_errors(fault):
    case = worst_case(fault.setting)
    right, wrong = case.prediction(), case.prediction(fault.law)
    assert abs(wrong.value - right.value) > 5.0 * right.error(N)


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_fault_leaks_more_than_is_promised_somewhere(fault):
    setting = SETTINGS[-1]
    promised = ps.Selection(setting.trial(), setting.law()).delta_at(setting.epsilon).upper
    assert worst_case(setting).prediction(fault.law).value > promised


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_rejected_and_its_effect_is_the_computed_one(fault, draw_secret):
    measured = measure(fault.setting, N, fault.coordinator, draw_secret)
    assert not measured.inside
    low, high = worst_case(fault.setting).prediction(fault.law).interval(N)
    assert low <= measured.value <= high


def test_candidates_are_drawn_with_replacement(draw_secret):
    """By chi-square with 15 degrees of freedom, at 0.1%."""
    found = measure_candidates(1000, draw_secret=draw_secret)
    assert found.runs == 1000
    assert found.inside


def test_candidates_without_replacement_are_rejected(draw_secret):
    found = measure_candidates(1000, Shuffled, draw_secret)
    assert not found.inside
    # Twelve pairs in place of sixteen: the statistic is n/3 at least, its standard error sqrt(2 * 15).
    size = len(OPTIONS)
    pairs = np.full((size, size), 1.0 / (size * (size - 1)))
    np.fill_diagonal(pairs, 0.0)
    effect = found.runs * float(((pairs - size**-2) ** 2 / size**-2).sum())
    assert effect == pytest.approx(found.runs / 3.0)
    assert effect > 5.0 * np.sqrt(2.0 * (size**2 - 1))
    assert found.value >= effect
