"""What is trained: noise that meets the budgets, levels that span it, and spaces as they are described."""

import numpy as np
import pytest
from experiments_made import UNTUNED

from privselect.planning.plan import plan
from research.experiments import bank
from research.experiments.settings import DELTA, EPSILONS, GREATEST_NOISE, HARD, SETTINGS, SPACES, Setting, open_training, training


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_training_with_the_untuned_noise_meets_the_budget_and_with_a_hundredth_less_does_not(epsilon):
    assert training(UNTUNED[epsilon]).epsilon_at(DELTA).upper <= epsilon
    assert training(UNTUNED[epsilon] / 1.01).epsilon_at(DELTA).lower > epsilon


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_untuned_noise_of_these_tests_is_what_is_found(epsilon):
    assert plan(open_training(), epsilon=epsilon, delta=DELTA).value == UNTUNED[epsilon]


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_levels_of_a_bank_grow_from_the_least_noise_to_the_greatest_by_way_of_the_untuned(setting):
    assert list(setting.noise) == sorted(set(setting.noise))
    assert len(setting.noise) == sum(setting.levels) + 1
    assert (setting.noise[0], setting.noise[setting.levels[0]], setting.noise[-1]) == (UNTUNED[3.0], UNTUNED[1.0], GREATEST_NOISE)


def test_settings_have_names_of_their_own_and_known_spaces():
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    assert {setting.space for setting in SETTINGS} == set(SPACES)


def test_a_quarter_as_many_records_are_held_out():
    sizes = {"mnist": 60_000, "small_mnist": 3500, "adult": 32_561}
    for setting in SETTINGS:
        assert setting.held == setting.records / 4
        assert setting.records + setting.held <= sizes[setting.problem]


def test_the_hard_space_has_six_dimensions_of_which_some_span_a_thousand_times():
    assert len(HARD.as_dict()) == 6
    spans = [np.log10(one["log_uniform"][1] / one["log_uniform"][0]) for one in HARD.as_dict().values() if "log_uniform" in one]
    assert sum(span >= 3.0 for span in spans) >= 3


@pytest.mark.slow
def test_in_the_hard_space_most_candidates_fail(monkeypatch):
    monkeypatch.setattr(bank, "DEFAULTS", ())
    trained = bank.trained_bank(Setting("hard", "small_mnist", 1000, space="hard", candidates=16, levels=(1, 1)), 0, None)
    accuracy = trained.test_accuracy[0]  # at the least noise
    assert np.mean(accuracy < 0.5 * accuracy.max()) > 0.5
    assert accuracy.max() > 0.4
