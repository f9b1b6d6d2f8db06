"""Masses too small for a float's digits, put where they do no harm: apart in an upper pair, together in a lower one."""

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

SMALLEST = 1e-290  # below this a float soon loses digits
_WORST = 0.1  # masses known less well than this say nothing


def split_tiny(p: Floats, q: Floats, leaks: Leaks = (0.0, 0.0), *, rounding: float = 0.0, smallest: float = SMALLEST) -> DominatingPair:
    """A pair that dominates: an outcome with a tiny mass becomes one that only P and one that only P' can give.

    Showing which of the two it was would be undone by a post-processing, so the split pair leaks at least as much.
    """
    proper = (p >= smallest) & (q >= smallest)
    # No outcome has mass 0: where that is what is left of it, it was too small for a float.
    lost_p, lost_q = (float(np.nextafter(masses[~proper], 1.0).sum()) for masses in (p, q))
    return _sorted(p[proper], q[proper], (min(leaks[0] + lost_p, 1.0), min(leaks[1] + lost_q, 1.0)), rounding)


def merge_tiny(p: Floats, q: Floats, leaks: Leaks = (0.0, 0.0), *, rounding: float = 0.0, smallest: float = SMALLEST) -> DominatingPair:
    """A dominated pair: outcomes with a tiny mass become one with the likeliest outcome, a post-processing."""
    proper = (p >= smallest) & (q >= smallest)
    if not proper.any() or rounding > _WORST:
        return DominatingPair(np.ones(1), np.ones(1))
    p, q, kept_p, kept_q = p[~proper], q[~proper], p[proper], q[proper]
    likeliest = int(np.argmax(np.minimum(kept_p, kept_q)))
    kept_p[likeliest] += p.sum()
    kept_q[likeliest] += q.sum()
    return _sorted(kept_p, kept_q, leaks, rounding)


Part = tuple[float, DominatingPair]


def union_above(parts: Sequence[Part]) -> DominatingPair:
    """The weighted disjoint union of upper pairs: draw a part by its weight, then an outcome of it, and show both."""
    p, q, leaks, rounding = _united(parts)
    return split_tiny(p, q, leaks, rounding=rounding)


def union_below(parts: Sequence[Part]) -> DominatingPair:
    """The same of lower pairs."""
    p, q, leaks, rounding = _united(parts)
    return merge_tiny(p, q, leaks, rounding=rounding)


def _united(parts: Sequence[Part]) -> tuple[Floats, Floats, Leaks, float]:
    p = np.concatenate([weight * part.p for weight, part in parts])
    q = np.concatenate([weight * part.q for weight, part in parts])
    p_only, q_only = (sum(_share(weight, getattr(part, only)) for weight, part in parts) for only in ("p_only", "q_only"))
    return p, q, (p_only, q_only), max(part.rounding for _, part in parts)


def _share(weight: float, leak: float) -> float:
    """Their product, rounded up where it has too few digits; from below, so little is as good as none."""
    product = weight * leak
    return product if product >= SMALLEST or leak == 0.0 else math.nextafter(product, 1.0)


def _sorted(p: Floats, q: Floats, leaks: Leaks, rounding: float) -> DominatingPair:
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order], *leaks, rounding)
