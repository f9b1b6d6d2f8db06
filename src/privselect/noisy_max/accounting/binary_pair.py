"""An instance of which only one thing is asked, such as whether the winner is among some: a pair of two outcomes."""

from __future__ import annotations

import numpy as np

from privselect.pairs import DominatingPair

_ROUNDING = 1e-9  # of 1 - p, where p is at most this far from 1
_MOST = 1.0 - 1e-6


def two_outcomes(high: float, low: float) -> DominatingPair:
    """An outcome of chance at least ``high`` under the first law, and at most ``low`` under the second, and the other outcome.

    Lowering the one or raising the other, so long as high >= low, stays within what mixing with a coin can do: a dominated pair.
    """
    first = min(high, _MOST)
    if not first > low > 0.0:
        return DominatingPair(np.ones(1), np.ones(1))
    return DominatingPair(np.array([1.0 - first, first]), np.array([1.0 - low, low]), rounding=_ROUNDING)
