"""From banks to tables: intervals, the choice of an option, accuracies between levels, and which scores decide."""

import numpy as np
import pytest
from experiments_made import TINY, UNTUNED, drawn_bank, made_bank
from scipy.stats import norm
from scipy.stats import t as student

from privselect.counts import Fixed, Geometric, Poisson
from research.experiments.regimes import REGIMES, Option
from research.experiments.results import VALIDATIONS, interval, option_accuracy, outcomes, setting_rows, untuned_accuracies
from research.experiments.settings import EPSILONS
from research.experiments.winner import winning_chances

FALSE_ALARM = 1e-6  # of each statistical test below
LEVELS = (0.9282996, 1.771926, 5.2)


def option(regime="exact", count=None, noise=1.0, score_noise=1.0, epsilon=1.0):
    return Option(epsilon, regime, count or Geometric(mean=3), noise, score_noise)


def one_of_each(count=None, **given):
    return [option(regime, count, epsilon=epsilon, **given) for epsilon in EPSILONS for regime in REGIMES]


def found_of(banks, options, epsilon=1.0, validation="public"):
    return {one.regime: one for one in outcomes(banks, options, epsilon, validation)}


def test_an_interval_by_a_table_of_students_t():
    # Ten values of mean 5.5 and deviation sqrt(55/6); t at 97.5% with nine degrees of freedom is 2.262157.
    found = interval("x", np.arange(1.0, 11.0))
    half = 2.262157 * np.sqrt(55.0 / 6.0) / np.sqrt(10.0)
    assert list(found) == ["x_mean", "x_low", "x_high"]
    assert [found[name] for name in found] == pytest.approx([5.5, 5.5 - half, 5.5 + half], rel=1e-6)


def test_an_interval_holds_the_mean_as_often_as_it_says(fresh_rng):
    hits = 0
    for _ in range(2000):
        found = interval("x", fresh_rng.normal(size=10))
        hits += found["x_low"] <= 0.0 <= found["x_high"]
    # Of 2000 intervals 1900 in the mean, with a deviation of 9.75.
    assert abs(hits - 1900) < norm.isf(FALSE_ALARM / 2.0) * np.sqrt(2000 * 0.95 * 0.05)


def test_at_its_levels_a_bank_is_taken_as_it_is_and_in_between_by_a_line_in_the_logarithm(fresh_rng):
    bank = drawn_bank(fresh_rng)
    by_hand = [winning_chances(bank.scores("public")[level], 0.0, Geometric(mean=3)) @ bank.test_accuracy[level] for level in range(3)]
    at = [option_accuracy([bank], option(noise=noise), "public")[0] for noise in LEVELS]
    assert at == pytest.approx(by_hand, abs=1e-6)  # what a geometric law's chances miss to 1 is nothing but rounding
    for low, high, share in ((0, 1, 0.25), (0, 1, 0.5), (1, 2, 0.9)):
        noise = LEVELS[low] ** (1.0 - share) * LEVELS[high] ** share
        found = option_accuracy([bank], option(noise=noise), "public")[0]
        assert found == pytest.approx((1.0 - share) * at[low] + share * at[high], abs=1e-12)


def test_public_scores_decide_without_noise_and_held_out_ones_with_it():
    # By the public scores the first is best, by those held out the second, in fact the third.
    bank = made_bank(np.broadcast_to([[[9, 5, 1]], [[1, 9, 5]], [[10, 20, 90]]], (3, 3, 3)))
    accuracy = [0.1, 0.2, 0.9]
    public = winning_chances(np.array([9.0, 5.0, 1.0]), 0.0, Fixed(k=5)) @ accuracy
    assert option_accuracy([bank], option(count=Fixed(k=5), score_noise=3.0), "public") == pytest.approx([public], abs=1e-12)
    for noise in (0.5, 3.0, 30.0):
        held = winning_chances(np.array([1.0, 9.0, 5.0]), noise, Fixed(k=5)) @ accuracy
        assert option_accuracy([bank], option(count=Fixed(k=5), score_noise=noise), "paid") == pytest.approx([held], abs=1e-12)


def test_no_trial_at_all_is_the_most_frequent_class():
    bank = made_bank(np.broadcast_to([[[9]], [[9]], [[80]]], (3, 3, 1)), trivial=0.3)
    none = np.exp(-2.0)
    assert option_accuracy([bank], option(count=Poisson(mean=2)), "public") == pytest.approx([(1.0 - none) * 0.8 + none * 0.3], abs=1e-9)


def test_an_option_is_chosen_by_the_other_repetitions():
    # Level 0 is better in all banks but the last, where it is far worse: that one still gets it.
    usual, odd = ([[[1, 1]] * 3, [[1, 1]] * 3, [[accuracy] * 2, [50, 50], [50, 50]]] for accuracy in (90, 0))
    banks = [made_bank(right) for right in (usual, usual, usual, odd)]
    options = [
        *one_of_each(noise=LEVELS[0]),
        *one_of_each(count=Fixed(k=3), noise=LEVELS[1]),
    ]
    exact = found_of(banks, options)["exact"]
    # The first three see two good banks and a bad one, (90 + 90 + 0) / 3 = 60 > 50; the last sees three good ones.
    assert exact.accuracy == pytest.approx([0.9, 0.9, 0.9, 0.0], abs=1e-6)
    assert exact.chosen == ("geometric(mean=3)",) * 4
    assert exact.option.noise == LEVELS[0]


def test_choosing_by_the_others_does_not_flatter_where_choosing_by_all_does(fresh_rng):
    # Pure chance: all options of all banks have the same law, of mean 0.495 (a whole number below 100).
    cross, greedy = [], []
    for _ in range(100):
        # With one level for each option, and all candidates alike in a level, values are independent and uniform.
        right = [np.broadcast_to(fresh_rng.integers(0, 100, (3, 1)), (3, 2)) for _ in range(6)]
        banks = [made_bank(np.stack([np.ones((3, 2)), np.ones((3, 2)), one])) for one in right]
        options = [one for noise in LEVELS for one in one_of_each(noise=noise)]
        cross.append(found_of(banks, options)["exact"].accuracy.mean())
        greedy.append(max(np.mean([one[level, 0] / 100.0 for one in right]) for level in range(3)))
    far = student.isf(FALSE_ALARM / 2.0, 99)
    assert abs(np.mean(cross) - 0.495) < far * np.std(cross, ddof=1) / 10.0
    # Its mean is about ten of its standard errors too high.
    assert np.mean(greedy) - 0.495 > far * np.std(greedy, ddof=1) / 10.0


def test_options_of_another_epsilon_or_beyond_the_greatest_noise_are_not_taken(fresh_rng):
    banks = [drawn_bank(fresh_rng) for _ in range(3)]
    options = one_of_each(noise=1.5)
    more = [option(count=Fixed(k=3), noise=5.3), option(count=Fixed(k=4), noise=1.0, epsilon=3.0)]
    plain, mixed = (found_of(banks, given)["exact"] for given in (options, [*options, *more]))
    assert np.array_equal(plain.accuracy, mixed.accuracy)
    assert mixed.chosen == ("geometric(mean=3)",) * 3


def test_defaults_are_those_of_their_epsilon_with_the_held_out_records_where_no_score_needs_them():
    defaults = np.arange(12.0).reshape(2, 2, 3) / 20.0
    banks = [made_bank(np.ones((3, 3, 2)), defaults=defaults) for _ in range(2)]
    for at, epsilon in enumerate(EPSILONS):
        for more, validation in enumerate(VALIDATIONS):
            found = found_of(banks, one_of_each(), epsilon, validation)
            assert [found[f"default_{n}"].accuracy[0] for n in (1, 2, 3)] == defaults[at, more].tolist()


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_untuned_are_the_candidates_at_the_noise_of_one_training(epsilon, fresh_rng):
    bank = drawn_bank(fresh_rng)
    level = LEVELS.index(UNTUNED[epsilon])
    assert np.array_equal(untuned_accuracies(bank, epsilon), bank.right[2, level] / 100.0)
    found = found_of([bank, bank], one_of_each(), epsilon)
    assert found["untuned"].accuracy == pytest.approx([bank.right[2, level].mean() / 100.0] * 2, rel=1e-12)


@pytest.fixture
def rows(fresh_rng):
    banks = [drawn_bank(fresh_rng) for _ in range(4)]
    return banks, *setting_rows(TINY, banks, one_of_each())


def test_a_row_for_each_validation_epsilon_and_regime_and_one_for_each_repetition(rows):
    _, table, single = rows
    regimes = [*REGIMES, "default_1", "default_2", "default_3", "untuned"]
    wanted = [(validation, epsilon, regime) for validation in VALIDATIONS for epsilon in EPSILONS for regime in regimes]
    assert [(row["validation"], row["epsilon"], row["regime"]) for row in table] == wanted
    assert len(single) == 4 * len(table)
    for row in table:
        names = ("validation", "epsilon", "regime")
        own = [one["accuracy"] for one in single if all(one[name] == row[name] for name in names)]
        assert row["accuracy_mean"] == pytest.approx(np.mean(own), rel=1e-12)
        assert row["repetitions"] == 4


def test_gains_are_of_the_same_repetitions(rows):
    _, table, single = rows
    for row in table:
        own, exact = (
            np.array(
                [
                    one["accuracy"]
                    for one in single
                    if (one["validation"], one["epsilon"], one["regime"]) == (row["validation"], row["epsilon"], regime)
                ]
            )
            for regime in (row["regime"], "exact")
        )
        assert {key: row[key] for key in row if key.startswith("exact_gains")} == interval("exact_gains", exact - own)
        assert row["regime"] != "exact" or (row["exact_gains_low"], row["exact_gains_high"]) == (0.0, 0.0)


def test_the_share_of_the_untuned_that_are_beaten(rows):
    banks, table, single = rows
    for row in table:
        own = [one for one in single if all(one[name] == row[name] for name in ("validation", "epsilon", "regime"))]
        level = LEVELS.index(UNTUNED[row["epsilon"]])
        shares = [np.mean(bank.right[2, level] / 100.0 < one["accuracy"]) for bank, one in zip(banks, own, strict=True)]
        assert row["beats_untuned"] == pytest.approx(np.mean(shares), abs=1e-12)


def test_what_is_not_tuned_has_no_law_and_a_public_score_no_noise(rows):
    for row in rows[1]:
        tuned = row["regime"] in REGIMES
        assert row["count"] == ("geometric(mean=3)" if tuned else "")
        assert row["noise_multiplier"] == (1.0 if tuned else UNTUNED[row["epsilon"]])
        assert row["score_noise"] == (1.0 if tuned and row["validation"] == "paid" else "")
