"""A real row: what the posterior samples with and without it give to cells of their loss."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.gaussian import normal_cells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_REACH = 30.0  # standard deviations
_CELL = 0.01


def row_cells(leverage: float, signal: float) -> tuple[Floats, Floats]:
    """Masses with and without the row of cells of V, and of their mirror images, which have the same loss."""
    nu, grown = math.sqrt(signal / leverage), math.sqrt(1.0 + leverage)
    # From the middle outward: what both laws give to |V| between two neighbours.
    near, far = max(min(nu / (1.0 + leverage), nu) - _REACH, 0.0), nu + _REACH
    ends = np.unique(np.concatenate([np.zeros(1), np.linspace(near, far, int((far - near) / _CELL) + 2)]))
    masses = []
    for scale, centre in ((grown, nu / grown), (1.0, nu)):
        right, left = normal_cells(scale * ends - centre), normal_cells(-(scale * ends[::-1]) - centre)[::-1]
        masses.append(right[1:] + left[1:])
    return masses[0], masses[1]
