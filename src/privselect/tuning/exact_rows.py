"""Records as rows of whole numbers, so that what each of them adds to a sum is exact.

A sum of floats depends on its order, and a product of matrices on how many rows there are: with one record more, the parts of all
others change in their last digits, and the sum by more than that record's part. Here every row, and every model, is put on a grid
first; the sums of products are then whole numbers below 2^53, and the same in any order. What is left is taken number by number
(a quotient, a root, an exponential) or along one row, and is the same wherever the row stands; the tests ask numpy whether it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

GRID = 2.0**17  # steps from 0 to 1 of a row: a sum of products of two is exact for half a million rows
_FINE = 2.0**26  # and of a model
_INSIDE = 1.0 - 2.0**-40  # what rounding may add to a norm is less than this takes away
_FAR = 1e200  # a longer row counts as one of this length, so that its logits do not overflow
MOST_FEATURES = 10**6  # a row times a model stays below 2^53


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Rows:
    """Each record's ``[x, 1]`` as a length and a direction; the direction in whole steps of 1/GRID, with a norm of at most 1.

    A record whose features are not all finite has the direction 0 and is marked as not ``usable``.
    """

    directions: Floats
    lengths: Floats
    usable: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.directions.shape[1]) - 1

    def __getitem__(self, chosen: NDArray[np.intp]) -> Rows:
        return Rows(self.directions[chosen], self.lengths[chosen], self.usable[chosen])

    def logits(self, model: Floats) -> Floats:
        """``[x, 1] @ model / length``, where each row's values depend on that row and the model alone."""
        scale = np.exp2(np.ceil(np.log2(np.abs(model).max(initial=2.0**-1000))))
        return np.asarray(self.directions @ np.rint(model / scale * _FINE) * (scale / (GRID * _FINE)))


def rows_of(features: Floats) -> Rows:
    """Rows from features, whatever they hold: nothing overflows, nothing raises."""
    with np.errstate(all="ignore"):
        extended = np.ones((features.shape[0], features.shape[1] + 1))
        extended[:, :-1] = features
        largest = np.abs(extended).max(axis=1)
        extended /= largest[:, None]
        norms = np.sqrt(np.square(extended).sum(axis=1))
        directions, usable = on_grid(extended / norms[:, None])
        return Rows(directions, np.minimum(largest * norms, _FAR), usable)


def on_grid(vectors: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Vectors of norm at most 1 in whole steps of 1/GRID, and which of them are proved to be that; the others are 0.

    The proof is a comparison of whole numbers: the squares of the steps sum to at most GRID^2. Nothing that is not a number passes.
    """
    steps = np.trunc(vectors * (GRID * _INSIDE))
    short = np.square(steps).sum(axis=1) <= GRID * GRID
    steps[~short] = 0.0
    return steps, short
