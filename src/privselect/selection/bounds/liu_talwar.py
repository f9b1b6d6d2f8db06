"""Liu and Talwar's bounds (STOC 2019): a geometric number of trials, one point of the base's profile."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import grid_argmin, solve_epsilon
from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, UNIT, check_number
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError
from privselect.selection.bounds.paper_bounds import require_uncapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]

_UP = 1.0 + 1e-12
# log(delta/delta_2), from nearly all of delta for the cut-off to almost none.
_SPLITS = np.concatenate([np.geomspace(1e-3, 1.0, 12), np.linspace(1.5, 40.0, 30)])


def liu_talwar_pure(epsilon: float, count: Count) -> float:
    """Return epsilon of the selection over a pure base.

    Claim: an e-DP base and a geometric K give a 3e-DP selection. Label: Liu-Talwar (pure).

    Holds when K is geometric, without a cap.
    """
    _stopping_probability(count)
    return 3.0 * check_number("epsilon", epsilon, NON_NEGATIVE) * _UP


def liu_talwar(epsilon: float, delta: float, count: Count, delta_2: float) -> tuple[float, float]:
    r"""Return one point of the selection from one point of the base.

    Claim: with stopping probability tau after each trial, and at most ``T = log(1/delta_2)/tau`` trials, an ``(e, d)``-DP base gives
    ``(3 e + 3 sqrt(2 d), sqrt(2 d) T + delta_2)``. Label: Liu-Talwar.

    Holds when K is geometric with mean 1/tau, and a run that reaches T trials releases nothing; its probability is at most delta_2.
    """
    tau = _stopping_probability(count)
    e, d = check_number("epsilon", epsilon, NON_NEGATIVE), check_number("delta", delta, UNIT)
    cutoff = check_number("delta_2", delta_2, OPEN_UNIT)
    root = math.sqrt(2.0 * d)
    return 3.0 * (e + root) * _UP, min((root * math.log(1.0 / cutoff) / tau + cutoff) * _UP, 1.0)


def liu_talwar_epsilon(profile: Callable[[Floats], Floats], count: Count, delta: float) -> float:
    """Return the smallest epsilon found at a total delta by :func:`liu_talwar`, over splits of delta; every split is valid."""
    tau = _stopping_probability(count)
    total = check_number("delta", delta, OPEN_UNIT)

    def base_delta(split: float) -> float:
        """Return the d at which ``sqrt(2 d) T`` uses up the part of delta that the cut-off leaves."""
        return 0.5 * (-total * math.expm1(-split) * tau / (split - math.log(total)) / _UP) ** 2

    def epsilon(split: float) -> float:
        d = base_delta(split)
        base = solve_epsilon(lambda e: float(profile(np.asarray(e))), d, tolerance=1e-8) if d > 0.0 else math.inf
        return 3.0 * (base + math.sqrt(2.0 * d)) * _UP

    best = grid_argmin(lambda splits: np.array([epsilon(split) for split in splits.tolist()]), _SPLITS, rounds=2)
    return epsilon(best)


def _stopping_probability(count: Count) -> float:
    """Return the probability of stopping after each trial."""
    geometric = require_uncapped(count, TruncatedNegativeBinomial, "Liu-Talwar", "geometric")
    if geometric.eta != 1.0:
        raise NotCoveredError(f"Liu-Talwar covers geometric K without a cap, got {count}")
    return geometric.resolved_gamma
