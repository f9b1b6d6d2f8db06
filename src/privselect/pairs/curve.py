"""From hockey-stick values in both directions, one consistent pair that lies above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating import DominatingPair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


def pair_from_curve(epsilon: ArrayLike, forward: ArrayLike, backward: ArrayLike) -> DominatingPair:
    """The pair through upper bounds on ``delta_{P||P'}`` (forward) and ``delta_{P'||P}`` (backward) at ``epsilon`` = 0 < ... .

    Claim: clip, take the lower convex hull in ``a = e^epsilon``, connect the dots. Any convex curve below the given values
    has its own chords below them, and the hull is the greatest such chain: the result dominates whatever the values bound.
    Holds when the values are upper bounds for every mechanism meant, and epsilon starts at 0.

    The half line a < 1 is handled as the reverse pair's a > 1, so both tails keep their relative digits; the halves meet at
    a = 1, where both directions give the total variation distance.
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    total_variation = min(max(float(np.asarray(forward)[0]), float(np.asarray(backward)[0]), 0.0), 1.0)
    high = _half(eps, forward, total_variation)
    low = _half(eps, backward, total_variation)
    # The atom at loss 0 holds what is left. It is negative where the given value at 0 lies above the chord of its
    # neighbours: the hull then passes below it, and lowering the value to that chord is the hull's own step.
    left = 1.0 - high.near - low.near
    if left < 0.0:
        total_variation = _chord_at_zero(eps, high.values, low.values)
        high, low = _half(eps, high.values, total_variation), _half(eps, low.values, total_variation)
        left = max(1.0 - high.near - low.near, 0.0)
    centre = np.array([left] if left > 0.0 else [])
    return DominatingPair(
        np.concatenate([low.q, centre, high.p]),
        np.concatenate([low.p, centre, high.q]),
        high.infinite,
        low.infinite,
    )


class _half:  # noqa: N801 - a private record with a constructor, read once
    """One direction: atoms at positive losses (ascending), mass ``near`` of the first law on them and beyond."""

    def __init__(self, eps: Floats, values: ArrayLike, at_zero: float) -> None:
        given = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
        given = np.minimum.accumulate(np.concatenate([[at_zero], given[1:]]))
        ratio = np.exp(eps)
        kept = _lower_hull(ratio, given)
        a, heights = ratio[kept], given[kept]
        # Slopes are minus the second law's mass beyond; the last value stays for ever, as mass of infinite loss.
        beyond = np.concatenate([-np.diff(heights) / np.diff(a), [0.0]])
        atoms = np.maximum(-np.diff(beyond), 0.0)
        full = atoms > 0.0
        self.values = np.interp(ratio, a, heights)
        self.q, self.p = atoms[full], (a[1:] * atoms)[full]
        self.infinite = float(heights[-1])
        self.near = float(at_zero + beyond[0])


def _chord_at_zero(eps: Floats, high: Floats, low: Floats) -> float:
    """The height at a = 1 of the straight line between the neighbouring knots e^-h and e^h of the whole curve."""
    h = eps[1]
    left = -np.expm1(-h) + np.exp(-h) * low[1]
    share = -np.expm1(-h) / (np.expm1(h) - np.expm1(-h))
    return float(left + share * (high[1] - left))


def _lower_hull(x: Floats, y: Floats) -> NDArray[np.intp]:
    """Indices of the lower convex hull of points sorted by x: drop points above their neighbours' chord until none is."""
    kept: list[int] = []
    xs, ys = x.tolist(), y.tolist()
    for i in range(len(xs)):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (ys[b] - ys[a]) * (xs[i] - xs[a]) < (ys[i] - ys[a]) * (xs[b] - xs[a]):
                break
            kept.pop()
        kept.append(i)
    return np.array(kept)
