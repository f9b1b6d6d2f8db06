"""Which candidate of a bank wins, exactly: each with its chance, for a trial that draws one of them with equal chance.

With ``u`` the chance that a trial scores above an outcome, the outcome ``dy`` of one trial is released with the chance
``phi'(1-u) dy`` (see docs/derivations/setting.md), so nothing has to be drawn to know the mean of what is released.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts import Count

    Floats = NDArray[np.float64]

_INSIDE = 24  # places in each candidate's share of [0, 1], where scores are as they are
_DENSER = 4  # the power by which these crowd at its better end: a law with a heavy tail has its weight there
_NORMAL = 81  # places of a normal's noise


def winning_chances(scores: Floats, noise: float, count: Count) -> Floats:
    """The chance of each candidate to be released, to 1e-7; what is missing to 1 is that of no trial at all.

    ``noise`` is the deviation of a normal that each trial adds to its score. Without it equal scores share their places evenly, as ties
    are broken by a mark that has nothing to do with them.
    """
    size = len(scores)
    if noise > 0.0:
        places, weights = _hermite()
        drawn = scores[:, None] + noise * places
        above = ndtr((scores - drawn[:, :, None]) / noise).mean(axis=2)
        return np.asarray(_weight(count, above) @ weights / size)
    places, weights = _legendre()
    order = np.argsort(-scores, kind="stable")
    shares = _weight(count, (np.arange(size)[:, None] + places) / size) @ weights / size
    chances = np.empty(size)
    chances[order] = shares
    _, group = np.unique(scores, return_inverse=True)
    return np.asarray((np.bincount(group, chances) / np.bincount(group))[group])


def _weight(count: Count, above: Floats) -> Floats:
    return np.exp(count.log_dpgf(np.clip(above, 0.0, 1.0)))


@lru_cache(maxsize=1)
def _legendre() -> tuple[Floats, Floats]:
    places, weights = np.polynomial.legendre.leggauss(_INSIDE)
    evenly = 0.5 * (places + 1.0)
    return evenly**_DENSER, 0.5 * weights * _DENSER * evenly ** (_DENSER - 1)


@lru_cache(maxsize=1)
def _hermite() -> tuple[Floats, Floats]:
    places, weights = np.polynomial.hermite_e.hermegauss(_NORMAL)
    return places, weights / weights.sum()
