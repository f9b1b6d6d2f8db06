"""The headline: a row of it computed again, what stands behind its numbers, and a run that draws it."""

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from privselect import Selection
from privselect.counts import Geometric
from privselect.selection.compare import paper_bound, renyi_bound
from research.csv_io import read_csv
from research.experiments import headline
from research.experiments.headline import EPSILONS, MEANS, PICTURE, TABLE, headline_row, main, run
from research.experiments.settings import DELTA, training

STORED = Path(__file__).parents[3] / "docs" / "experiments" / TABLE
row_of = cache(headline_row)


def stored_row(epsilon, mean):
    (row,) = (row for row in read_csv(STORED) if (float(row["epsilon"]), int(row["mean"])) == (epsilon, mean))
    return row


def test_the_noise_for_thirty_trials():
    row = row_of(1.0, 30)
    for name, noise in {"exact": 2.834, "paper": 3.714, "renyi": 4.170, "untuned": 1.772}.items():
        assert row[f"{name}_noise"] == pytest.approx(noise, rel=5e-3)


def test_a_row_computed_again_is_the_stored_one():
    stored = stored_row(1.0, 30)
    assert list(row_of(1.0, 30)) == list(stored)
    for name, value in row_of(1.0, 30).items():
        # The other bounds are searched for to a thousandth, and trials grow with a power of the noise: the path of the search is the same.
        assert value == pytest.approx(float(stored[name]), rel=5e-4)


def test_as_many_trials_as_are_told_are_allowed_and_a_few_more_are_not():
    row = row_of(1.0, 30)
    for other in ("paper", "renyi"):
        mean, trial = row[f"exact_trials_at_{other}_noise"], training(row[f"{other}_noise"])
        assert Selection(trial, Geometric(mean=mean)).epsilon_at(DELTA).upper <= 1.0
        assert Selection(trial, Geometric(mean=1.01 * mean)).epsilon_at(DELTA).lower > 1.0
    for name, bound in (("paper", paper_bound), ("renyi", renyi_bound)):
        mean = row[f"{name}_trials_at_exact_noise"]
        assert bound(training(row["exact_noise"]), Geometric(mean=mean), DELTA) <= 1.0
        assert bound(training(row["exact_noise"]), Geometric(mean=1.01 * mean), DELTA) > 1.0


def test_where_not_even_one_trial_is_allowed_there_are_none():
    assert headline._trials(1.76, 1.0, "exact") == 0.0  # less than one training alone needs
    assert headline._trials(1.79, 1.0, "exact") > 1.0
    assert headline._trials(1.79, 1.0, "renyi") == 0.0
    assert headline._trials(None, 1.0, "exact") is None


def test_the_stored_table_has_more_trials_by_the_exact_price_and_fewer_by_the_others():
    for row in read_csv(STORED):
        mean = float(row["mean"])
        assert mean < float(row["exact_trials_at_paper_noise"]) < float(row["exact_trials_at_renyi_noise"])
        assert 1.0 < float(row["renyi_trials_at_exact_noise"]) < float(row["paper_trials_at_exact_noise"]) < mean


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "mean"), [(3.0, 10), (3.0, 1000), (1.0, 100)])
def test_more_rows_computed_again_are_the_stored_ones(epsilon, mean):
    for name, value in headline_row(epsilon, mean).items():
        assert value == pytest.approx(float(stored_row(epsilon, mean)[name]), rel=5e-4)


def test_a_run_writes_its_table_in_order_and_draws_it(tmp_path, monkeypatch, capsys):
    def known(epsilon, mean):
        return {name: float(value) if "_" in name else value for name, value in stored_row(epsilon, mean).items()}

    monkeypatch.setattr(headline, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(headline, "headline_row", known)
    run(tmp_path, 2)
    assert (tmp_path / TABLE).read_bytes() == STORED.read_bytes()
    assert (tmp_path / PICTURE).read_bytes().startswith(b"\x89PNG")
    assert sorted(file.name for file in tmp_path.iterdir()) == [TABLE, PICTURE]
    number = len(EPSILONS) * len(MEANS)
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1]) == ("", f"headline: {number} of {number}")


@pytest.mark.parametrize(
    ("out", "jobs", "told"),
    [
        ("", "0", "error: `jobs` must be an integer >= 1 and <= 64, got 0"),
        ("", "65", "error: `jobs` must be an integer >= 1 and <= 64, got 65"),
        ("", "two", "error: argument --jobs: invalid int value: 'two'"),
        ("none", "1", "error: `out` must be a file in a folder that exists, got '"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_sentence_before_the_work_begins(tmp_path, monkeypatch, capsys, out, jobs, told):
    monkeypatch.setattr(headline, "headline_row", None)  # which nobody can call
    with pytest.raises(SystemExit) as end:
        main(["--out", str(tmp_path / out), "--jobs", jobs])
    assert end.value.code == 2
    assert told in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.iterdir())
