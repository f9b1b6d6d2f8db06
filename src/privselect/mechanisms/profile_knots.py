"""Knots for a falling curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.told_apart import told_apart

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LEAST_LOG = -660.0  # of a delta: near the smallest float
_FAR = -70.0
_PASSES = 2  # the first finds where delta falls, the second how


def falling_knots(curve: Callable[[Floats], Floats], end: float, fall: float, far_fall: float) -> Floats:
    """Epsilons from 0 to ``end``, at which log delta falls about evenly: by ``fall`` from knot to knot, by ``far_fall`` below e^-70."""
    knots = first = np.append(0.0, np.geomspace(1e-8 * end, end, 300))
    for _ in range(_PASSES):
        falling = np.log(np.maximum(curve(knots), np.exp(_LEAST_LOG)))
        near, far = np.arange(falling[0], _FAR, -fall), np.arange(min(_FAR, falling[0]), _LEAST_LOG, -far_fall)
        knots = np.unique(np.concatenate([first, np.interp(-np.concatenate([near, far]), -falling, knots)]))
    return knots[told_apart(knots)]
