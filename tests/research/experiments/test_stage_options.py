"""The noise of both stages: what a search and a final training leak together stays within the budget, and almost uses it up."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from experiments_made import UNTUNED, stage_options

from privselect.counts import Fixed, Geometric
from privselect.mechanisms import DPSGD, Composed, Gaussian
from privselect.selection import Selection
from research.csv_io import as_csv, read_csv
from research.experiments import stage_options as module
from research.experiments.pages import STORED
from research.experiments.settings import DELTA, EPSILONS, SAMPLING, STEPS
from research.experiments.stage_bank import RATES, SEARCH_LEVELS, SEARCH_STEPS, SPLITS, transfer_factor
from research.experiments.stage_options import SHORT_STEPS, VISIBLE, StageOption, kept_stage_options, questions, stage_laws, stage_option
from research.experiments.two_stages import NOISE

TABLE = [StageOption.from_row(row) for row in read_csv(Path(__file__).parents[3] / STORED / NOISE)]


def trials_of(option):
    """The trials of a search: of a visible one all of them, one after the other."""
    if option.search == "secret":
        return [DPSGD(option.search_noise, SAMPLING, SEARCH_STEPS)], [Gaussian(sigma=option.score_noise)]
    short = option.number // 2 if option.search == "scaling" else 0
    lengths = [SHORT_STEPS] * short + [SEARCH_STEPS] * (option.number - short)
    return [DPSGD(option.search_noise, SAMPLING, steps) for steps in lengths], [Gaussian(sigma=option.score_noise)] * option.number


def leaked(option, trials):
    """The epsilon of a search and its final training, without the planner that found the noise."""
    search = [Selection(trials[0], option.trials)] if option.search == "secret" else trials
    return Composed((*search, DPSGD(option.final_noise, SAMPLING, STEPS))).epsilon_at(DELTA).upper


# One of each search, epsilon and kind of record: a trained one and a held-out one.
@pytest.mark.parametrize(
    ("epsilon", "search", "mean"), [(1.0, "secret", 30), (3.0, "secret", 100), (1.0, "visible", 6), (3.0, "scaling", 4)]
)
def test_both_stages_together_meet_the_budget(epsilon, search, mean):
    option = next(
        one for one in TABLE if (one.epsilon, one.search, round(one.trials.expected()), one.split) == (epsilon, search, mean, 1.07)
    )
    for trials in trials_of(option):
        assert 0.985 * epsilon < leaked(option, trials) <= epsilon * (1.0 + 1e-6)  # seven digits are stored


def test_the_stored_table_has_every_question_and_less_noise_needs_a_larger_split():
    assert [(one.epsilon, one.search, one.trials, one.split) for one in TABLE] == questions()
    assert len(TABLE) == len(EPSILONS) * (len(stage_laws()) + 2 * len(VISIBLE)) * len(SPLITS)
    for first in range(0, len(TABLE), len(SPLITS)):
        group = TABLE[first : first + len(SPLITS)]
        for lower, higher in itertools.pairwise(group):
            assert lower.search_noise > higher.search_noise
            assert lower.score_noise > higher.score_noise
            assert UNTUNED[lower.epsilon] < lower.final_noise < higher.final_noise


def test_banks_reach_almost_as_far_as_the_options():
    """What the page says: at most 2.1% of the noise and 12% of the rate beyond the bank."""
    secret = [one for one in TABLE if one.search == "secret"]
    levels = [one.search_noise / UNTUNED[one.epsilon] for one in secret]
    assert SEARCH_LEVELS[0] < min(levels)
    assert SEARCH_LEVELS[-1] < max(levels) < 1.021 * SEARCH_LEVELS[-1]
    for one in secret:
        low, high = RATES[one.epsilon][SPLITS.index(one.split)]
        assert 0.88 * low < transfer_factor(one.search_noise, one.final_noise) < high


@pytest.mark.parametrize(
    ("search", "trials", "steps", "way"),
    [
        ("secret", Geometric(mean=10), 60, {"count": Geometric(mean=10)}),
        ("visible", Fixed(k=6), 360, {"visible": 6}),
        ("scaling", Fixed(k=4), 160, {"visible": 4}),
    ],
)
def test_the_planner_is_asked_for_what_is_run(monkeypatch, search, trials, steps, way):
    asked = []

    class Planned:
        value = 1.5

    def remembered(mechanism, count=None, **given):
        asked.append(
            (mechanism, {"count": count} if count is not None else {"visible": given["visible"]}, given["final"], given["epsilon"])
        )
        return Planned

    monkeypatch.setattr(module, "plan", remembered)
    option = stage_option(3.0, search, trials, 1.15)
    assert (option.search_noise, option.score_noise) == (1.5, 1.5)
    (trained, first, *_), (counted, second, *_) = asked
    assert str(trained) == f"dpsgd(noise_multiplier=?, sampling_probability={SAMPLING}, steps={steps})"
    assert first == (way if search == "secret" else {"visible": 1})  # the steps of all visible trainings are in one
    assert second == way
    assert str(counted) == "gaussian(sigma=?)"
    assert {one[2:] for one in asked} == {(DPSGD(1.15 * UNTUNED[3.0], SAMPLING, STEPS), 3.0)}


def test_options_are_planned_where_none_are_kept_or_those_of_another_experiment(tmp_path, monkeypatch, capsys):
    options, file = stage_options(), tmp_path / "options.csv"
    wanted = [(one.epsilon, one.search, one.trials, one.split) for one in options]
    monkeypatch.setattr(module, "questions", lambda: wanted)
    monkeypatch.setattr(module, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(module, "stage_option", lambda *asked: options[wanted.index(asked)])
    stale = as_csv([one.as_row() for one in options[1:]])
    for before in (None, stale, b"\xff\xfe", b"epsilon,search\n1,secret\n"):
        if before is not None:
            file.write_bytes(before)
        assert kept_stage_options(file, 1) == [StageOption.from_row(row) for row in read_csv(file)]
        assert capsys.readouterr().err == "finding the noise of every search and split\n"
    found = kept_stage_options(file, 1)
    assert capsys.readouterr().err == ""
    assert [(one.epsilon, one.search, one.trials, one.split) for one in found] == wanted
    assert [one.search_noise for one in found] == pytest.approx([one.search_noise for one in options], rel=1e-6)
    assert found[0].final_noise == 1.04 * UNTUNED[1.0]
    assert next(one for one in found if one.search == "visible").number == 4
