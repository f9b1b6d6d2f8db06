"""Pairs whose losses are whole multiples of one spacing: what can be composed by Fourier transforms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

_UNIT_ROUNDOFF = 2.0**-53
_MASS_ROUNDING = 1024.0 * _UNIT_ROUNDOFF  # of a single mass of a pair, relative, beyond its own stated rounding
_JUST = 1.0 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class LatticePair:
    """Outcomes of loss ``index * spacing``, ascending, with masses ``q`` under the second law and ``q e^loss`` under the first.

    ``slack`` bounds how far the pair meant may be from this one: each loss by that much, and each mass by that much of itself.
    """

    spacing: float
    index: Indices
    q: Floats
    p_only: float
    q_only: float
    slack: float

    @property
    def losses(self) -> Floats:
        """Of each outcome."""
        return np.asarray(self.index * self.spacing, dtype=np.float64)


def lattice_above(pair: DominatingPair, spacing: float) -> LatticePair:
    """Connect the dots: each outcome is split between the two multiples of the spacing around it, keeping both its masses."""
    lower, low_q, high_q = _split(pair, spacing)
    index, q = _gathered(np.concatenate([lower, lower + 1]), np.concatenate([low_q, high_q]))
    return LatticePair(spacing, index, q, pair.p_only, pair.q_only, _slack(pair))


def lattice_below(pair: DominatingPair, spacing: float) -> LatticePair:
    r"""A dominated pair on the lattice, second order in the spacing.

    Between two knots the hockey stick H lies above its tangents at both, so it lies below its chord by at most the height
    ``sag = A B w / (A + B)`` of the triangle that chord and tangents make, where B and A are what connecting the dots moves to
    the lower and upper knot, ``w`` apart in e^loss. With ``D`` at a knot the greater sag of its two cells, the chain through
    ``H - D`` lies below H; its greatest convex minorant, between the lines that no pair can go below, is the result.
    It is empty where the lattice is too coarse to tell anything.
    """
    if len(pair.p) == 0:
        return _nothing(pair, spacing)
    lower, low_q, high_q = _split(pair, spacing)
    inside = high_q > 0.0  # the others lie on a knot
    knots, place = np.unique(np.concatenate([lower, lower[inside] + 1]), return_inverse=True)
    ratio = np.exp(knots * spacing)
    q = np.bincount(place, weights=np.concatenate([low_q, high_q[inside]])).astype(np.float64)
    starts = place[: len(lower)][inside]
    below, above = (np.bincount(starts, weights=masses[inside], minlength=len(knots)) for masses in (low_q, high_q))
    # Of the cell that starts at the knot; across a gap H is a line.
    # Masses of the second law may be so small that their product is no float; times e^loss they are not.
    share = np.divide(below, below + above, out=np.zeros(len(knots)), where=below + above > 0.0)
    sag = share * (above * ratio * np.expm1(spacing))
    chain = LatticePair(spacing, knots, q, pair.p_only, pair.q_only, _slack(pair))
    if not inside.any():
        return chain
    drop = np.maximum(sag, np.concatenate([[0.0], sag[:-1]]))
    if len(knots) > 2:
        # An end that carries much mass stays where it is; the chain then reaches it along the tangent there.
        width = np.expm1(spacing) * ratio
        if q[0] > 2.0 * below[0]:
            drop[0], drop[1] = 0.0, max(drop[1], below[0] * width[0])
        if q[-1] > 2.0 * above[-2]:
            drop[-1], drop[-2] = 0.0, max(drop[-2], above[-2] * width[-2])
    return _under(chain, ratio, drop) or _nothing(pair, spacing)


def _under(chain: LatticePair, ratio: Floats, drop: Floats) -> LatticePair | None:
    """The convex chain lowered by ``drop`` at its knots."""
    q, gaps = chain.q, np.diff(ratio)
    # Heights above the two lines, both as sums of positive terms.
    over_zero = np.concatenate([np.cumsum((np.cumsum(q[:0:-1])[::-1] * gaps)[::-1])[::-1], [0.0]])
    over_line = np.concatenate([[0.0], np.cumsum(np.cumsum(q[:-1]) * gaps)])
    # Outcomes at the ends are merged: there the chain runs along the line, from the last knot that it would cross on.
    crossing_low, crossing_high = np.flatnonzero(drop > over_line * _JUST), np.flatnonzero(drop > over_zero * _JUST)
    middle = int(np.argmax(np.minimum(over_zero, over_line)))
    first = int(crossing_low[crossing_low <= middle].max(initial=-1)) + 1
    last = int(crossing_high[crossing_high >= middle].min(initial=len(q))) - 1
    # On the one line at either end, the chain must not be below the other: it would not be convex, and mass would be won.
    if first >= last or (crossing_low > middle).any() or (crossing_high < middle).any():
        return None
    if over_line[first] > over_zero[first] or over_zero[last] > over_line[last]:
        return None
    drop = np.minimum(drop, np.minimum(over_line, over_zero))[first : last + 1]
    drop[0], drop[-1] = over_line[first], over_zero[last]
    lowered = q[first : last + 1].copy()
    lowered[0] += q[:first].sum()
    lowered[-1] += q[last + 1 :].sum()
    slopes = np.diff(drop) / gaps[first:last]
    lowered[:-1] -= slopes
    lowered[1:] += slopes
    lowered[[0, -1]] = np.maximum(lowered[[0, -1]], 0.0)  # nothing but rounding may take them below
    index, lowered = _convex(chain.index[first : last + 1], ratio[first : last + 1], lowered)
    return LatticePair(chain.spacing, index, lowered, chain.p_only, chain.q_only, chain.slack)


def _convex(index: Indices, ratio: Floats, q: Floats) -> tuple[Indices, Floats]:
    """The greatest convex minorant: a knot of negative mass lies above its neighbours' chord, so its mass is theirs."""
    while (negative := q < 0.0)[1:-1].any():
        negative[0] = negative[-1] = False
        kept = np.flatnonzero(~negative)
        gone = np.flatnonzero(negative)
        right = np.searchsorted(kept, gone)
        a, b = ratio[kept[right - 1]], ratio[kept[right]]
        share = (ratio[gone] - a) / (b - a)
        masses = q[kept]
        np.add.at(masses, right, q[gone] * share)
        np.add.at(masses, right - 1, q[gone] * (1.0 - share))
        index, ratio, q = index[kept], ratio[kept], masses
    positive = q > 0.0
    return index[positive], q[positive]


def _nothing(pair: DominatingPair, spacing: float) -> LatticePair:
    """For a lattice too coarse to tell anything."""
    return LatticePair(spacing, np.zeros(0, dtype=np.int64), np.zeros(0), pair.p_only, pair.q_only, _slack(pair))


def _split(pair: DominatingPair, spacing: float) -> tuple[Indices, Floats, Floats]:
    """For each outcome the multiple of the spacing at or below its loss, and the masses that go to it and to the next one."""
    losses = pair.losses
    nearest = np.rint(losses / spacing)
    beside = losses - nearest * spacing
    # On a knot to within what is known of the loss.
    on_knot = np.abs(beside) <= _loss_rounding(losses)
    lower = np.where(on_knot | (beside > 0.0), nearest, nearest - 1.0)
    inside = np.where(on_knot, 0.0, losses - lower * spacing)
    inside = np.clip(inside, 0.0, spacing)
    share = np.expm1(inside) / np.expm1(spacing)
    rest = np.exp(spacing) * np.expm1(inside - spacing) / -np.expm1(spacing)
    return lower.astype(np.int64), pair.q * rest, pair.q * share


def _gathered(index: Indices, q: Floats) -> tuple[Indices, Floats]:
    found, place = np.unique(index, return_inverse=True)
    masses = np.bincount(place, weights=q).astype(np.float64)
    return found[masses > 0.0], masses[masses > 0.0]


def _loss_rounding(losses: Floats) -> Floats:
    return 64.0 * _UNIT_ROUNDOFF * (1.0 + np.abs(losses))


def _slack(pair: DominatingPair) -> float:
    largest = float(np.abs(pair.losses[[0, -1]]).max()) if len(pair.losses) else 0.0
    return _MASS_ROUNDING + 2.0 * pair.rounding + 2.0 * float(_loss_rounding(np.array(largest)))
