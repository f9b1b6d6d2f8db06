"""The picture of two stages shows the numbers of its table, each with its interval."""

import numpy as np
import pytest
from test_stage_tables import result_rows

from privselect.errors import ParameterError
from research.csv_io import as_csv
from research.experiments import stage_figure
from research.experiments.stage_figure import DRAWN, average_points, draw, points
from research.experiments.stage_summary import LABELS

ROWS = [*result_rows(), *({**row, "epsilon": "3"} for row in result_rows())]
SHOWN = [name for name in DRAWN if name != "visible_tpe_defaults"]  # the made table has none


def test_points_are_in_percent_with_their_intervals():
    found = points(ROWS, "mnist-6000", "1")
    assert list(found) == SHOWN
    assert found["two_stages_50"] == pytest.approx((77.0, 75.0, 79.0), abs=1e-9)


def test_an_average_needs_all_settings():
    assert average_points(ROWS, "1")["two_stages_50"] == pytest.approx((76.0,), abs=1e-9)
    part = [row for row in ROWS if (row["setting"], row["regime"]) != ("mnist-6000", "free")]
    assert list(average_points(part, "1")) == SHOWN[1:]
    assert average_points([], "1") == {}


def test_there_is_a_panel_for_each_setting_after_that_of_the_average():
    figure = stage_figure._figure(ROWS)
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:3] == ["average\nof all settings", "MNIST, softmax\n6,000 records", "MNIST, softmax\n6,000 records, hard space"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [LABELS[name] for name in DRAWN]
    assert [text.get_text() for text in figure.axes[0].texts] == ["epsilon 1", "epsilon 3"]
    assert not figure.axes[3].axison
    assert not any("_" in label for label in LABELS.values())


def test_points_and_lines_are_the_tables_numbers():
    axes = stage_figure._figure(ROWS).axes[1]
    found = points(ROWS, "mnist-6000", "1")
    scattered = [np.asarray(one.get_offsets()) for one in axes.collections if len(one.get_offsets()) == len(SHOWN)]
    assert len(scattered) == 2  # one for each epsilon, with the same numbers here
    for drawn in scattered:
        assert drawn[:, 0] == pytest.approx([value[0] for value in found.values()], abs=1e-9)
        assert np.round(drawn[:, 1]).astype(int).tolist() == [DRAWN.index(name) for name in SHOWN]
    assert (scattered[0][:, 1] < scattered[1][:, 1]).all()
    for container in axes.containers:
        (lines,) = container.lines[2]
        ends = np.array(lines.get_segments())[:, :, 0]
        assert ends == pytest.approx(np.array([value[1:] for value in found.values()]), abs=1e-9)


def test_a_picture_is_drawn_of_whatever_is_there(tmp_path):
    table = tmp_path / "table.csv"
    table.write_bytes(as_csv(ROWS))
    for validation in ("public", "paid"):
        draw(table, tmp_path / f"{validation}.png", validation)
        assert (tmp_path / f"{validation}.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ParameterError, match=r"`plot` must end in \.png, \.pdf, \.svg"):
        draw(table, tmp_path / "picture.txt", "paid")
