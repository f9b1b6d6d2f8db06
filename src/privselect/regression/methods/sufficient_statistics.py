"""What a linear regression needs of its records: sums over them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigvalsh

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Statistics:
    """``gram`` = X'X and ``moment`` = X'y of rows no longer than 1 and targets within [-1, 1]; ``records`` is their public number.

    They are private: there is no repr.
    """

    gram: Floats
    moment: Floats
    records: int

    @classmethod
    def of(cls, rows: Floats, targets: Floats, records: int | None = None) -> Statistics:
        """Of records that keep the bounds; ``records`` is a public number that theirs does not exceed, their own if None."""
        return cls(rows.T @ rows, rows.T @ targets, len(rows) if records is None else records)

    @property
    def features(self) -> int:
        """How many columns there are."""
        return len(self.moment)

    def smallest(self) -> float:
        """The least eigenvalue of X'X, which one record moves by at most 1."""
        return max(float(eigvalsh(self.gram, subset_by_index=(0, 0))[0]), 0.0)

    def solution(self, ridge: float) -> Floats:
        """``(X'X + ridge I)^-1 X'y``, for ridge > 0."""
        return np.asarray(cho_solve(cho_factor(self.gram + ridge * np.eye(self.features)), self.moment))
