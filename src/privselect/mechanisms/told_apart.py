"""Points of a curve that floats can tell apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def told_apart(epsilon: NDArray[np.float64]) -> NDArray[np.intp]:
    """Indices of ascending epsilons, the first of each that share ``e^epsilon``: on a falling curve the one of the greatest value."""
    return np.asarray(np.unique(np.exp(epsilon), return_index=True)[1])
