"""Records made fit for a recipe: centred, divided by their bounds, shortened to them, and those that were too long counted with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import Range, check_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.regression.gaussian_sampler import Normals

    Floats = NDArray[np.float64]
    Centre = tuple[Floats, float]

SIZES = Range(1e-100, 1e100, high_open=False)  # of a bound: no sum or quotient of what is below leaves the floats
_SLACK = 1e-9  # of a bound: rounding alone, which is shortened and not counted
_INSIDE = 1.0 - 1e-12  # the length of a shortened row: what rounding adds must not take it beyond 1


@dataclass(frozen=True, slots=True)
class Bounds:
    """On the length of a row and on the size of a target: public numbers, which depend on no record."""

    row: float
    target: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "row", check_number("row_bound", self.row, SIZES))
        object.__setattr__(self, "target", check_number("target_bound", self.target, SIZES))


@dataclass(frozen=True, repr=False, eq=False)
class Prepared:
    """Rows no longer than 1, targets within [-1, 1], and which records had to be shortened for it. All are private: there is no repr."""

    rows: Floats
    targets: Floats
    beyond: NDArray[np.bool_]


def prepared(rows: Floats, targets: Floats, bounds: Bounds) -> Prepared:
    """Each record divided by the bounds and, where it is beyond them, shortened: it depends on that record alone.

    A row keeps its direction, however long it is.
    """
    # By its largest entry first: the square of a large one would be infinite, and the row lost.
    largest = np.max(np.abs(rows), axis=1, initial=0.0)
    directions = rows / np.where(largest > 0.0, largest, 1.0)[:, None]
    norms = np.linalg.norm(directions, axis=1)
    with np.errstate(over="ignore", under="ignore"):
        lengths, sizes = largest / bounds.row * norms, targets / bounds.target
        inside = rows / bounds.row
    short = directions * (_INSIDE / np.where(norms > 0.0, norms, 1.0))[:, None]
    beyond = (lengths > 1.0 + _SLACK) | (np.abs(sizes) > 1.0 + _SLACK)
    return Prepared(np.where((lengths > _INSIDE)[:, None], short, inside), np.clip(sizes, -1.0, 1.0), beyond)


def centred(rows: Floats, targets: Floats, centre: Centre) -> tuple[Floats, Floats]:
    """The records less a centre that is public, or was released."""
    return rows - centre[0], targets - centre[1]


def noisy_count(beyond: NDArray[np.bool_], mu: float, normals: Normals) -> int:
    """How many records were beyond the bounds, plus ``N(0, 1/mu^2)``, as a whole number, which may be negative.

    One record moves the count by at most 1, so it is a Gaussian release of this mu; rounding comes after it, and leaves the mean as it is.
    """
    return int(np.rint(float(np.count_nonzero(beyond)) + float(normals.draw(1)[0]) / mu))


def noisy_centre(records: Prepared, bounds: Bounds, number: int, mu: float, normals: Normals) -> Centre:
    """About the mean of rows and targets: their sums with noise, divided by the public ``number`` of records.

    Claim: a Gaussian release of this mu. Proof: a record adds its row, no longer than 1, and its target, at most 1 in size, to the sums,
    so it moves both together by at most sqrt(2), and each entry has noise ``sqrt(2)/mu``. What follows, such as shortening a centre that
    lies beyond the bounds, where no mean can lie, uses no record.
    """
    drawn = normals.draw(records.rows.shape[1] + 1) * (math.sqrt(2.0) / mu)
    sums = np.append(records.rows.sum(axis=0), records.targets.sum()) + drawn
    middle = sums / number
    row = middle[:-1] / max(1.0, float(np.linalg.norm(middle[:-1])))
    return row * bounds.row, float(np.clip(middle[-1], -1.0, 1.0)) * bounds.target
