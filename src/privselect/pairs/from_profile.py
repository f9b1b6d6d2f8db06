"""From hockey-stick values in both directions, one consistent pair that lies above them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]


_ROUNDS = 2000  # far more than it takes for the point at a = 1 to come to rest


def pair_from_curve(epsilon: ArrayLike, forward: ArrayLike, backward: ArrayLike) -> DominatingPair:
    """The pair through upper bounds on ``delta_{P||P'}`` (forward) and ``delta_{P'||P}`` (backward) at ``epsilon`` = 0 < ... .

    Claim: clip, take the lower convex hull in ``a = e^epsilon``, connect the dots. Any convex curve below the given values
    has its own chords below them, and the hull is the greatest such chain: the result dominates whatever the values bound.
    Holds when the values are upper bounds for every mechanism meant, and epsilon starts at 0.

    The half line a < 1 is handled as the reverse pair's a > 1, so both tails keep their relative digits; the halves meet at
    a = 1, where both directions give the total variation distance.
    """
    ratio = np.exp(np.asarray(epsilon, dtype=np.float64))
    at_one = min(max(float(np.asarray(forward)[0]), float(np.asarray(backward)[0]), 0.0), 1.0)
    high, low = _Half(ratio, forward, at_one), _Half(ratio, backward, at_one)
    # The point at a = 1 may lie above the chord of its neighbours; the hull then passes below it. Lowering it to that chord can
    # push a neighbour above the new chain in turn, which then leaves the chain as well.
    for _ in range(_ROUNDS):
        chord = _chord_at_one(high, low)
        if chord >= at_one:
            break
        at_one = chord
        if not (high.lower(at_one) | low.lower(at_one)):
            break
    # P holds at_one more than P' on the positive losses, and that much less on the negative ones.
    centre = 1.0 - (at_one + high.beyond[0]) - low.beyond[0]
    middle = np.array([centre] if centre > 0.0 else [])
    low_q, low_p = low.atoms()
    high_q, high_p = high.atoms()
    return DominatingPair(
        np.concatenate([low_q[::-1], middle, high_p]),
        np.concatenate([low_p[::-1], middle, high_q]),
        float(high.heights[-1]),
        float(low.heights[-1]),
        # A mass is a difference of slopes, and good for the curve only: that is right to so many units in the last place.
        rounding=4.0 * (len(high.a) + len(low.a)) * 2.0**-53,
    )


class _Half:
    """One direction, a >= 1: the convex chain of its points, starting at a = 1."""

    def __init__(self, ratio: Floats, values: ArrayLike, at_one: float) -> None:
        given = np.clip(np.asarray(values, dtype=np.float64), 0.0, 1.0)
        given = np.minimum.accumulate(np.concatenate([[at_one], given[1:]]))
        kept = _lower_hull(ratio, given)
        self.a, self.heights = ratio[kept], given[kept]

    @property
    def beyond(self) -> Floats:
        """Mass of the second law on the losses from each point of the chain on, but for the point itself: minus the slopes."""
        # The last height stays for ever, as mass of infinite loss.
        return np.append(-np.diff(self.heights) / np.diff(self.a), 0.0)

    def lower(self, at_one: float) -> bool:
        """Move the first point down, and others with it, as the curve falls; drop those then above the chain. True if any moved."""
        changed = bool((self.heights[1:] > at_one).any())
        self.heights = np.minimum(np.concatenate([[at_one], self.heights[1:]]), at_one)
        kept = _lower_hull(self.a, self.heights)
        changed |= len(kept) < len(self.a)
        self.a, self.heights = self.a[kept], self.heights[kept]
        return changed

    def atoms(self) -> tuple[Floats, Floats]:
        """Masses of the second and of the first law on the positive losses, ascending."""
        second = np.maximum(-np.diff(self.beyond), 0.0)
        full = second > 0.0
        return second[full], (self.a[1:] * second)[full]


def _chord_at_one(high: _Half, low: _Half) -> float:
    """The height at a = 1 of the line between the nearest points on either side; a point b of the low half lies at a = 1/b."""
    if len(high.a) < 2 or len(low.a) < 2:
        return np.inf
    left = 1.0 / low.a[1]
    left_height = 1.0 - left + left * low.heights[1]
    share = (1.0 - left) / (high.a[1] - left)
    return float(left_height + share * (high.heights[1] - left_height))


def _lower_hull(x: Floats, y: Floats) -> NDArray[np.intp]:
    """Indices of the lower convex hull of points sorted by x: drop points on or above their neighbours' chord until none is."""
    kept = np.arange(len(x))
    while len(kept) > 2:
        run, rise = np.diff(x[kept]), np.diff(y[kept])
        above = rise[:-1] * run[1:] >= rise[1:] * run[:-1]
        if not above.any():
            break
        kept = kept[np.concatenate([[True], ~above, [True]])]
    return kept
