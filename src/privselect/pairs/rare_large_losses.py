"""Steps that hardly ever have a large loss: the sums with at least one of those are composed apart.

Where a single loss can be many times the deviation of the sum of all others, no tilt makes the composed law one hill: between the hill
without large losses and that with one there is a valley, and rounding fills it. The sums without any are one hill; those with at least
one need no fine lattice, and no rounding in proportion to the number of steps (see docs/derivations/composition.md, section 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.cumulants import Cumulants
from privselect.pairs.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Sequence

    Pairs = Sequence[tuple[DominatingPair, int]]

_FAR = 4.0  # deviations of the sum beyond which a single loss is large
_JUMP = 8.0  # times which the deviation at the ends must be that in the middle for the split to pay
_RARE = 1e-2  # chance of a large loss in one step up to which it is rare
_RARELY = 1.0  # expected number of large losses up to which they are composed apart
_SELDOM = 0.5  # chance of a large loss in one step, for the same
_MANY = 150  # runs for each large loss, from which a few usual steps more or less do not matter
MOST_TERMS = 12  # one for each number of large losses
_UNHEARD_OF = -139.0  # log of a chance
_DEEP_SHARE = 2.0 / 3.0  # of the digits of the floor: where the valley begins below that, it does not matter


def large_loss(parts: Pairs, floor: float) -> float:
    """The size from which a loss is composed apart; infinite where none need be. Nothing but tightness rests on it."""
    cumulants = Cumulants.of(parts)
    depth = -_DEEP_SHARE * math.log(floor)
    tilts = np.array([0.0, 1.0, cumulants.low_end(depth)[0], cumulants.high_end(depth)[0]])
    deviations = np.sqrt(np.maximum(cumulants.at(tilts)[2], 0.0))
    if deviations[2:].max() <= _JUMP * deviations[:2].max():
        return math.inf
    # Without large losses the deviation is less than that of all, which makes more of them large: a few rounds find both.
    size, found = _FAR * float(deviations[:2].max()), math.inf
    for _ in range(8):
        halves = [(split(pair, size), times) for pair, times in parts]
        if max(half.chance for half, _ in halves) > _RARE:
            break
        found = size
        usual = Cumulants.of([(half.usual, times) for half, times in halves])
        size = _FAR * float(np.sqrt(usual.at(np.array([0.0, 1.0]))[2].max()))
        if size > 0.9 * found:
            break
    return found if any(len(half.rare.p) for half, _ in split_all(parts, found)) else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A pair's usual outcomes, its leaks with them, and those of large loss."""

    usual: DominatingPair
    rare: DominatingPair

    @property
    def kept(self) -> tuple[float, float]:
        """The mass of the usual outcomes under both laws."""
        return float(self.usual.p.sum()), float(self.usual.q.sum())

    @property
    def chance(self) -> float:
        """That a step has a large loss, under the law that has it more often."""
        return max(float(self.rare.p.sum()), float(self.rare.q.sum()))

    @property
    def instead(self) -> DominatingPair:
        """The rare outcomes against one usual step that they stand in for: masses over those of the usual ones."""
        p, q = self.kept
        return DominatingPair(self.rare.p / p, self.rare.q / q, 0.0, 0.0, self.rare.rounding)

    def most_large(self, times: int) -> int:
        """A number of large losses in so many steps that is exceeded with a chance below 1e-60 under either law."""
        if not len(self.rare.p):
            return 0
        # More than k have a chance of at most expected^(k+1) / (k+1)!.
        log_expected = math.log(times * self.chance)
        return next(k for k in range(times + 1) if k == times or (k + 1) * log_expected - math.lgamma(k + 2) < _UNHEARD_OF)


def split(pair: DominatingPair, size: float) -> Split:
    """The outcomes of losses up to ``size``, and those beyond."""
    far = np.abs(pair.losses) > size
    return Split(
        DominatingPair(pair.p[~far], pair.q[~far], pair.p_only, pair.q_only, pair.rounding),
        DominatingPair(pair.p[far], pair.q[far], 0.0, 0.0, pair.rounding),
    )


def split_all(parts: Pairs, size: float) -> list[tuple[Split, int]]:
    """The large losses of each part apart, where they are rare and its runs many; where runs are few for all, those of one part."""
    halves = [(split(pair, size), times) for pair, times in parts]
    whole = [(split(pair, math.inf), times) for pair, times in parts]
    rare = [(half, times) for half, times in halves if len(half.rare.p)]
    if sum(times * half.chance for half, times in rare) > _RARELY or any(half.chance > _SELDOM for half, _ in rare):
        return whole  # the sums without any might be too few to build on
    if len(rare) < 2:
        return halves
    apart = [half for half, times in rare if not are_few(half, times)]
    apart = apart or [max(rare, key=lambda one: one[1] * one[0].chance * (one[1] > 1))[0]]
    return [one if one[0] in apart else other for one, other in zip(halves, whole, strict=True)]


def are_hardly_rare(parts: Pairs, size: float) -> bool:
    """Whether there may be so many large losses that the valleys between them are not deep: then one law of all sums does as well."""
    return any(half.most_large(times) > MOST_TERMS for half, times in split_all(parts, size))


def are_few(half: Split, times: int) -> bool:
    """Whether the runs are so few that some of them being large leaves notably fewer usual ones."""
    return times < _MANY * half.most_large(times)
