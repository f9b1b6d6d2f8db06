"""Prepare records for a regression method: centre, scale and clip them, and count the clipped ones with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import Range, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.noise_source import NoiseSource

    Floats = NDArray[np.float64]
    Centre = tuple[Floats, float]

BOUND_RANGE = Range(1e-100, 1e100, high_open=False)  # keeps products and quotients of bounds within the range of floats
_TOLERANCE = 1e-9  # relative excess over a bound that rounding explains: clipped, but not counted
_CLIPPED_NORM = 1.0 - 1e-12  # norm of a clipped row: rounding must not take it above 1


@dataclass(frozen=True, slots=True)
class RecordBounds:
    """Public bounds on the norm of a row and on the absolute value of a target; they must not depend on the data."""

    row: float
    target: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", check_number("row_bound", self.row, BOUND_RANGE))
        object.__setattr__(self, "target", check_number("target_bound", self.target, BOUND_RANGE))


@dataclass(frozen=True, repr=False, eq=False)
class ClippedRecords:
    """Rows of norm at most 1, targets in [-1, 1], and a mask of the clipped records. All are private: there is no repr."""

    rows: Floats
    targets: Floats
    clipped: NDArray[np.bool_]


def clip_records(rows: Floats, targets: Floats, bounds: RecordBounds) -> ClippedRecords:
    """Divide each record by the bounds and clip it to them; the result for a record depends on that record alone.

    A clipped row keeps its direction.
    """
    # Divide by the largest entry first: the square of a large entry would overflow.
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    directions = rows / np.where(largest > 0.0, largest, 1.0)[:, None]
    norms = np.linalg.norm(directions, axis=1)
    with np.errstate(over="ignore", under="ignore"):
        scaled_norms, scaled_targets = largest / bounds.row * norms, targets / bounds.target
        inside = rows / bounds.row
    shortened = directions * (_CLIPPED_NORM / np.where(norms > 0.0, norms, 1.0))[:, None]
    clipped = (scaled_norms > 1.0 + _TOLERANCE) | (np.abs(scaled_targets) > 1.0 + _TOLERANCE)
    return ClippedRecords(np.where((scaled_norms > _CLIPPED_NORM)[:, None], shortened, inside), np.clip(scaled_targets, -1.0, 1.0), clipped)


def subtract_centre(rows: Floats, targets: Floats, centre: Centre) -> tuple[Floats, Floats]:
    """Return the records minus a centre that is public or was released."""
    return rows - centre[0], targets - centre[1]


def noisy_clipped_count(clipped: NDArray[np.bool_], mu: float, source: NoiseSource) -> int:
    """Return the number of clipped records plus ``N(0, 1/mu^2)``, rounded to an integer, which may be negative.

    One record changes the count by at most 1, so this is a Gaussian release of this mu. Rounding is post-processing and keeps the mean.
    """
    return int(np.rint(float(np.count_nonzero(clipped)) + float(source.standard_normals(1)[0]) / mu))


def noisy_centre(records: ClippedRecords, bounds: RecordBounds, number: int, mu: float, source: NoiseSource) -> Centre:
    """Return noisy means of rows and targets: noisy sums divided by the public ``number`` of records.

    Claim: a Gaussian release of this mu. Proof: a record adds a row of norm at most 1 and a target of absolute value at most 1 to the sums.
    So it moves both together by at most sqrt(2), and each entry has noise ``sqrt(2)/mu``. Clipping the released centre is post-processing.
    """
    noise = source.standard_normals(records.rows.shape[1] + 1) * (math.sqrt(2.0) / mu)
    sums = np.append(records.rows.sum(axis=0), records.targets.sum()) + noise
    means = sums / number
    row = means[:-1] / max(1.0, float(np.linalg.norm(means[:-1])))
    return row * bounds.row, float(np.clip(means[-1], -1.0, 1.0)) * bounds.target
