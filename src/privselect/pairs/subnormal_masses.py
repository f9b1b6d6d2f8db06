"""Handling of probability masses near the smallest normal float: split in an upper pair, merged in a lower pair."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Leaks = tuple[float, float]  # p_only and q_only

SMALLEST = 1e-290  # smaller masses may lose digits in products
_MAX_ROUNDING = 0.1  # masses with a larger relative error are useless


def split_subnormal(
    p: Floats, q: Floats, leaks: Leaks = (0.0, 0.0), *, rounding: float = 0.0, smallest: float = SMALLEST
) -> DominatingPair:
    """Return a dominating pair: an outcome with a tiny mass becomes one that only P has and one that only P' has.

    Merging the two again is a post-processing, so the split pair leaks at least as much.
    """
    proper = (p >= smallest) & (q >= smallest)
    # A mass of 0 has underflowed: count it as the smallest float.
    lost_p, lost_q = (float(np.nextafter(masses[~proper], 1.0).sum()) for masses in (p, q))
    return _pair_by_loss(p[proper], q[proper], (min(leaks[0] + lost_p, 1.0), min(leaks[1] + lost_q, 1.0)), rounding)


def merge_subnormal(
    p: Floats, q: Floats, leaks: Leaks = (0.0, 0.0), *, rounding: float = 0.0, smallest: float = SMALLEST
) -> DominatingPair:
    """Return a dominated pair: outcomes with a tiny mass are merged into the most likely outcome, a post-processing."""
    proper = (p >= smallest) & (q >= smallest)
    if not proper.any() or rounding > _MAX_ROUNDING:
        return DominatingPair(np.ones(1), np.ones(1))
    p, q, kept_p, kept_q = p[~proper], q[~proper], p[proper], q[proper]
    likeliest = int(np.argmax(np.minimum(kept_p, kept_q)))
    kept_p[likeliest] += p.sum()
    kept_q[likeliest] += q.sum()
    return _pair_by_loss(kept_p, kept_q, leaks, rounding)


Part = tuple[float, DominatingPair]


def union_upper(parts: Sequence[Part]) -> DominatingPair:
    """Return the weighted disjoint union of upper pairs: draw a part by its weight, draw its outcome, and reveal both."""
    p, q, leaks, rounding = _weighted_union(parts)
    return split_subnormal(p, q, leaks, rounding=rounding)


def union_lower(parts: Sequence[Part]) -> DominatingPair:
    """Return the weighted disjoint union of lower pairs."""
    p, q, leaks, rounding = _weighted_union(parts)
    return merge_subnormal(p, q, leaks, rounding=rounding)


def _weighted_union(parts: Sequence[Part]) -> tuple[Floats, Floats, Leaks, float]:
    p = np.concatenate([weight * part.p for weight, part in parts])
    q = np.concatenate([weight * part.q for weight, part in parts])
    p_only, q_only = (sum(product_up(weight, getattr(part, only)) for weight, part in parts) for only in ("p_only", "q_only"))
    return p, q, (p_only, q_only), max(part.rounding for _, part in parts)


def product_up(weight: float, leak: float) -> float:
    """Return ``weight * leak``, rounded up if it may have lost digits; for a lower pair that change is negligible."""
    product = weight * leak
    return product if product >= SMALLEST or leak == 0.0 else math.nextafter(product, 1.0)


def _pair_by_loss(p: Floats, q: Floats, leaks: Leaks, rounding: float) -> DominatingPair:
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order], *leaks, rounding)
