"""Regression data sets of the published experiments, read from a folder and prepared as published.

The preparation uses all records (means, deviations, the largest target) and is **not** covered by any privacy guarantee. It is kept because
the published numbers include it.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Source:
    """The file of a data set and the columns used; ``shift`` is added to the target before its logarithm."""

    file: str
    target: str
    dropped: tuple[str, ...] = ()
    only: tuple[str, str] | None = None  # a column and the value that selects the rows
    shift: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class Records:
    """Rows of norm 1 (or 0), and targets within [-1, 1] with mean 0."""

    rows: Floats
    targets: Floats


# These logarithms and rows reproduce the published mean squared errors of "trivial" and "non-private".
SOURCES = {
    "bike": Source("bike_hour.csv", "cnt", ("instant",)),
    "elevators": Source("elevators.csv", "Goal", ("file",)),
    "elevators_data": Source("elevators.csv", "Goal", ("file",), ("file", "data")),
    "power_plant": Source("ccpp_power_plant.csv", "PE"),
    "protein": Source("protein_casp.csv", "RMSD", shift=1.0),
    "wine": Source("wine_red.csv", "quality"),
}


def load(name: str, folder: str | Path) -> Records:
    """Load one of :data:`SOURCES` from its file in ``folder`` or ``folder/uci``, prepared as published."""
    if name not in SOURCES:
        raise ParameterError(f"`name` must be one of {', '.join(SOURCES)}, got {format_value(name)}")
    source = SOURCES[name]
    features, targets = _read(source, _file(source.file, Path(folder)))
    return prepared(features, targets + source.shift)


def prepared(features: Floats, targets: Floats) -> Records:
    """Prepare records as published.

    Columns become z-scores and each row is divided by its norm. The logarithm of the target is centred and divided by its largest
    magnitude. A constant column becomes 0, and a row of norm 0 stays 0. Sample and population deviation give the same result, because
    rows are normalised.
    """
    if len(features) != len(targets) or not len(targets):
        raise ParameterError(f"`targets` must hold one number for each row, got {len(targets)} for {len(features)} rows")
    if not np.isfinite(features).all():
        raise ParameterError("`features` must be finite numbers, got a NaN or an infinity")
    if not np.isfinite(targets).all() or targets.min() <= 0.0:
        raise ParameterError(f"`targets` must be positive and finite, got {format_value(float(targets.min()))}")
    spread = features.std(axis=0)
    # A constant column differs from its mean only by rounding.
    varies = spread > 1e-12 * np.abs(features).max(axis=0)
    scores = np.where(varies, features - features.mean(axis=0), 0.0) / np.where(varies, spread, 1.0)
    norms = np.linalg.norm(scores, axis=1)
    # The norm of a row must not exceed 1, not even by rounding.
    rows = scores / (np.where(norms > 0.0, norms, 1.0) * (1.0 + 1e-15))[:, None]
    centred = np.log(targets) - np.log(targets).mean()
    largest = float(np.abs(centred).max())
    return Records(rows, centred / largest if largest > 0.0 else centred)


def _file(name: str, folder: Path) -> Path:
    for place in (folder / name, folder / "uci" / name):
        if place.is_file():
            return place
    raise ParameterError(f"`folder` must hold {name}, itself or in uci, got {format_value(str(folder))}")


def _read(source: Source, file: Path) -> tuple[Floats, Floats]:
    with file.open(newline="", encoding="utf-8") as lines:
        table = csv.DictReader(lines)
        rows = [row for row in table if source.only is None or row[source.only[0]] == source.only[1]]
        names = [name for name in table.fieldnames or () if name not in {*source.dropped, source.target}]
    try:
        features = np.array([[float(row[name]) for name in names] for row in rows], dtype=np.float64)
        targets = np.array([float(row[source.target]) for row in rows], dtype=np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise ParameterError(f"`folder` must hold {source.file} with numbers in every column, got {format_value(str(error))}") from None
    return features.reshape(len(rows), len(names)), targets
