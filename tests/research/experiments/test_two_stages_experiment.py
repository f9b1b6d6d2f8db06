"""The command: what it writes, what it keeps, what it makes of unfinished work, and what it refuses before it begins."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
from experiments_made import TINY, UNTUNED, made_problem, one_shot_rows, stage_options

from research.csv_io import as_csv, read_csv
from research.experiments import accuracy, banks, problems, settings, stage_banks, two_stages
from research.experiments import stage_options as options_module
from research.experiments.accuracy import SINGLE as ONE_SHOT
from research.experiments.stage_bank import Task
from research.experiments.two_stages import NOISE, PICTURES, RESULTS, SINGLE, main
from research.experiments.visible_runs import visible_file

SMALL = dataclasses.replace(TINY, name="small", problem="small_mnist")
OTHER = dataclasses.replace(SMALL, name="other", problem="adult", records=44)
REGIMES = [
    *("one_shot", "free", "mean_default", "best_default"),
    *("two_stages_0", "two_stages_50", "two_stages_90", "two_stages_100"),
    *("visible_tpe", "visible_tpe_defaults", "visible_scaling"),
]


def unwanted(*_):
    raise AssertionError("this is done already")


@pytest.fixture
def small(quick, monkeypatch, tmp_path):  # noqa: ARG001 - trainings are quick before this one is begun
    """Two small settings, a few options, and two folders; only the first setting has its data without a folder."""
    for name in ("small_mnist", "adult"):
        monkeypatch.setitem(problems.PROBLEMS, name, made_problem)
    monkeypatch.setattr("research.experiments.batch.SAMPLING", 0.5)
    for module in (accuracy, two_stages):
        monkeypatch.setattr(module, "SETTINGS", (SMALL, OTHER))
    for module in (two_stages, stage_banks):
        monkeypatch.setattr(module, "REPETITIONS", 3)
    for module in (options_module, banks):
        monkeypatch.setattr(module, "ProcessPoolExecutor", ThreadPoolExecutor)
    given = stage_options()
    monkeypatch.setattr(options_module, "questions", lambda: [(one.epsilon, one.search, one.trials, one.split) for one in given])
    monkeypatch.setattr(settings, "untuned_noise", UNTUNED.__getitem__)
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    work.mkdir()
    (out / ONE_SHOT).write_bytes(as_csv(one_shot_rows(["small", "other"])))
    (work / NOISE).write_bytes(as_csv([one.as_row() for one in given]))
    return out, work


def written(out):
    return {file.name: file.read_bytes() for file in out.iterdir()}


def test_a_small_run_writes_every_table_and_picture_and_again_the_same_without_training(small, monkeypatch, capsys):
    out, work = small
    asked = ["--out", str(out), "--work", str(work), "--jobs", "1"]
    main(asked)
    first = written(out)
    assert set(first) == {ONE_SHOT, RESULTS, SINGLE, NOISE, *PICTURES.values()}
    assert first[NOISE] == (work / NOISE).read_bytes()
    rows, single = read_csv(out / RESULTS), read_csv(out / SINGLE)
    assert [(row["setting"], row["validation"], row["epsilon"], row["regime"]) for row in rows] == [
        ("small", validation, epsilon, regime) for validation in ("public", "paid") for epsilon in ("1", "3") for regime in REGIMES
    ]
    assert {row["repetitions"] for row in rows} == {"3"}
    assert len(single) == 3 * len(rows)
    err = capsys.readouterr().err.splitlines()
    assert err[0] == "0 of 24 banks of two stages are there, 24 to train"
    assert len(err) == 25

    for name in ("train_stage_bank", "run_visible"):
        monkeypatch.setattr(stage_banks, name, unwanted)
    monkeypatch.setattr(options_module, "stage_option", unwanted)
    main(asked)
    assert written(out) == first
    assert capsys.readouterr().err == "24 of 24 banks of two stages are there, 0 to train\n"
    # The same tables from the stored work alone.
    monkeypatch.setattr(two_stages, "train_stage_banks", unwanted)
    main([*asked, "--stored"])
    assert written(out) == first


def test_public_validation_and_epsilon_1_are_trained_first(small, monkeypatch):
    done = []
    monkeypatch.setattr(stage_banks, "train_stage_bank", lambda task, *_: done.append(task))
    monkeypatch.setattr(stage_banks, "run_visible", lambda task, *_: done.append(task))
    stage_banks.train_stage_banks([SMALL, OTHER], None, small[1], stage_options(), 1)
    groups = [(task.validation, task.epsilon) for task in done]
    assert list(dict.fromkeys(groups)) == [("public", 1.0), ("public", 3.0), ("paid", 1.0), ("paid", 3.0)]
    assert groups == sorted(groups, key=list(dict.fromkeys(groups)).index)
    assert len(done) == 2 * 2 * 4 * 3
    assert [task.repetition for task in done[:6]] == [0, 0, 1, 1, 2, 2]


def test_stored_work_is_taken_as_far_as_it_goes_for_all_settings(small, monkeypatch):
    out, work = small
    monkeypatch.setattr(two_stages, "draw", lambda *_: None)
    asked = ["--out", str(out), "--work", str(work), "--jobs", "1"]
    main([*asked, "--only", "small,other"])
    whole = read_csv(out / RESULTS)
    assert {row["setting"] for row in whole} == {"small", "other"}
    # One repetition of one comparison is lost, and two visible ones, so that too few of these are left.
    Task(OTHER, 1, 3.0, "paid").file(work).unlink()
    for repetition in (0, 2):
        visible_file(work, Task(OTHER, repetition, 3.0, "paid")).unlink()
    main([*asked, "--stored"])
    rows = read_csv(out / RESULTS)
    own = [row for row in rows if (row["setting"], row["validation"], row["epsilon"]) == ("other", "paid", "3")]
    assert [(row["regime"], row["repetitions"]) for row in own] == [(regime, "2") for regime in REGIMES[:8]]
    assert [row for row in rows if row not in own] == [
        row for row in whole if (row["setting"], row["validation"], row["epsilon"]) != ("other", "paid", "3")
    ]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--only", "mnist-7"], "error: `only` must be names of other, small, got 'mnist-7'"),
        (["--jobs", "0"], "error: `jobs` must be an integer >= 1 and <= 64, got 0"),
        (["--out", "nowhere"], "error: `out` must be a file in a folder that exists, got 'nowhere/two_stages.csv'"),
        (["--stored"], "error: `work` must hold at least 2 finished repetitions of one comparison, got '"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_sentence_before_the_work_begins(small, monkeypatch, capsys, more, told):
    out, work = small
    before = written(out)
    monkeypatch.setattr(two_stages, "train_stage_banks", unwanted)
    with pytest.raises(SystemExit) as end:
        main(["--out", str(out), "--work", str(work), *more])
    assert end.value.code == 2
    assert told in capsys.readouterr().err.splitlines()[-1]
    assert written(out) == before


def test_the_tables_of_one_shot_and_optuna_are_needed(small, monkeypatch, capsys):
    out, work = small
    monkeypatch.setattr(two_stages, "train_stage_banks", unwanted)
    monkeypatch.setattr(two_stages, "find_spec", lambda name: None if name == "optuna" else name)
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--work", str(work)])
    assert capsys.readouterr().err.splitlines()[-1].endswith("install it with: pip install 'privselect[optuna]'")
    (out / ONE_SHOT).unlink()
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--work", str(work)])
    assert f"error: `out` must hold {ONE_SHOT} of the one-shot experiment, got '" in capsys.readouterr().err.splitlines()[-1]
