"""Reading and preparing the published data sets, on small files of our own; on the real ones where they are at hand."""

import os

import numpy as np
import pytest

from privselect.errors import ParameterError
from research.figures.data_sets import SOURCES, load, prepared

DATA = os.environ.get("PRIVSELECT_DATA")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "uci").mkdir()
    lines = ["file,a,b,c,Goal", "data,1,5,2,0.1", "test,2,5,3,0.2", "data,4,5,1,0.4"]
    (tmp_path / "uci" / "elevators.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_rows_have_norm_1_and_targets_mean_0_and_greatest_size_1(folder):
    records = load("elevators", folder)
    assert np.linalg.norm(records.rows, axis=1) == pytest.approx(np.ones(3), abs=1e-12)
    assert (np.linalg.norm(records.rows, axis=1) <= 1.0).all()
    assert records.targets == pytest.approx([-1.0, 0.0, 1.0], abs=1e-12)


def test_a_constant_column_is_0(folder):
    assert (load("elevators", folder).rows[:, 1] == 0.0).all()


def test_some_rows_only(folder):
    assert len(load("elevators_data", folder).targets) == 2


def test_the_files_may_lie_in_the_folder_itself(folder):
    assert len(load("elevators", folder / "uci").targets) == 3


def test_a_row_of_norm_0_stays():
    records = prepared(np.array([[0.0], [1.0], [-1.0]]), np.array([1.0, 2.0, 4.0]))
    assert records.rows[0, 0] == 0.0


def test_prepared_by_hand():
    records = prepared(np.array([[1.0, 0.0], [3.0, 0.0], [1.0, 3.0], [3.0, 3.0]]), np.exp(np.array([1.0, 2.0, 3.0, 6.0])))
    half = np.sqrt(0.5)
    assert records.rows == pytest.approx(np.array([[-half, -half], [half, -half], [-half, half], [half, half]]), abs=1e-12)
    assert records.targets == pytest.approx(np.array([-2.0, -1.0, 0.0, 3.0]) / 3.0, abs=1e-12)


@pytest.mark.parametrize("targets", [[1.0, 0.0], [1.0, -1.0], [1.0, np.nan], [1.0, np.inf], [1.0]])
def test_targets_without_a_logarithm_are_refused(targets):
    with pytest.raises(ParameterError, match="`targets` must"):
        prepared(np.array([[1.0], [2.0]]), np.array(targets))


def test_features_that_are_no_numbers_are_refused(folder):
    with pytest.raises(ParameterError, match="`features` must be finite"):
        prepared(np.array([[1.0], [np.nan]]), np.array([1.0, 2.0]))
    (folder / "uci" / "elevators.csv").write_text("file,a,Goal\ndata,x,1\n")
    with pytest.raises(ParameterError, match=r"elevators\.csv with numbers in every column"):
        load("elevators", folder)


def test_a_folder_without_the_file_and_an_unknown_name_are_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"`folder` must hold bike_hour\.csv"):
        load("bike", tmp_path)
    with pytest.raises(ParameterError, match="`name` must be one of bike"):
        load("cars", tmp_path)


@pytest.mark.skipif(DATA is None, reason="PRIVSELECT_DATA names no folder with the data")
@pytest.mark.parametrize(("name", "records", "features"), [("bike", 17379, 17), ("elevators", 16599, 18), ("elevators_data", 8752, 18)])
def test_the_published_sizes(name, records, features):
    assert load(name, DATA).rows.shape == (records, features)


# The stored error of predicting 0, which only the published target scaling gives: log, or log(1 + y) for protein.
@pytest.mark.skipif(DATA is None, reason="PRIVSELECT_DATA names no folder with the data")
@pytest.mark.parametrize(("name", "trivial"), [("bike", 0.107332), ("elevators", 0.0366672), ("protein", 0.167068)])
def test_the_published_target_scaling(name, trivial):
    assert np.mean(load(name, DATA).targets ** 2) == pytest.approx(trivial, rel=5e-6)


@pytest.mark.skipif(DATA is None, reason="PRIVSELECT_DATA names no folder with the data")
@pytest.mark.parametrize("name", list(SOURCES))
def test_every_source_keeps_the_bounds(name):
    records = load(name, DATA)
    assert (np.linalg.norm(records.rows, axis=1) <= 1.0).all()
    assert np.abs(records.targets).max() <= 1.0
