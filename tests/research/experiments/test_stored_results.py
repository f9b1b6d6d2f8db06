"""The stored tables of the experiments, and the pages that show them."""

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t as student

from privselect._util.rounding import format_up
from research.csv_io import read_csv
from research.experiments.accuracy import NOISE, RESULTS, SINGLE
from research.experiments.headline import EPSILONS as HEADLINE_EPSILONS
from research.experiments.headline import MEANS, TABLE
from research.experiments.pages import PAGES, STORED, filled, tables
from research.experiments.regimes import MOST_TRIALS, REGIMES, Option
from research.experiments.results import VALIDATIONS
from research.experiments.settings import DEFAULTS, EPSILONS, GREATEST_NOISE, REPETITIONS, SETTINGS

ROOT = Path(__file__).parents[3]
ALL = (*REGIMES, *(f"default_{place + 1}" for place in range(len(DEFAULTS))), "untuned")


@pytest.fixture(scope="module")
def results():
    return read_csv(ROOT / STORED / RESULTS)


@pytest.fixture(scope="module")
def single():
    return read_csv(ROOT / STORED / SINGLE)


@pytest.fixture(scope="module")
def headline():
    return read_csv(ROOT / STORED / TABLE)


def names(row):
    return row["setting"], row["validation"], float(row["epsilon"]), row["regime"]


def test_every_setting_validation_epsilon_and_regime_is_there_once(results):
    wanted = {
        (setting.name, validation, epsilon, regime)
        for setting in SETTINGS
        for validation in VALIDATIONS
        for epsilon in EPSILONS
        for regime in ALL
    }
    assert {names(row) for row in results} == wanted
    assert len(results) == len(wanted)
    assert {int(row["repetitions"]) for row in results} == {REPETITIONS}
    assert REPETITIONS >= 10


def test_means_and_intervals_are_those_of_the_single_repetitions(results, single):
    values = {}
    for row in single:
        values.setdefault(names(row), []).append(float(row["accuracy"]))
    for row in results:
        own, exact = np.array(values[names(row)]), np.array(values[(*names(row)[:3], "exact")])
        for name, numbers in (("accuracy", own), ("exact_gains", exact - own)):
            half = student.ppf(0.975, len(own) - 1) * numbers.std(ddof=1) / np.sqrt(len(own))
            # Seven digits are stored, and differences of them are good to as many places.
            assert float(row[f"{name}_mean"]) == pytest.approx(numbers.mean(), abs=2e-7)
            assert float(row[f"{name}_low"]) == pytest.approx(numbers.mean() - half, abs=1e-6)
            assert float(row[f"{name}_high"]) == pytest.approx(numbers.mean() + half, abs=1e-6)


def test_every_option_used_is_in_the_table_of_noises(results, single):
    priced = {(one.epsilon, one.regime, str(one.count)): one for one in map(Option.from_row, read_csv(ROOT / STORED / NOISE))}
    for row in [*results, *single]:
        if row["regime"] in REGIMES:
            option = priced[float(row["epsilon"]), row["regime"], row["count"]]
            assert option.count.expected() <= MOST_TRIALS * (1.0 + 1e-9)
            assert option.noise <= GREATEST_NOISE
            assert float(row.get("noise_multiplier", option.noise)) == option.noise


def test_free_tuning_is_the_upper_reference(results):
    """It is never more than two points below any regime; the difference comes from laws chosen by other repetitions."""
    free = {names(row)[:3]: float(row["accuracy_mean"]) for row in results if row["regime"] == "free"}
    for row in results:
        if row["regime"] in REGIMES:
            assert float(row["accuracy_mean"]) <= free[names(row)[:3]] + 0.02


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_pages_show_what_the_tables_have(page):
    text = (ROOT / page).read_text()
    assert "<!-- end " in text
    assert filled(text, tables(ROOT)) == text


def test_the_headline_table_is_complete_and_ordered(headline):
    assert [(float(row["epsilon"]), int(row["mean"])) for row in headline] == [(e, m) for e in HEADLINE_EPSILONS for m in MEANS]
    for row in headline:
        untuned, exact, paper, renyi, composition = (
            float(row[f"{name}_noise"]) for name in ("untuned", "exact", "paper", "renyi", "composition")
        )
        assert untuned < exact < paper < renyi < composition
    known = next(row for row in headline if (row["epsilon"], row["mean"]) == ("1", "30"))
    for name, noise in {"exact": 2.834, "paper": 3.714, "renyi": 4.170, "untuned": 1.772}.items():
        assert float(known[f"{name}_noise"]) == pytest.approx(noise, rel=5e-3)


def test_numbers_in_the_text_of_the_headline_page(headline):
    page = (ROOT / STORED / "headline.md").read_text()

    def column(name):
        return np.array([float(row[name]) for row in headline])

    saved = {other: 100.0 * (1.0 - column("exact_noise") / column(f"{other}_noise")) for other in ("paper", "renyi")}
    said = "Exact accounting requires {:.0f}% to {:.0f}% less noise than the paper's bound, and {:.0f}% to {:.0f}% less than Rényi"
    assert said.format(*(end(saved[other]) for other in ("paper", "renyi") for end in (np.min, np.max))) in page
    more = {other: column(f"exact_trials_at_{other}_noise") / column("mean") for other in ("paper", "renyi")}
    said = "exact accounting allows {:.0f} to {:.0f} times as many trials as the paper's bound, and {:.0f} to {:.0f} times as many as Rényi"
    assert said.format(*(end(more[other]) for other in ("paper", "renyi") for end in (np.min, np.max))) in page
    thirty = column("mean") == 30
    extra = (column("renyi_noise") - column("untuned_noise")) / (column("exact_noise") - column("untuned_noise"))
    assert (extra[thirty] > 2.0).all()
    times = {mean: (column("composition_noise") / column("exact_noise"))[column("mean") == mean] for mean in (10, 1000)}
    said = "At 10 trials it requires {:.1f} to {:.0f} times the exact noise, and at 1000 trials {:.0f} to {:.0f} times"
    assert said.format(*(end(times[mean]) for mean in (10, 1000) for end in (np.min, np.max))) in page
    priced = [Option.from_row(row) for row in read_csv(ROOT / STORED / NOISE)]
    two = [
        next(one.noise for one in priced if (one.epsilon, one.regime, str(one.count)) == (e, "composition", "fixed(k=2)")) for e in EPSILONS
    ]
    three = [
        [
            one.noise
            for one in priced
            if (one.epsilon, one.regime) == (e, "exact") and round(one.count.expected()) == 3 and "fixed" not in str(one.count)
        ]
        for e in EPSILONS
    ]
    assert f"Two released runs need a noise of {format_up(two[0], 3)} at epsilon 1 and {format_up(two[1], 3)} at epsilon 3" in page
    assert "The best of K trials with mean 3 needs 2.04 to 2.23 at epsilon 1 and 1.00 to 1.05 at epsilon 3" in page
    assert [f"{end(noises):.2f}" for noises in three for end in (min, max)] == ["2.04", "2.23", "1.00", "1.05"]
    assert all(max(noises) < both for noises, both in zip(three, two, strict=True))
