"""Steps that rarely have a large loss: sums with at least one large loss are composed separately.

If a single loss can be many times the deviation of the sum of all others, the composed distribution has several peaks under every tilt:
one without large losses, one with a single large loss, and so on. Rounding errors hide the valleys between them. The sums without
large losses have one peak. The other sums need no fine lattice, and their rounding does not grow with the number of steps
(see docs/derivations/composition.md, section 5).
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

_LARGE_DEVIATIONS = 4.0  # a loss beyond this many deviations of the sum is large
_MIN_DEVIATION_RATIO = 8.0  # the split pays if the deviation grows by this factor from the middle to the tails
_MAX_RARE_PROBABILITY = 1e-2  # largest probability of a rare large loss in one step
_MAX_EXPECTED_LARGE = 1.0  # largest expected number of large losses for which they are composed separately
_MAX_LARGE_PROBABILITY = 0.5  # largest probability of a large loss in one step, for the same purpose
_MANY_RUNS_PER_LARGE_LOSS = 150  # runs per large loss from which a few usual steps more or less are negligible
MAX_TERMS = 12  # largest number of large losses with a term each
_NEGLIGIBLE_LOG_PROBABILITY = -139.0  # log(1e-60), rounded
_DEEP_SHARE = 2.0 / 3.0  # of the depth of the floor: deeper valleys are irrelevant


def large_loss_threshold(parts: Pairs, floor: float) -> float:
    """Return the size above which losses are composed separately, or infinity. It affects only the tightness of the bounds."""
    cumulants = Cumulants.of(parts)
    depth = -_DEEP_SHARE * math.log(floor)
    tilts = np.array([0.0, 1.0, cumulants.low_end(depth)[0], cumulants.high_end(depth)[0]])
    deviations = np.sqrt(np.maximum(cumulants.at(tilts)[2], 0.0))
    if deviations[2:].max() <= _MIN_DEVIATION_RATIO * deviations[:2].max():
        return math.inf
    # Without large losses the deviation is smaller, so more losses are large: iterate a few times.
    size, found = _LARGE_DEVIATIONS * float(deviations[:2].max()), math.inf
    for _ in range(8):
        splits = [(split_pair(pair, size), times) for pair, times in parts]
        if max(part.probability for part, _ in splits) > _MAX_RARE_PROBABILITY:
            break
        found = size
        usual = Cumulants.of([(part.usual, times) for part, times in splits])
        size = _LARGE_DEVIATIONS * float(np.sqrt(usual.at(np.array([0.0, 1.0]))[2].max()))
        if size > 0.9 * found:
            break
    return found if any(len(part.rare.p) for part, _ in split_pairs(parts, found)) else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class SplitPair:
    """Pair split into usual outcomes, with the infinite losses, and outcomes of large loss."""

    usual: DominatingPair
    rare: DominatingPair

    @property
    def usual_masses(self) -> tuple[float, float]:
        """Mass of the usual outcomes under both distributions."""
        return float(self.usual.p.sum()), float(self.usual.q.sum())

    @property
    def probability(self) -> float:
        """Probability of a large loss in one step: the larger one of both distributions."""
        return max(float(self.rare.p.sum()), float(self.rare.q.sum()))

    @property
    def relative_to_usual(self) -> DominatingPair:
        """Rare outcomes relative to the usual step that they replace: masses divided by those of the usual outcomes."""
        p, q = self.usual_masses
        return DominatingPair(self.rare.p / p, self.rare.q / q, 0.0, 0.0, self.rare.rounding)

    def max_large_losses(self, times: int) -> int:
        """Return a number of large losses in ``times`` steps that is exceeded with probability below 1e-60 under both distributions."""
        if not len(self.rare.p):
            return 0
        # More than k large losses have probability at most expected^(k+1) / (k+1)!.
        log_expected = math.log(times * self.probability)
        return next(k for k in range(times + 1) if k == times or (k + 1) * log_expected - math.lgamma(k + 2) < _NEGLIGIBLE_LOG_PROBABILITY)


def split_pair(pair: DominatingPair, size: float) -> SplitPair:
    """Split a pair into outcomes with losses up to ``size`` in absolute value, and the others."""
    far = np.abs(pair.losses) > size
    return SplitPair(
        DominatingPair(pair.p[~far], pair.q[~far], pair.p_only, pair.q_only, pair.rounding),
        DominatingPair(pair.p[far], pair.q[far], 0.0, 0.0, pair.rounding),
    )


def split_pairs(parts: Pairs, size: float) -> list[tuple[SplitPair, int]]:
    """Split the large losses from each part if they are rare and its runs are many; if all parts have few runs, from one part."""
    splits = [(split_pair(pair, size), times) for pair, times in parts]
    unsplit = [(split_pair(pair, math.inf), times) for pair, times in parts]
    rare = [(part, times) for part, times in splits if len(part.rare.p)]
    if sum(times * part.probability for part, times in rare) > _MAX_EXPECTED_LARGE or any(
        part.probability > _MAX_LARGE_PROBABILITY for part, _ in rare
    ):
        return unsplit  # the sums without large losses might have too little mass
    if len(rare) < 2:
        return splits
    separate = [part for part, times in rare if not has_few_runs(part, times)]
    separate = separate or [max(rare, key=lambda one: one[1] * one[0].probability * (one[1] > 1))[0]]
    return [one if one[0] in separate else other for one, other in zip(splits, unsplit, strict=True)]


def are_large_losses_common(parts: Pairs, size: float) -> bool:
    """Return whether large losses may be too frequent for separate peaks: then one transform of all sums is accurate enough."""
    return any(part.max_large_losses(times) > MAX_TERMS for part, times in split_pairs(parts, size))


def has_few_runs(part: SplitPair, times: int) -> bool:
    """Return whether there are so few runs that large losses leave notably fewer usual ones."""
    return times < _MANY_RUNS_PER_LARGE_LOSS * part.max_large_losses(times)
