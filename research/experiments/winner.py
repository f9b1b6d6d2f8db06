"""Exact winning probabilities of the candidates of a bank, for trials that draw a candidate with replacement.

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
_NORMAL = 121  # quadrature nodes of the normal noise


def winning_chances(scores: Floats, noise: float, count: Count, weights: Floats | None = None) -> Floats:
    """Return the probability of each candidate to be released, to 1e-7; the remainder to 1 is the probability of no trial.

    ``noise`` is the standard deviation of the normal noise that each trial adds to its score. Without noise, candidates with equal
    scores share their probability by their weights, because ties are broken by an independent mark.
    ``weights`` are the probabilities of the candidates in one trial, by default equal.
    """
    size = len(scores)
    drawn = np.full(size, 1.0 / size) if weights is None else weights
    if noise > 0.0:
        places, density = _hermite()
        told = scores[:, None] + noise * places
        above = ndtr((scores - told[:, :, None]) / noise) @ drawn
        return np.asarray(_weight(count, above) @ density * drawn)
    places, density = _legendre()
    order = np.argsort(-scores, kind="stable")
    ordered = drawn[order]
    begin = np.cumsum(ordered) - ordered
    chances = np.empty(size)
    chances[order] = _weight(count, begin[:, None] + ordered[:, None] * places) @ density * ordered
    _, group = np.unique(scores, return_inverse=True)
    total = np.bincount(group, drawn)[group]
    return np.asarray(np.bincount(group, chances)[group] * np.divide(drawn, total, out=np.zeros(size), where=total > 0.0))


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
