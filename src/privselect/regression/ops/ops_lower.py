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
_MOST = 100_000  # cells: where the laws are further apart than so many, hardly anything is left in common, and wider ones do


def row_cells(leverage: float, signal: float) -> tuple[Floats, Floats]:
    """Masses with and without the row of cells of |V|, which have one loss each, at a row of just this leverage and signal.

    Ends are counted from nu, as ``x = v - nu``: with the row ``s v - nu/s = s x + sqrt(signal leverage)/s``, which loses no digit where nu
    is large.
    """
    nu, grown = math.sqrt(signal / leverage), math.sqrt(1.0 + leverage)
    shift = math.sqrt(signal * leverage) / grown
    low, high = max(-nu, -_REACH - shift), _REACH
    x = np.linspace(low, high, min(int((high - low) / _CELL) + 2, _MOST))
    masses = [_folded(grown * x + shift, 2.0 * nu / grown), _folded(x, 2.0 * nu)]
    return masses[0], masses[1]


def _folded(right: Floats, apart: float) -> Floats:
    """Masses of a standard normal between neighbours of ``right`` and of their mirror images, which lie at ``-(right + apart)``."""
    above, below = normal_cells(right), normal_cells(-(right + apart)[::-1])[::-1]
    # The innermost cell lies between an end and its mirror image.
    inner = max(float(above[0] - below[1:].sum()), 0.0)
    return np.concatenate([[inner], above[1:] + below[1:]])
