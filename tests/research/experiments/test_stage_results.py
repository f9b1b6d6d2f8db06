"""What a bank of two stages says about every weight on the defaults, by hand and by laws."""

import dataclasses

import numpy as np
import pytest
from experiments_made import UNTUNED, made_stage_bank, one_shot_rows, stage_tasks
from scipy.stats import norm

from privselect.counts import Fixed, Geometric, Poisson
from research.experiments.results import interval
from research.experiments.settings import DEFAULTS
from research.experiments.stage_bank import RATES, SEARCH_LEVELS, SPLITS, StageBank, transfer_factor
from research.experiments.stage_options import StageOption, stage_laws
from research.experiments.stage_results import (
    REFERENCES,
    WEIGHTS,
    chosen_by_others,
    mixture,
    reference_outcomes,
    regime_name,
    secret_outcomes,
    stage_accuracy,
    stage_rows,
    stored_references,
)
from research.experiments.winner import winning_chances

RUNS = 20_000
FALSE_ALARM = 1e-6


def option(trials=None, split=1.07, level=1, epsilon=1.0, score_noise=2.0):
    return StageOption(epsilon, "secret", trials or Fixed(k=1), split, SEARCH_LEVELS[level] * UNTUNED[epsilon], score_noise)


def test_a_trial_draws_a_default_with_its_weight():
    for weight in WEIGHTS:
        drawn = mixture(8, weight)
        assert drawn.sum() == pytest.approx(1.0, abs=1e-12)
        assert drawn[-3:] == pytest.approx(weight / 3.0, abs=1e-12)
        assert drawn[:5] == pytest.approx((1.0 - weight) / 5.0, abs=1e-12)
    assert [regime_name(weight) for weight in WEIGHTS] == ["two_stages_0", "two_stages_50", "two_stages_90", "two_stages_100"]


def test_one_trial_releases_each_candidate_with_its_weight():
    accuracy = [0.2, 0.4, 0.9, 0.6, 0.3]
    bank = made_stage_bank([5, 1, 2, 3, 4], accuracy)
    for weight in WEIGHTS:
        assert stage_accuracy(bank, option(), weight, "public") == pytest.approx((1.0 - weight) * 0.3 + weight * 0.6, abs=1e-9)


def test_with_many_trials_the_best_score_wins_and_only_among_what_is_drawn():
    bank = made_stage_bank([5, 9, 2, 3, 4], [0.2, 0.4, 0.9, 0.6, 0.3])
    many = option(Fixed(k=100))
    assert stage_accuracy(bank, many, 0.0, "public") == pytest.approx(0.4, abs=1e-6)
    assert stage_accuracy(bank, many, 0.5, "public") == pytest.approx(0.4, abs=1e-6)
    assert stage_accuracy(bank, many, 1.0, "public") == pytest.approx(0.3, abs=1e-6)


@pytest.mark.parametrize("weight", WEIGHTS)
def test_two_trials_by_every_draw(weight):
    """The winner of two trials, ties at random, from all 25 pairs of draws."""
    scores, accuracy, drawn = [5, 1, 2, 2, 4], [0.2, 0.4, 0.9, 0.6, 0.3], mixture(5, weight)
    wanted = sum(
        drawn[one] * drawn[two] * np.mean([accuracy[place] for place in (one, two) if scores[place] == max(scores[one], scores[two])])
        for one in range(5)
        for two in range(5)
    )
    assert stage_accuracy(made_stage_bank(scores, accuracy), option(Fixed(k=2)), weight, "public") == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("law", stage_laws(), ids=str)
def test_the_chances_of_all_candidates_make_1_for_every_law_and_weight(law, fresh_rng):
    for weight in WEIGHTS:
        for noise in (0.0, 3.0):
            chances = winning_chances(fresh_rng.integers(0, 20, 15).astype(float), noise, law, mixture(15, weight))
            assert chances.sum() == pytest.approx(1.0, abs=1e-7)
            assert (chances >= 0.0).all()
            assert (chances[:12] > 0.0).any() == (weight < 1.0)
            assert (chances[12:] > 0.0).any() == (weight > 0.0)


@pytest.mark.parametrize("weight", [0.5, 0.9])
def test_a_simulation_with_noisy_counts_agrees(weight, fresh_rng):
    scores, accuracy = np.array([20.0, 12.0, 17.0, 18.0, 21.0]), np.array([0.1, 0.4, 0.9, 0.6, 0.3])
    found = stage_accuracy(made_stage_bank(scores, accuracy), option(Fixed(k=4), score_noise=3.0), weight, "paid")
    drawn = fresh_rng.choice(5, size=(RUNS, 4), p=mixture(5, weight))
    best = (scores[drawn] + fresh_rng.normal(0.0, 3.0, drawn.shape)).argmax(axis=1)
    released = accuracy[drawn[np.arange(RUNS), best]]
    assert abs(released.mean() - found) < norm.isf(FALSE_ALARM / 2.0) * released.std() / np.sqrt(RUNS)


def test_a_public_score_has_no_noise():
    bank = made_stage_bank([5, 1, 2, 3, 4], [0.2, 0.4, 0.9, 0.6, 0.3])
    public, other = (stage_accuracy(bank, option(Fixed(k=3), score_noise=noise), 0.5, "public") for noise in (2.0, 50.0))
    assert public == other
    assert stage_accuracy(bank, option(Fixed(k=3), score_noise=50.0), 0.5, "paid") != pytest.approx(public, abs=1e-3)


def test_no_trial_at_all_is_the_most_frequent_class():
    bank = made_stage_bank([1, 1, 1, 1], [0.8] * 4, trivial=0.3)
    none = np.exp(-2.0)
    assert stage_accuracy(bank, option(Poisson(mean=2)), 0.5, "public") == pytest.approx((1.0 - none) * 0.8 + none * 0.3, abs=1e-9)


def test_search_noise_is_interpolated_in_its_logarithm_and_continued():
    """The better candidate of the first level is the worse one of the second."""
    levels = np.array(SEARCH_LEVELS) * UNTUNED[1.0]
    scores = np.array([[9, 1, 0, 0, 0], [1, 9, 0, 0, 0], [1, 9, 0, 0, 0], [9, 1, 0, 0, 0]], dtype=float)
    bank = StageBank(levels, scores, np.broadcast_to([0.2, 0.8, 0.0, 0.0, 0.0], (len(SPLITS), 2, 5)), 0.0)
    low, high = 0.25 * 0.8 + 0.75 * 0.2, 0.75 * 0.8 + 0.25 * 0.2
    for first, share, wanted in (
        (0, 0.0, low),
        (0, 0.5, 0.5),
        (1, 0.0, high),
        (1, 0.7, high),
        (2, 0.25, 0.75 * high + 0.25 * low),
        (2, 1.0, low),
    ):
        noise = levels[first] ** (1.0 - share) * levels[first + 1] ** share
        found = stage_accuracy(bank, dataclasses.replace(option(Fixed(k=2)), search_noise=noise), 0.0, "public")
        assert found == pytest.approx(wanted, abs=1e-9)
    beyond = levels[3] * (levels[3] / levels[2]) ** 0.1
    found = stage_accuracy(bank, dataclasses.replace(option(Fixed(k=2)), search_noise=beyond), 0.0, "public")
    assert found == pytest.approx(1.1 * low - 0.1 * high, abs=1e-9)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_transferred_learning_rate_is_interpolated_at_its_own_split(epsilon):
    for at, split in enumerate(SPLITS):
        accuracy = np.zeros((len(SPLITS), 2, 4))
        accuracy[at] = [[0.4] * 4, [0.6] * 4]
        bank = dataclasses.replace(made_stage_bank([1] * 4, [0.0] * 4, epsilon), accuracy=accuracy)
        one = option(split=split, epsilon=epsilon)
        low, high = RATES[epsilon][at]
        for share in (0.0, 0.3, 1.0):
            factor = low ** (1.0 - share) * high**share
            noise = one.search_noise * factor / transfer_factor(one.search_noise, one.final_noise)
            found = stage_accuracy(bank, dataclasses.replace(one, search_noise=noise), 0.5, "public")
            assert found == pytest.approx(0.4 + 0.2 * share, abs=1e-9)


def test_an_option_is_chosen_by_the_other_repetitions_only():
    # The first option is better in all repetitions except the last, where it is so bad that the second is better on average over all.
    values = np.array([[0.6, 0.6, 0.6, 0.0], [0.5, 0.5, 0.5, 0.5]])
    options = [option(), option(Fixed(k=3))]
    found = chosen_by_others("any", options, values)
    # The first three see (0.6 + 0.6 + 0) / 3 < 0.5; the last sees 0.6 three times, and still uses the first option.
    assert found.accuracy.tolist() == [0.5, 0.5, 0.5, 0.0]
    assert found.chosen == (*[options[1]] * 3, options[0])
    assert found.option == options[1]
    # What a repetition says about itself changes nothing about its own choice.
    for own in (0.0, 1.0):
        changed = values.copy()
        changed[1, 3] = own
        assert chosen_by_others("any", options, changed).chosen[3] == options[0]


def test_every_weight_has_its_own_option():
    """Drawn candidates are good with one trial, defaults with many."""
    banks = [made_stage_bank([1, 1, 9, 0, 0], [0.8, 0.8, 0.9, 0.1, 0.1])] * 3
    options = [option(), option(Fixed(k=100))]
    found = {one.regime: one for one in secret_outcomes(banks, options, "public")}
    assert list(found) == [regime_name(weight) for weight in WEIGHTS]
    assert found["two_stages_100"].option == options[1]
    assert found["two_stages_100"].accuracy == pytest.approx([0.9] * 3, abs=1e-7)
    assert found["two_stages_0"].accuracy == pytest.approx([0.8] * 3, abs=1e-7)
    for weight, outcome in zip(WEIGHTS, found.values(), strict=True):
        chances = winning_chances(banks[0].scores[0], 0.0, outcome.option.trials, mixture(5, weight))
        assert outcome.accuracy == pytest.approx([chances @ banks[0].accuracy[0, 0]] * 3, abs=1e-9)


# -- references and rows


@pytest.fixture
def stored():
    return stored_references(one_shot_rows(["tiny"]))


def test_references_are_those_of_the_same_repetitions(stored):
    tasks = [stage_tasks()[place] for place in (0, 2)]
    found = {one.regime: one.accuracy for one in reference_outcomes(tasks, stored)}
    assert tuple(found) == REFERENCES
    for regime, first in {"one_shot": 0.5, "free": 0.7, "mean_default": 0.55, "best_default": 0.65}.items():
        assert found[regime] == pytest.approx([first, first + 0.02], abs=1e-12)


def test_the_luckiest_default_is_one_default_in_all_repetitions(stored):
    changed = dict(stored)
    changed["tiny", "public", 1.0, "default_2"] = {0: 0.99, 1: 0.0, 2: 0.0}
    found = {one.regime: one.accuracy for one in reference_outcomes(stage_tasks(), changed)}
    assert found["best_default"] == pytest.approx([0.65, 0.66, 0.67], abs=1e-12)
    assert found["mean_default"] == pytest.approx([(0.6 + 0.99 + 0.65) / 3, (0.61 + 0.66) / 3, (0.62 + 0.67) / 3], abs=1e-12)


def test_a_row_has_the_differences_to_all_references(stored):
    outcome = chosen_by_others("two_stages_50", [option(Geometric(mean=10))], np.array([[0.6, 0.7, 0.65]]))
    row, single = stage_rows(outcome, stage_tasks(), stored)
    assert (row["trials"], row["split"], row["score_noise"], row["repetitions"]) == ("geometric(mean=10)", 1.07, "", 3)
    assert row["final_noise"] == 1.07 * UNTUNED[1.0]
    wanted = interval("accuracy", outcome.accuracy)
    for other in reference_outcomes(stage_tasks(), stored):
        wanted |= interval(f"over_{other.regime}", outcome.accuracy - other.accuracy)
    assert {name: row[name] for name in wanted} == wanted
    assert [(one["repetition"], one["accuracy"], one["trials"]) for one in single] == [
        (place, accuracy, "geometric(mean=10)") for place, accuracy in enumerate((0.6, 0.7, 0.65))
    ]
    assert stage_rows(outcome, stage_tasks(validation="paid"), stored)[0]["score_noise"] == 2.0


def test_a_reference_has_no_option_and_is_not_ahead_of_itself(stored):
    for outcome in reference_outcomes(stage_tasks(), stored):
        row, single = stage_rows(outcome, stage_tasks(), stored)
        assert {row[name] for name in ("trials", "split", "search_noise", "final_noise", "score_noise")} == {""}
        assert [row[f"over_{outcome.regime}_{end}"] for end in ("mean", "low", "high")] == [0.0] * 3
        assert len(single) == 3
    assert len(DEFAULTS) == 3
