"""What is committed of the figures is what the code makes: computed again, drawn and written."""

import re

import pytest
from figure_tables import committed, entries_in

from privselect._util.atomic_files import os as files_os
from privselect._util.rounding import round_down, round_up
from research.csv_io import as_csv
from research.figures import figure_8
from research.figures.figure_files import figure_file, make_figures, write_files
from research.figures.figures import picture
from research.figures.linear_regression import RESULTS, STORED
from research.figures.picture import Curve, Panel, Picture, Point

SAME = 1e-4  # of an epsilon: what our two ends are apart; another machine's last digits may lead a search elsewhere between them
SAME_NUMBER = 0.01  # of trials or steps: the same in epsilon, which grows slowly with either
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "svg": b"<?xml", "csv": b"figure,panel,mechanism,bound,place,at,quantity,value\n"}


def assert_the_same(found, expected):
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert one._replace(mechanism="", value=0.0) == other._replace(mechanism="", value=0.0)
        assert one.value == pytest.approx(other.value, rel=SAME if one.quantity == "epsilon" else SAME_NUMBER)
        assert parted(one.mechanism)[0] == parted(other.mechanism)[0]
        assert parted(one.mechanism)[1] == pytest.approx(parted(other.mechanism)[1], rel=1e-3)


def parted(mechanism):
    """The text but for its numbers of steps, which were searched for, and these."""
    return re.sub(r"steps=\d+", "steps=", mechanism), [float(steps) for steps in re.findall(r"steps=(\d+)", mechanism)]


@pytest.mark.parametrize("number", [1, 2, 3, 4, 6, 7, pytest.param(8, marks=pytest.mark.slow)])
def test_a_figure_comes_out_again_and_is_written_in_every_form(number, tmp_path):
    found = picture(number)
    files = write_files(found, tmp_path, number, ("png", "svg", "csv"))
    assert [file.name for file in files] == [f"figure_{number}.{kind}" for kind in SIGNATURES]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    for file, signature in zip(files, SIGNATURES.values(), strict=True):
        assert file.read_bytes().startswith(signature)
    assert_the_same(entries_in(files[2].read_text().splitlines()), committed(number))
    drawn = files[1].read_text()  # letters are drawn as shapes; the text itself stands beside them in comments
    for words in ("exact, upper bound", "exact, lower bound", "privacy profiles (paper)", *(panel.title for panel in found.panels)):
        assert words in drawn


def test_a_part_of_figure_8_comes_out_again(tmp_path):
    (file,) = write_files(figure_8.picture((30.0,)), tmp_path, 8, ("csv",))
    assert_the_same(entries_in(file.read_text().splitlines()), [entry for entry in committed(8) if entry.at == 30.0])


def test_figure_5_is_drawn_from_what_is_stored(tmp_path):
    picture_file, other, table = write_files(picture(5), tmp_path, 5, ("png", "svg", "csv"))
    assert picture_file.read_bytes().startswith(SIGNATURES["png"])
    assert other.read_bytes().startswith(SIGNATURES["svg"])
    assert table.read_bytes() == (STORED / RESULTS).read_bytes()


def test_several_figures_at_a_time(tmp_path):
    done = dict(make_figures(tmp_path, (1, 3), ("csv",)))
    assert set(done) == {1, 3}
    for number, files in done.items():
        assert files == [figure_file(tmp_path, number, "csv")]
        assert_the_same(entries_in(files[0].read_text().splitlines()), committed(number))


def small(**curves):
    shown = tuple(Curve(bound, tuple(Point("gaussian(sigma=4)", 10.0**k, value) for k in range(3))) for bound, value in curves.items())
    return Picture(9, "a title", (Panel("a panel", "mean", "epsilon", shown),))


def test_rows_are_rounded_to_the_side_that_claims_less():
    rows = small(exact_upper=1.00000001, exact_lower=1.99999999, paper=1.23456781).rows()
    assert [row["value"] for row in rows[::3]] == [1.000001, 1.999999, 1.234568]
    assert as_csv(rows).splitlines()[1] == b"9,a panel,gaussian(sigma=4),exact_upper,mean,1,epsilon,1.000001"


@pytest.mark.parametrize("number", [1.0, 4.0 / 3.0, 1e-12 / 3.0, 0.1, 123456789.123, 9.9999999])
def test_seven_digits_up_and_down(number):
    assert round_down(number) <= number <= round_up(number)
    assert round_up(number) <= round_down(number) * (1.0 + 1.1e-6)
    assert float(f"{round_up(number):.7g}") == round_up(number)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = figure_file(tmp_path, 9, "csv")
    file.write_text("before")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files_os, "replace", fail)
    with pytest.raises(ValueError, match=r"^`out` must be a file that can be written, got '.*' \(No space left on device\)$"):
        write_files(small(exact_upper=1.0), tmp_path, 9, ("csv",))
    assert file.read_text() == "before"
    assert list(tmp_path.iterdir()) == [file]
