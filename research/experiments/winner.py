"""Exact winning probabilities of the candidates of a bank, for trials that draw a candidate uniformly.

With ``u`` the probability that a trial scores above an outcome, the outcome ``dy`` of one trial is released with probability
``phi'(1-u) dy`` (see docs/derivations/setting.md), so the mean of the release needs no sampling.
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

_INSIDE = 24  # quadrature nodes in each candidate's share of [0, 1], for scores without noise
_DENSER = 4  # power that concentrates the nodes near the better end, where heavy-tailed laws of K have their weight
_NORMAL = 81  # quadrature nodes of the normal noise


def winning_chances(scores: Floats, noise: float, count: Count) -> Floats:
    """Return the probability of each candidate to be released, to 1e-7; the remainder to 1 is the probability of no trial.

    ``noise`` is the standard deviation of the normal noise that each trial adds to its score. Without noise, candidates with equal
    scores share their probability evenly, because ties are broken by an independent mark.
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
