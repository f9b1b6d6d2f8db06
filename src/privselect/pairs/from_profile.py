"""Dominating pair from a privacy profile in both directions, and knots at which to evaluate a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_MAX_ROUNDS = 2000  # far more than the point at a = 1 needs to converge


def pair_from_profile(epsilon: ArrayLike, forward: ArrayLike, backward: ArrayLike) -> DominatingPair:
    """Return the pair of upper bounds on ``delta_{P||P'}`` (forward) and ``delta_{P'||P}`` (backward) at ``epsilon`` = 0 < ... .

    Claim: clip the values, take the lower convex hull in ``a = e^epsilon``, connect the dots. A convex curve below the values has
    its chords below them, and the hull is the greatest such chain: the pair dominates every pair that the values bound.
    Holds when the values are upper bounds for every mechanism in question, and epsilon starts at 0.

    The half line a < 1 is computed as a > 1 of the reverse pair, so both tails keep their relative precision. The halves meet at
    a = 1, where both directions give the total variation distance.
    """
    ratio = np.exp(np.asarray(epsilon, dtype=np.float64))
    at_one = min(max(float(np.asarray(forward)[0]), float(np.asarray(backward)[0]), 0.0), 1.0)
    high, low = _ConvexChain(ratio, forward, at_one), _ConvexChain(ratio, backward, at_one)
    # The point at a = 1 may lie above the chord of its neighbours, so the hull passes below it. After lowering it to that chord,
    # a neighbour may lie above the new chain, and must leave it as well.
    for _ in range(_MAX_ROUNDS):
        chord = _chord_height_at_one(high, low)
        if chord >= at_one:
            break
        at_one = chord
        if not (high.lower_start(at_one) | low.lower_start(at_one)):
            break
    # On the positive losses P has at_one more mass than P', on the negative ones at_one less.
    centre = 1.0 - (at_one + high.mass_beyond[0]) - low.mass_beyond[0]
    middle = np.array([centre] if centre > 0.0 else [])
    low_q, low_p = low.atoms()
    high_q, high_p = high.atoms()
    return DominatingPair(
        np.concatenate([low_q[::-1], middle, high_p]),
        np.concatenate([low_p[::-1], middle, high_q]),
        float(high.heights[-1]),
        float(low.heights[-1]),
        # A single mass is a difference of slopes; only the curve, a sum of masses, has this relative error.
        rounding=4.0 * (len(high.a) + len(low.a)) * 2.0**-53,
    )


class _ConvexChain:
    """Convex chain of the points of one direction, from a = 1 upwards."""

    def __init__(self, ratio: Floats, values: ArrayLike, at_one: float) -> None:
        given = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
        given = np.minimum.accumulate(np.concatenate([[at_one], given[1:]]))
        kept = _lower_hull(ratio, given)
        self.a, self.heights = ratio[kept], given[kept]

    @property
    def mass_beyond(self) -> Floats:
        """Mass of the second distribution on losses beyond each point of the chain: minus the slopes."""
        # The last height is the mass of infinite loss: the curve is flat from there on.
        return np.append(-np.diff(self.heights) / np.diff(self.a), 0.0)

    def lower_start(self, at_one: float) -> bool:
        """Lower the first point and all higher ones to ``at_one``, drop points above the new chain, and return whether any changed."""
        changed = bool((self.heights[1:] > at_one).any())
        self.heights = np.minimum(np.concatenate([[at_one], self.heights[1:]]), at_one)
        kept = _lower_hull(self.a, self.heights)
        changed |= len(kept) < len(self.a)
        self.a, self.heights = self.a[kept], self.heights[kept]
        return changed

    def atoms(self) -> tuple[Floats, Floats]:
        """Return the masses of the second and of the first distribution on the positive losses, ascending."""
        second = np.maximum(-np.diff(self.mass_beyond), 0.0)
        full = second > 0.0
        return second[full], (self.a[1:] * second)[full]


def _chord_height_at_one(high: _ConvexChain, low: _ConvexChain) -> float:
    """Return the height at a = 1 of the line between the nearest points on either side; a point b of the low half lies at a = 1/b."""
    if len(high.a) < 2 or len(low.a) < 2:
        return np.inf
    left = 1.0 / low.a[1]
    left_height = 1.0 - left + left * low.heights[1]
    share = (1.0 - left) / (high.a[1] - left)
    return float(left_height + share * (high.heights[1] - left_height))


def _lower_hull(x: Floats, y: Floats) -> NDArray[np.intp]:
    """Return the indices of the lower convex hull of points sorted by x, by dropping points on or above their neighbours' chord."""
    kept = np.arange(len(x))
    while len(kept) > 2:
        run, rise = np.diff(x[kept]), np.diff(y[kept])
        above = rise[:-1] * run[1:] >= rise[1:] * run[:-1]
        if not above.any():
            break
        kept = kept[np.concatenate([[True], ~above, [True]])]
    return kept


_LEAST_LOG = -660.0  # of delta: near the smallest float
_FAR = -70.0
_PASSES = 2  # the first locates the fall of delta, the second resolves it


def place_knots(curve: Callable[[Floats], Floats], end: float, fall: float, far_fall: float) -> Floats:
    """Return epsilons from 0 to ``end`` between which log delta falls by about ``fall``, or by ``far_fall`` below e^-70."""
    knots = first = np.append(0.0, np.geomspace(1e-8 * end, end, 300))
    for _ in range(_PASSES):
        falling = np.log(np.maximum(curve(knots), np.exp(_LEAST_LOG)))
        near, far = np.arange(falling[0], _FAR, -fall), np.arange(min(_FAR, falling[0]), _LEAST_LOG, -far_fall)
        knots = np.unique(np.concatenate([first, np.interp(-np.concatenate([near, far]), -falling, knots)]))
    return knots[distinct_indices(knots)]


def distinct_indices(epsilon: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the indices of distinct values of ``exp(epsilon)``, for ascending epsilons: the first index of each value."""
    return np.asarray(np.unique(np.exp(epsilon), return_index=True)[1])
