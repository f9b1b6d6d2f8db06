"""The stored tables of the experiment on two stages, and the sentences of its page."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from research.csv_io import read_csv
from research.experiments.accuracy import SINGLE as ONE_SHOT
from research.experiments.pages import STORED
from research.experiments.settings import EPSILONS, REPETITIONS, SETTINGS
from research.experiments.stage_bank import VALIDATIONS
from research.experiments.stage_results import REFERENCES, WEIGHTS, regime_name, stored_references
from research.experiments.stage_summary import averages, findings
from research.experiments.two_stages import NOISE, PICTURES, RESULTS, SINGLE
from research.experiments.visible_runs import METHODS

ROOT = Path(__file__).parents[3]
ROWS, SINGLES = (read_csv(ROOT / STORED / name) for name in (RESULTS, SINGLE))
PAGE = (ROOT / STORED / "two_stages.md").read_text()
SECRET = tuple(regime_name(weight) for weight in WEIGHTS)
VISIBLE = tuple(f"visible_{method}" for method in METHODS)
FEW = ("mnist-2000", "small-mnist-2400", "network-2400", "mnist-hard-6000", "small-mnist-hard-2400")
PLENTY = ("mnist-20000", "mnist-48000", "adult-26000")


def names(row):
    return row["setting"], row["validation"], float(row["epsilon"]), row["regime"]


FIRST = {(row["setting"], row["regime"]): row for row in ROWS if names(row)[1:3] == ("public", 1.0)}


def column(name, regime, settings):
    """A column in points, at epsilon 1 with public validation."""
    return [100.0 * float(FIRST[setting, regime][name]) for setting in settings]


def test_every_setting_validation_epsilon_and_regime_is_there_once():
    wanted = {
        (setting.name, validation, epsilon, regime)
        for setting in SETTINGS
        for validation in VALIDATIONS
        for epsilon in EPSILONS
        for regime in (*REFERENCES, *SECRET, *VISIBLE)
    }
    assert {names(row) for row in ROWS} == wanted
    assert len(ROWS) == len(wanted)
    assert {int(row["repetitions"]) for row in ROWS} == {REPETITIONS}


def test_means_and_intervals_are_those_of_the_single_repetitions():
    values = {}
    for row in SINGLES:
        values.setdefault(names(row), {})[int(row["repetition"])] = float(row["accuracy"])
    for row in ROWS:
        own = np.array(list(values[names(row)].values()))
        compared = {"accuracy": own}
        for other in REFERENCES:
            reference = values[(*names(row)[:3], other)]
            compared[f"over_{other}"] = own - np.array([reference[place] for place in values[names(row)]])
        for name, numbers in compared.items():
            half = student.ppf(0.975, len(own) - 1) * numbers.std(ddof=1) / np.sqrt(len(own))
            # Seven digits are stored, and differences of them are good to as many places.
            assert float(row[f"{name}_mean"]) == pytest.approx(numbers.mean(), abs=3e-7)
            assert float(row[f"{name}_low"]) == pytest.approx(numbers.mean() - half, abs=2e-6)
            assert float(row[f"{name}_high"]) == pytest.approx(numbers.mean() + half, abs=2e-6)


def test_references_are_the_stored_results_of_one_shot():
    stored = stored_references(read_csv(ROOT / STORED / ONE_SHOT))
    for row in SINGLES:
        if row["regime"] in {"one_shot", "free"}:
            regime = {"one_shot": "exact", "free": "free"}[row["regime"]]
            assert (
                float(row["accuracy"]) == stored[row["setting"], row["validation"], float(row["epsilon"]), regime][int(row["repetition"])]
            )


def test_every_option_used_is_in_the_table_of_noises():
    kinds = {"two": "secret", "visible": "visible"}
    noise = {(row["epsilon"], row["search"], row["trials"], row["split"]): row for row in read_csv(ROOT / STORED / NOISE)}
    for row in [*ROWS, *SINGLES]:
        if row["regime"] not in REFERENCES:
            search = "scaling" if row["regime"] == "visible_scaling" else kinds[row["regime"].split("_")[0]]
            option = noise[row["epsilon"], search, row["trials"], row["split"]]
            for name in ("search_noise", "final_noise"):
                assert row.get(name, option[name]) == option[name]


def test_the_goals_are_met():
    """The page says so in a table; this fails if a new run says otherwise."""
    found = findings(SINGLES)
    assert [one.met for one in found] == [True, None, None, True, True]
    assert averages(SINGLES, "public", 1.0).mean("one_shot").size == REPETITIONS
    # Stricter readings of the first demand: 60% is met there too.
    assert min(one.mean for one in found[:3]) > 0.6


def test_pictures_are_there():
    for picture in PICTURES.values():
        assert f"({picture})" in PAGE
        assert (ROOT / STORED / picture).read_bytes().startswith(b"\x89PNG")


def test_the_gain_with_defaults():
    few, plenty = (column("over_one_shot_mean", "two_stages_90", settings) for settings in (FEW, PLENTY))
    said = "gain {:.0f} to {:.0f} points over one shot on 2000 to 2400 images and in the hard space"
    assert said.format(min(few), max(few)) in PAGE
    assert f"From 20,000 records on, the difference is {min(plenty):+.1f} to {max(plenty):+.1f} points." in PAGE


def test_more_weight_is_better_on_average_and_exploring_wins_with_much_data():
    found = averages(SINGLES, "public", 1.0)
    means = [found.mean(regime).mean() for regime in SECRET]
    assert means == sorted(means)
    assert "Exploring wins on MNIST with 48,000 images, where w = 0 and w = 0.5 are ahead of every default." in PAGE
    for regime in SECRET[:2]:
        assert column("over_best_default_low", regime, ["mnist-48000"])[0] > 0.0


def test_visible_search_needs_defaults():
    found = averages(SINGLES, "public", 1.0)
    mean = {regime: 100.0 * found.mean(regime).mean() for regime in found.values}
    assert "Defaults then TPE is within 0.5 points of two stages with w = 0.9 on average." in PAGE
    assert abs(mean["visible_tpe_defaults"] - mean["two_stages_90"]) < 0.5
    assert "TPE is within 1 point of one shot on average, and the scaling rule is behind one shot." in PAGE
    assert abs(mean["visible_tpe"] - mean["one_shot"]) < 1.0
    assert mean["visible_scaling"] < mean["one_shot"] - 1.0


def test_paid_validation_and_epsilon_3():
    groups = [(validation, epsilon) for validation in VALIDATIONS for epsilon in EPSILONS if (validation, epsilon) != ("public", 1.0)]
    found = {group: averages(SINGLES, *group) for group in groups}
    mean = {group: {regime: 100.0 * one.mean(regime).mean() for regime in one.values} for group, one in found.items()}

    def said(regime, other, chosen=groups):
        distances = [mean[group][regime] - mean[group][other] for group in chosen]
        return f"{min(distances):.1f} to {max(distances):.1f} points"

    late = [group for group in groups if group[1] == 3.0]
    assert f"w = 0.9 are {said('two_stages_90', 'one_shot')} ahead of one shot" in PAGE
    assert f"and {said('best_default', 'two_stages_90')} behind the luckiest default" in PAGE
    assert f"With w = 0, they are {said('two_stages_0', 'one_shot')} ahead of one shot" in PAGE
    assert f"TPE by {said('one_shot', 'visible_tpe', late)}, the scaling rule by {said('one_shot', 'visible_scaling', late)}." in PAGE
    assert "The averages of w = 0.5, 0.9 and 1 are within 0.2 points of each other." in PAGE
    for group in late:
        values = [mean[group][regime] for regime in SECRET[1:]]
        assert max(values) - min(values) < 0.2


def test_where_no_defaults_fall_behind():
    settings = [setting.name for setting in SETTINGS]
    behind = {name for name in settings if column("over_one_shot_mean", "two_stages_0", [name])[0] < 0.0}
    assert f"With w = 0, two stages are behind one shot in {len(behind)} of {len(settings)} settings" in PAGE
    assert behind == {"mnist-2000", "adult-6000", "adult-26000"}
    assert "behind one shot on MNIST with 2000 images and on Adult with 6000 and 26,000 records (epsilon 1, public validation)" in PAGE


def test_where_defaults_alone_fall_behind():
    settings = ("mnist-20000", "mnist-48000")
    rows = [row for row in ROWS if row["setting"] in settings and (row["epsilon"], row["regime"]) == ("3", "two_stages_100")]
    assert len(rows) == len(settings) * len(VALIDATIONS)
    assert all(float(row["over_one_shot_high"]) < 0.0 for row in rows)
    behind = [-100.0 * float(row["over_one_shot_mean"]) for row in rows]
    assert f"by {min(behind):.1f} to {max(behind):.1f} points. There the search space" in PAGE


def test_references_of_adult_are_close():
    values = [column("accuracy_mean", regime, ["adult-26000"])[0] for regime in REFERENCES]
    assert f"all references are within {np.ceil(10.0 * (max(values) - min(values))) / 10.0:.1f} points of each other" in PAGE
