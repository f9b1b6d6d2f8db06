"""Artifacts as bytes: the same for the same arrays, and nothing but arrays."""

import io
import pickle
import time

import numpy as np
import pytest

from privselect.errors import ParameterError
from privselect.tuning.exports import arrays_from_bytes, arrays_to_bytes, read_export

ARRAYS = {"weights": np.arange(6.0).reshape(2, 3), "bias": np.float32(1.5), "labels": np.array(["a", "b"]), "file": np.array([True])}


@pytest.mark.parametrize("kind", ["arrays", "safetensors"])
def test_the_same_arrays_are_the_same_bytes_and_come_back(kind, monkeypatch):
    if kind == "safetensors":
        pytest.importorskip("safetensors")
    export = read_export(kind)
    artifact = {name: array for name, array in ARRAYS.items() if kind == "arrays" or name != "labels"}
    content = export.encode(artifact)
    monkeypatch.setattr(time, "time", lambda: 1e9)
    assert export.encode(dict(reversed(artifact.items()))) == content
    assert export.encode({**artifact, "weights": np.asfortranarray(artifact["weights"])}) == content
    back = export.decode(content)
    assert set(back) == set(artifact)
    for name, array in artifact.items():
        assert np.array_equal(back[name], array)
        assert back[name].shape == np.shape(array)
        assert back[name].dtype == np.asarray(array).dtype


@pytest.mark.parametrize("name", ["file", "args", "kwds", "allow_pickle", "self", "arr_0"])
def test_an_array_may_have_any_name(name):
    assert np.array_equal(arrays_from_bytes(arrays_to_bytes({name: np.arange(3)}))[name], np.arange(3))


def test_numpy_reads_what_was_written():
    with np.load(io.BytesIO(arrays_to_bytes(ARRAYS)), allow_pickle=False) as file:
        assert np.array_equal(file["weights"], ARRAYS["weights"])


@pytest.mark.parametrize(
    "artifact",
    [
        {"a": np.array([object()])},
        {"a": [1, [2, 3]] and np.array([{}, []], dtype=object)},
        {"a": {"b": 1}},
        {"a": None},
        {"a b": np.zeros(2)},
        {"../a": np.zeros(2)},
        {1: np.zeros(2)},
        [np.zeros(2)],
        np.zeros(2),
        None,
        b"bytes",
        pickle.dumps({"a": 1}),
        {"a": np.zeros(2, dtype=[("x", "O")])},
        {"a": np.zeros(2, dtype="M8[s]")},
    ],
)
def test_what_is_no_table_of_arrays_is_refused(artifact):
    with pytest.raises(ParameterError, match="an artifact of arrays must"):
        arrays_to_bytes(artifact)


def test_arrays_of_objects_are_not_read():
    buffer = io.BytesIO()
    np.savez(buffer, a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="allow_pickle"):
        arrays_from_bytes(buffer.getvalue())


def test_a_function_must_return_bytes():
    export = read_export(lambda artifact: artifact)
    assert export.encode(b"model") == b"model"
    for artifact in ("text", None, bytearray(b"model")):
        with pytest.raises(ParameterError, match="`export` must return bytes"):
            export.encode(artifact)


@pytest.mark.parametrize("given", ["pickle", "joblib", 3])
def test_an_unknown_export_is_refused(given):
    with pytest.raises(ParameterError, match="`export` must be one of arrays, safetensors"):
        read_export(given)
