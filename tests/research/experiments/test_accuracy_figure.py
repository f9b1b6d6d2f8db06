"""The picture shows the numbers of its table, each with its interval."""

import numpy as np
import pytest
from experiments_made import result_rows

from privselect.errors import ParameterError
from research.csv_io import as_csv
from research.experiments import accuracy_figure
from research.experiments.accuracy_figure import draw, point, series_of

PUBLIC = [row for row in result_rows() if row["validation"] == "public"]
LARGE, SINGLE = ("mnist", "softmax", "plain", 6000), ("small_mnist", "softmax", "hard", 2400)


def test_series_are_of_one_problem_model_and_space_with_their_records_in_order():
    assert series_of(PUBLIC) == {LARGE[:3]: [2000, 6000], SINGLE[:3]: [2400]}


def test_a_point_is_a_mean_with_its_interval():
    assert point(PUBLIC, LARGE, "1", "exact") == pytest.approx((0.97, 0.95, 0.99), abs=1e-12)
    assert point(PUBLIC, LARGE, "3", "paper") == pytest.approx((0.921, 0.901, 0.941), abs=1e-12)
    assert point(PUBLIC, SINGLE, "1", "untuned") == pytest.approx((0.534, 0.514, 0.554), abs=1e-12)


def test_the_best_default_is_the_one_with_the_greatest_mean():
    assert point(PUBLIC, LARGE, "1", "best_default") == point(PUBLIC, LARGE, "1", "default_1")
    turned = [{**row, "accuracy_mean": "0.99"} if row["regime"] == "default_3" else row for row in PUBLIC]
    assert point(turned, LARGE, "1", "best_default")[0] == 0.99


def test_there_is_a_panel_for_each_series_and_one_for_all_single_settings_at_each_epsilon():
    figure = accuracy_figure._figure(PUBLIC)
    assert [axes.get_title() for axes in figure.axes] == [
        "MNIST, softmax, epsilon 1",
        "other settings, epsilon 1",
        "MNIST, softmax, epsilon 3",
        "other settings, epsilon 3",
    ]
    assert [label.get_text() for label in figure.axes[1].get_xticklabels()] == ["MNIST\n5000 images\nsoftmax, 2,400\nhard space"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [label for label, _ in accuracy_figure._LINES.values()]


def test_lines_and_points_are_the_tables_numbers():
    line, single, *_ = accuracy_figure._figure(PUBLIC).axes
    for regime, drawn in zip(accuracy_figure._LINES, line.get_lines(), strict=True):
        wanted = [point(PUBLIC, (*LARGE[:3], records), "1", regime)[0] for records in (2000, 6000)]
        assert np.array_equal(drawn.get_xdata(), [2000, 6000])
        assert np.array_equal(drawn.get_ydata(), wanted)
    for regime, drawn in zip(accuracy_figure._LINES, single.containers, strict=True):
        mean, low, high = point(PUBLIC, SINGLE, "1", regime)
        assert drawn.lines[0].get_ydata().tolist() == [mean]
        (bar,) = drawn.lines[2]
        assert bar.get_segments()[0][:, 1] == pytest.approx([low, high], abs=1e-12)


@pytest.mark.parametrize("kept", [{"mnist"}, {"small_mnist"}])
def test_a_part_of_the_settings_can_be_drawn(tmp_path, kept):
    table = tmp_path / "table.csv"
    table.write_bytes(as_csv([row for row in result_rows() if row["problem"] in kept]))
    draw(table, tmp_path / "picture.png", "paid")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_the_validations_are_two_pictures(tmp_path):
    table = tmp_path / "table.csv"
    table.write_bytes(as_csv(result_rows()))
    for validation in ("public", "paid"):
        draw(table, tmp_path / f"{validation}.png", validation)
    assert (tmp_path / "public.png").read_bytes() != (tmp_path / "paid.png").read_bytes()


def test_a_file_that_is_no_picture_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"`plot` must end in \.png, \.pdf, \.svg"):
        draw(tmp_path / "table.csv", tmp_path / "picture.txt", "paid")
