"""``python -m research.figures``."""

import os

import pytest

from research.figures.__main__ import _parser, main
from research.figures.linear_regression import RESULTS, STORED

USAGE = _parser().format_usage()
STARTS = {"png": b"\x89PNG", "svg": b"<?xml", "csv": b"figure,panel,mechanism,bound,place,at,quantity,value\n3,"}


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    """The command in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def command(*arguments):
        try:
            code = main(list(map(str, arguments)))
        except SystemExit as end:  # argparse
            code = end.code
        streams = capsys.readouterr()
        return code, streams.out, streams.err.removeprefix(USAGE)

    return command


def files_in(folder):
    return sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())


def test_a_picture_and_its_numbers(run, tmp_path):
    code, out, err = run(3)
    assert (code, err) == (0, "")
    assert out.splitlines() == [os.path.join("figures", "figure_3.png"), os.path.join("figures", "figure_3.csv")]  # noqa: PTH118 - as printed
    assert files_in(tmp_path) == ["figures/figure_3.csv", "figures/figure_3.png"]
    for kind in ("png", "csv"):
        assert (tmp_path / "figures" / f"figure_3.{kind}").read_bytes().startswith(STARTS[kind])


@pytest.mark.parametrize("kind", STARTS)
def test_one_format(run, tmp_path, kind):
    code, out, _ = run(3, "--format", kind, "--out", tmp_path / "a" / "b")
    assert code == 0
    assert out.splitlines() == [str(tmp_path / "a" / "b" / f"figure_3.{kind}")]
    assert files_in(tmp_path) == [f"a/b/figure_3.{kind}"]
    assert (tmp_path / "a" / "b" / f"figure_3.{kind}").read_bytes().startswith(STARTS[kind])


def test_figure_5_says_that_its_results_are_stored(run, tmp_path):
    code, out, _ = run(5, "--format", "csv")
    assert code == 0
    assert out.splitlines()[0] == "figure 5 shows stored results; pass --data FOLDER with its data sets to measure again"
    assert (tmp_path / "figures" / "figure_5.csv").read_bytes() == (STORED / RESULTS).read_bytes()


def test_figure_5_with_data_is_measured_anew(run, tmp_path, monkeypatch):
    asked = []

    def measured(folder, repetitions, jobs):
        asked.append((folder, repetitions, jobs))
        return [], [{"data_set": "bike", "epsilon": 1.0}]

    monkeypatch.setattr("research.figures.linear_regression.check_data", asked.append)
    monkeypatch.setattr("research.figures.figure_5.measure", measured)
    code, out, _ = run(5, "--format", "csv", "--data", "somewhere")
    assert (code, out.splitlines()) == (0, [os.path.join("figures", "figure_5.csv")])  # noqa: PTH118 - as printed
    assert asked == ["somewhere", ("somewhere", 20, 2)]
    assert (tmp_path / "figures" / "figure_5.csv").read_text() == "data_set,epsilon\nbike,1\n"


@pytest.mark.slow
def test_all_of_them(run, tmp_path):
    code, out, err = run("all", "--out", tmp_path)
    assert code == 0
    names = [f"figure_{number}.{kind}" for number in range(1, 9) for kind in ("png", "csv")]
    assert out.splitlines()[1:] == [str(tmp_path / name) for name in names]
    assert files_in(tmp_path) == sorted(names)
    assert sorted(err.splitlines()) == [f"figure {number} is done" for number in (1, 2, 3, 4, 6, 7, 8)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["9"], "the figure must be one of 1, 2, 3, 4, 5, 6, 7, 8 or all, got '9'"),
        (["0"], "the figure must be one of 1, 2, 3, 4, 5, 6, 7, 8 or all, got '0'"),
        (["03"], "the figure must be one of 1, 2, 3, 4, 5, 6, 7, 8 or all, got '03'"),
        (["every"], "the figure must be one of 1, 2, 3, 4, 5, 6, 7, 8 or all, got 'every'"),
        (["3", "--format", "pdf"], "argument --format: invalid choice: 'pdf' (choose from 'png', 'svg', 'csv')"),
        (["6", "--data", "."], "`data` applies to figure 5 or all only, got it with figure 6"),
        (["5", "--data", "."], "`data` must hold bike_hour.csv, itself or in uci, got '.'"),
        (["all", "--data", "nowhere"], "`data` must hold bike_hour.csv, itself or in uci, got 'nowhere'"),
        (["3", "--out", "taken"], "`out` must be a folder, got the file 'taken'"),
        (["all", "--out", "taken/inside"], "`out` must be a folder that can be made, got 'taken/inside' (Not a directory)"),
        (["3", "--out", "full"], "`out` must be a file, got the directory 'full/figure_3.csv'"),
    ],
)
def test_refusals_come_before_any_work(run, tmp_path, monkeypatch, arguments, told):
    def work(*_):
        raise AssertionError("the work has begun")

    for name in ("make_figure", "make_figures", "write_files"):
        monkeypatch.setattr(f"research.figures.figure_files.{name}", work)
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "full" / "figure_3.csv").mkdir(parents=True)
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert err.endswith(f"error: {told}\n")
    assert files_in(tmp_path) == ["taken"]
    assert not (tmp_path / "figures").exists()


def test_without_matplotlib_there_are_numbers_but_no_picture(run, tmp_path, monkeypatch):
    monkeypatch.setattr("privselect._util.plotting.find_spec", lambda _: None)
    code, out, err = run(3)
    assert (code, out) == (2, "")
    assert err == "error: a plot needs matplotlib; install it with: pip install 'privselect[plot]'\n"
    assert files_in(tmp_path) == []
    assert not (tmp_path / "figures").exists()
    assert run(3, "--format", "csv")[0] == 0
    assert files_in(tmp_path) == ["figures/figure_3.csv"]


def test_what_cannot_be_written_is_one_sentence_and_leaves_nothing_half_written(run, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("privselect._util.atomic_files.os.replace", fail)
    code, out, err = run(3, "--format", "csv")
    assert (code, out) == (2, "")
    assert err.startswith("error: `out` must be a file that can be written, got 'figures")
    assert files_in(tmp_path) == []
