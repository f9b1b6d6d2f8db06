"""The Renyi divergences of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import Range, check_array

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_ORDERS = Range(1.0, np.inf, low_open=True)
_CHUNK = 2_000_000  # numbers held at once


def renyi_of_pair(pair: DominatingPair, alpha: ArrayLike) -> Floats:
    """``D_alpha(P||P') = log(sum p^alpha q^(1-alpha))/(alpha-1)``, in logs, rounded up; infinite where P has mass that P' has not."""
    orders = check_array("alpha", alpha, _ORDERS)
    if pair.p_only > 0.0:
        return np.full(orders.shape, np.inf)
    flat = orders.reshape(-1)
    log_p, losses = np.log(pair.p), pair.losses
    size = max(_CHUNK // len(log_p), 1)
    sums = np.empty(len(flat))
    for start in range(0, len(flat), size):
        power = flat[start : start + size, None] - 1.0
        terms = log_p + power * losses
        top = terms.max(axis=1)
        with np.errstate(under="ignore"):
            sums[start : start + size] = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
    # Each mass and each loss is right to the pair's rounding, each exponent to a few units of its largest part (|log p| < 746).
    rounding = (2.0 * flat + 1.0) * pair.relative_rounding + 1e-12 * flat
    return np.maximum((sums + rounding) / (flat - 1.0), 0.0).reshape(orders.shape)
