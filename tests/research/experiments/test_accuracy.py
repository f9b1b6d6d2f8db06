"""The whole experiment on a setting that is trained in a moment; what it keeps, and what it refuses before it begins."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import pytest
from experiments_made import TINY, UNTUNED, made_problem

from privselect.counts import Fixed, Geometric
from research.csv_io import as_csv, read_csv
from research.experiments import accuracy, banks, problems
from research.experiments.accuracy import NOISE, PICTURES, RESULTS, SINGLE, kept_options, main
from research.experiments.regimes import REGIMES, Option
from research.experiments.settings import EPSILONS, SETTINGS

SMALL = dataclasses.replace(TINY, name="small", problem="small_mnist")
LAW = Geometric(mean=3)
FILES = {RESULTS, SINGLE, NOISE, *PICTURES.values()}


def options():
    """As they might be planned for one law and one number of runs."""
    found = []
    for epsilon in EPSILONS:
        noise = UNTUNED[epsilon]
        found += [Option(epsilon, regime, LAW, 1.2 * noise, 4.0) for regime in ("exact", "paper", "renyi")]
        found += [Option(epsilon, regime, Fixed(k=2), 1.3 * noise, 5.0) for regime in ("exact", "composition")]
        found += [Option(epsilon, "free", count, noise, 3.0) for count in (LAW, Fixed(k=2))]
    return found


def write_options(file, found):
    file.write_bytes(as_csv([option.as_row() for option in found]))


def unwanted(*_):
    raise AssertionError("this is done already")


@pytest.fixture
def small(quick, monkeypatch, tmp_path):  # noqa: ARG001 - trainings are quick before this one is begun
    """One small setting, one law, and two folders."""
    monkeypatch.setitem(problems.PROBLEMS, "small_mnist", made_problem)
    monkeypatch.setattr(accuracy, "SETTINGS", (SMALL,))
    for module in (accuracy, banks):
        monkeypatch.setattr(module, "REPETITIONS", 2)
        monkeypatch.setattr(module, "ProcessPoolExecutor", ThreadPoolExecutor)
    monkeypatch.setattr(accuracy, "laws", lambda: (LAW,))
    monkeypatch.setattr(accuracy, "RUNS", (2,))
    monkeypatch.setattr(accuracy, "untuned_noise", UNTUNED.__getitem__)
    out, work = tmp_path / "out", tmp_path / "work"
    out.mkdir()
    work.mkdir()
    return out, work


def test_a_small_run_writes_every_table_and_picture_and_again_the_same_without_training(small, monkeypatch, capsys):
    out, work = small
    write_options(work / NOISE, options())
    main(["--out", str(out), "--work", str(work), "--jobs", "1"])
    first = {file.name: file.read_bytes() for file in out.iterdir()}
    assert set(first) == FILES
    assert all(first[name].startswith(b"\x89PNG") for name in PICTURES.values())
    assert first[NOISE] == (work / NOISE).read_bytes()
    rows, single = read_csv(out / RESULTS), read_csv(out / SINGLE)
    assert {row["setting"] for row in rows} == {"small"}
    assert {row["regime"] for row in rows} >= {*REGIMES, "default_1", "untuned"}
    assert len(single) == 2 * len(rows) == 2 * 2 * 2 * 9
    assert {row["repetitions"] for row in rows} == {"2"}
    assert sorted(file.name for file in work.iterdir()) == [NOISE, "small-0.npz", "small-1.npz"]
    capsys.readouterr()

    for name in ("law_options", "fixed_options"):
        monkeypatch.setattr(accuracy, name, unwanted)
    monkeypatch.setattr(banks, "train_bank", unwanted)
    main(["--out", str(out), "--work", str(work), "--jobs", "1"])
    assert {file.name: file.read_bytes() for file in out.iterdir()} == first
    assert capsys.readouterr().err == "2 of 2 banks are there, 0 to train\n"


def test_options_are_planned_where_none_are_kept_or_those_of_another_experiment(small, monkeypatch, capsys):
    file = small[1] / NOISE
    monkeypatch.setattr(
        accuracy, "law_options", lambda epsilon, _: [one for one in options() if (one.epsilon, one.count) == (epsilon, LAW)]
    )
    monkeypatch.setattr(
        accuracy, "fixed_options", lambda epsilon: [one for one in options() if (one.epsilon, one.count) == (epsilon, Fixed(k=2))]
    )
    wanted = {(one.epsilon, one.regime, one.count) for one in options()}
    stale = [
        None,
        [one for one in options() if one.count != LAW],
        [one for one in options() if one.epsilon == 1.0],
        [*options(), Option(1.0, "exact", Geometric(mean=4), 1.0, 1.0)],
        [dataclasses.replace(one, noise=1.01 * one.noise) if one.regime == "free" else one for one in options()],  # other trainings
    ]
    for before in [
        *stale,
        b"\xff\xfe",
        b"epsilon,regime\n1,exact\n",
        b"epsilon,regime,count,noise_multiplier,score_noise\n1,exact,none,1,1\n",
    ]:
        if isinstance(before, bytes):
            file.write_bytes(before)
        elif before is not None:
            write_options(file, before)
        found = kept_options(file, 1)
        assert {(one.epsilon, one.regime, one.count) for one in found} == wanted
        assert [Option.from_row(row) for row in read_csv(file)] == found
        assert capsys.readouterr().err == "finding the noise of every regime and law\n"
    monkeypatch.setattr(accuracy, "law_options", unwanted)
    assert kept_options(file, 1) == found
    assert capsys.readouterr().err == ""


def test_without_data_only_the_images_of_the_wheel_are_asked_for():
    assert {setting.problem for setting in accuracy.asked_settings(None, None)} == {"small_mnist"}
    assert accuracy.asked_settings(None, "folder") == list(SETTINGS)
    assert [setting.name for setting in accuracy.asked_settings("adult-2000,mnist-2000,adult-2000", None)] == ["adult-2000", "mnist-2000"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--only", "mnist-7"], "error: `only` must be names of adult-2000, adult-26000, "),
        (["--only", "mnist-2000,"], "got ''"),
        (["--only", "mnist-2000"], "error: `data` must be a folder that holds mnist.npz, got None"),
        (["--only", "adult-2000", "--data", "nowhere"], "error: `data` must be a folder that holds adult_train.csv.gz, got 'nowhere'"),
        (["--only", "mnist-2000", "--jobs", "0"], "error: `jobs` must be an integer >= 1 and <= 64, got 0"),
        (["--only", "mnist-2000", "--out", "nowhere"], "error: `out` must be a file in a folder that exists, got 'nowhere/accuracy.csv'"),
    ],
)
def test_what_cannot_be_run_is_told_in_one_sentence_before_the_work_begins(tmp_path, monkeypatch, capsys, more, told):
    for name in ("kept_options", "train_banks"):
        monkeypatch.setattr(accuracy, name, unwanted)
    with pytest.raises(SystemExit) as end:
        main(["--out", str(tmp_path), "--work", str(tmp_path / "work"), *more])
    assert end.value.code == 2
    assert told in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_networks_without_opacus_and_a_folder_that_cannot_be_made_are_refused(small, monkeypatch, capsys):
    out, work = small
    (work / "file").write_text("")
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--work", str(work / "file")])
    assert "error: `work` must be a folder that can be made, got '" in capsys.readouterr().err.splitlines()[-1]
    monkeypatch.setattr(accuracy, "SETTINGS", (dataclasses.replace(SMALL, model="network"),))
    monkeypatch.setattr(accuracy, "find_spec", lambda name: None if name == "opacus" else name)
    with pytest.raises(SystemExit):
        main(["--out", str(out), "--work", str(work)])
    assert capsys.readouterr().err.splitlines()[-1].endswith("install it with: pip install 'privselect[opacus]'")
