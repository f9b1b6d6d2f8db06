"""Pairs whose losses are integer multiples of a spacing, as Fourier transforms need them, and their hockey sticks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair
    from privselect.pairs.tilted_fft import DenseDistribution

    Floats = NDArray[np.float64]
    Indices = NDArray[np.int64]

_UNIT_ROUNDOFF = 2.0**-53
_MASS_ROUNDING = 1024.0 * _UNIT_ROUNDOFF  # relative, of a single mass of a pair, in addition to the pair's rounding
_JUST_ABOVE_ONE = 1.0 + 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class LatticePair:
    """Outcomes with losses ``index * spacing``, ascending.

    Their masses are ``q e^loss`` under the first distribution and ``q`` under the second.

    ``slack`` bounds the absolute error of each loss and the relative error of each mass.
    """

    spacing: float
    index: Indices
    q: Floats
    p_only: float
    q_only: float
    slack: float

    @property
    def losses(self) -> Floats:
        """Loss of each outcome."""
        return np.asarray(self.index * self.spacing, dtype=np.float64)


def lattice_upper(pair: DominatingPair, spacing: float) -> LatticePair:
    """Return a dominating pair on the lattice: each outcome is split between the two neighbouring multiples, with both masses kept."""
    lower, low_q, high_q = _split_between_knots(pair, spacing)
    index, q = _merge_equal_losses(np.concatenate([lower, lower + 1]), np.concatenate([low_q, high_q]))
    return LatticePair(spacing, index, q, pair.p_only, pair.q_only, _slack(pair))


def lattice_lower(pair: DominatingPair, spacing: float) -> LatticePair:
    r"""Return a dominated pair on the lattice, with an error of second order in the spacing.

    Between two knots, ``w`` apart in e^loss, the hockey stick H lies above its tangents at both knots. So it lies below its chord by at
    most the height ``sag = A B w / (A + B)`` of the triangle of chord and tangents; B and A are the masses that connecting the dots
    moves to the lower and upper knot. Let ``D`` at a knot be the larger sag of its two cells: the chain through ``H - D`` lies below
    H. The result is its greatest convex minorant, kept above the two lines that bound every hockey stick from below.
    The result is empty if the lattice is too coarse.
    """
    if len(pair.p) == 0:
        return _empty(pair, spacing)
    lower, low_q, high_q = _split_between_knots(pair, spacing)
    inside = high_q > 0.0  # the other outcomes lie on a knot
    knots, place = np.unique(np.concatenate([lower, lower[inside] + 1]), return_inverse=True)
    ratio = np.exp(knots * spacing)
    q = np.bincount(place, weights=np.concatenate([low_q, high_q[inside]])).astype(np.float64)
    starts = place[: len(lower)][inside]
    below, above = (np.bincount(starts, weights=masses[inside], minlength=len(knots)) for masses in (low_q, high_q))
    # Sag of the cell that starts at the knot; across a gap H is linear.
    # The product of two masses q may underflow, so one of them is first multiplied by e^loss.
    share = np.divide(below, below + above, out=np.zeros(len(knots)), where=below + above > 0.0)
    sag = share * (above * ratio * np.expm1(spacing))
    chain = LatticePair(spacing, knots, q, pair.p_only, pair.q_only, _slack(pair))
    if not inside.any():
        return chain
    drop = np.maximum(sag, np.concatenate([[0.0], sag[:-1]]))
    if len(knots) > 2:
        # An outer knot with much mass stays in place; the chain reaches it along the tangent there.
        width = np.expm1(spacing) * ratio
        if q[0] > 2.0 * below[0]:
            drop[0], drop[1] = 0.0, max(drop[1], below[0] * width[0])
        if q[-1] > 2.0 * above[-2]:
            drop[-1], drop[-2] = 0.0, max(drop[-2], above[-2] * width[-2])
    return _lower_chain(chain, ratio, drop) or _empty(pair, spacing)


def _lower_chain(chain: LatticePair, ratio: Floats, drop: Floats) -> LatticePair | None:
    """Return the convex chain lowered by ``drop`` at its knots, or None if the lattice is too coarse."""
    q, gaps = chain.q, np.diff(ratio)
    # Heights above the two bounding lines, both as sums of positive terms.
    over_zero = np.concatenate([np.cumsum((np.cumsum(q[:0:-1])[::-1] * gaps)[::-1])[::-1], [0.0]])
    over_line = np.concatenate([[0.0], np.cumsum(np.cumsum(q[:-1]) * gaps)])
    # Outcomes at both ends are merged: the chain follows the line up to the last knot at which it would lie below the line.
    crossing_low, crossing_high = np.flatnonzero(drop > over_line * _JUST_ABOVE_ONE), np.flatnonzero(drop > over_zero * _JUST_ABOVE_ONE)
    middle = int(np.argmax(np.minimum(over_zero, over_line)))
    first = int(crossing_low[crossing_low <= middle].max(initial=-1)) + 1
    last = int(crossing_high[crossing_high >= middle].min(initial=len(q))) - 1
    # On one line, the chain must not lie below the other: it would not be convex, and mass would be gained.
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
    lowered[[0, -1]] = np.maximum(lowered[[0, -1]], 0.0)  # only rounding can make them negative
    index, lowered = _convex_minorant(chain.index[first : last + 1], ratio[first : last + 1], lowered)
    return LatticePair(chain.spacing, index, lowered, chain.p_only, chain.q_only, chain.slack)


def _convex_minorant(index: Indices, ratio: Floats, q: Floats) -> tuple[Indices, Floats]:
    """Return the greatest convex minorant: a knot of negative mass lies above its neighbours' chord, so they take its mass."""
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


def _empty(pair: DominatingPair, spacing: float) -> LatticePair:
    """Return no outcomes, for a lattice that is too coarse."""
    return LatticePair(spacing, np.zeros(0, dtype=np.int64), np.zeros(0), pair.p_only, pair.q_only, _slack(pair))


def _split_between_knots(pair: DominatingPair, spacing: float) -> tuple[Indices, Floats, Floats]:
    """Return, for each outcome, the multiple of the spacing at or below its loss, and the masses for it and for the next multiple."""
    losses = pair.losses
    nearest = np.rint(losses / spacing)
    offset = losses - nearest * spacing
    # On a knot, up to the rounding of the loss.
    on_knot = np.abs(offset) <= _loss_rounding(losses)
    lower = np.where(on_knot | (offset > 0.0), nearest, nearest - 1.0)
    inside = np.where(on_knot, 0.0, losses - lower * spacing)
    inside = np.clip(inside, 0.0, spacing)
    share = np.expm1(inside) / np.expm1(spacing)
    rest = np.exp(spacing) * np.expm1(inside - spacing) / -np.expm1(spacing)
    return lower.astype(np.int64), pair.q * rest, pair.q * share


def _merge_equal_losses(index: Indices, q: Floats) -> tuple[Indices, Floats]:
    found, place = np.unique(index, return_inverse=True)
    masses = np.bincount(place, weights=q).astype(np.float64)
    return found[masses > 0.0], masses[masses > 0.0]


def _loss_rounding(losses: Floats) -> Floats:
    return 64.0 * _UNIT_ROUNDOFF * (1.0 + np.abs(losses))


def _slack(pair: DominatingPair) -> float:
    largest = float(np.abs(pair.losses[[0, -1]]).max()) if len(pair.losses) else 0.0
    return _MASS_ROUNDING + 2.0 * pair.rounding + 2.0 * float(_loss_rounding(np.array(largest)))


_HEAVY_MASS = 1e-4  # of the curve's height: a mass that counts


class LatticeProfile:
    """Hockey stick ``sum (p - e^epsilon q)_+`` of a dense distribution at the multiples 0, 1, 2, ... of the spacing, rounded up."""

    def __init__(self, p: Floats, q: Floats, first: int, spacing: float) -> None:
        # Only multiples >= 0: for epsilon >= 0 negative losses do not count.
        skipped, self._first = max(-first, 0), max(first, 0)
        self._p, q = (np.concatenate([masses[skipped:], np.zeros(1)]) for masses in (p, q))
        self._spacing = spacing
        # Between two multiples the curve falls by the mass beyond, times their distance in e^epsilon: sums of positive terms only.
        beyond = np.concatenate([np.cumsum(q[:0:-1])[::-1], [0.0]])
        falls = beyond * np.exp((self._first + np.arange(len(q))) * spacing) * math.expm1(spacing)
        rounding = 1.0 + 8.0 * len(q) * _UNIT_ROUNDOFF
        self._heights = np.cumsum(falls[::-1])[::-1] * rounding
        self._all = (float(beyond[0]) + float(q[0])) * rounding

    @classmethod
    def of(cls, dense: DenseDistribution) -> LatticeProfile:
        """Return the profile of the first distribution against the second."""
        return cls(dense.p, dense.q, dense.first, dense.spacing)

    @classmethod
    def reversed(cls, dense: DenseDistribution) -> LatticeProfile:
        """Return the profile of the second distribution against the first."""
        return cls(dense.q[::-1], dense.p[::-1], -dense.last, dense.spacing)

    def at(self, epsilon: Floats) -> Floats:
        """Return the values at epsilons >= 0: between two multiples the curve is linear in e^epsilon."""
        start = self._first * self._spacing
        multiple = np.floor(epsilon / self._spacing * (1.0 + 1e-15)) - self._first
        place = np.clip(multiple, 0.0, len(self._heights) - 1.0).astype(np.int64)
        offset = np.maximum(epsilon - (self._first + place) * self._spacing, 0.0)
        share = np.minimum(np.expm1(offset) / math.expm1(self._spacing), 1.0)
        after = np.append(self._heights, 0.0)
        # Below the first loss all outcomes count.
        before = np.exp(np.minimum(epsilon, start)) * np.expm1(np.maximum(start - epsilon, 0.0))
        return np.asarray(after[place] + share * (after[place + 1] - after[place]) + self._all * before)

    def knots(self, tolerance: float) -> Floats:
        """Return multiples of the spacing, from 0 to the last, between which the chords are close to the curve.

        A chord may raise delta by the relative ``tolerance`` for each unit of log delta: at most that much of epsilon.
        In a cell of width w in epsilon, with density f of the losses under the first distribution, the chord is at most ``f w^2 / 4``
        above the tangents.
        """
        height = np.maximum(self._heights, 1e-300)
        allowed = 4.0 * tolerance * height * np.maximum(1.0, -2.0 * np.log(np.minimum(height, 1.0)))
        needed = np.minimum(np.sqrt(self._spacing * self._p / allowed), 1.0)
        chosen = np.flatnonzero(np.diff(np.floor(np.cumsum(needed)), prepend=-1.0) > 0.0)
        # An isolated outcome has no density and needs a knot: otherwise the chord would pass above its kink.
        padded = np.pad(self._p, 2)
        alone = np.flatnonzero((self._p > _HEAVY_MASS * height) & (self._p > 4.0 * np.minimum(padded[:-4], padded[4:])))
        return np.unique(np.concatenate([[0], self._first + np.concatenate([[0], chosen, alone, [len(height) - 1]])])) * self._spacing
