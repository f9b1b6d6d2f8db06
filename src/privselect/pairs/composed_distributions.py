"""The laws of a composed loss on its lattice: the sums without large losses, and those with some."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair
from privselect.pairs.loss_lattice import lattice_above, lattice_below
from privselect.pairs.rare_large_losses import MOST_TERMS, are_few, split_all
from privselect.pairs.subnormal_masses import SMALLEST
from privselect.pairs.tilted_fft import FLOOR, Dense, convolved

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.pairs.lattice_resolution import Resolution
    from privselect.pairs.loss_lattice import LatticePair
    from privselect.pairs.rare_large_losses import Split

    Pairs = Sequence[tuple[DominatingPair, int]]
    Halves = Sequence[tuple[Split, int]]
    Law = tuple[Dense, float]

_SEEN = 0.1  # of a large loss: a lattice coarser than that hardly sees the usual steps at all


def composed_laws(parts: Pairs, resolution: Resolution, side: int) -> Iterator[Law]:
    """Masses that bound those composed, all together, from above (``side`` 1) or below (-1); with each law, how far it may be off."""
    halves = split_all(parts, resolution.large)
    usual = _Sum([(half.usual, times) for half, times in halves], resolution.spacing, side)
    yield usual.dense, usual.slack
    rare = [(half, times) for half, times in halves if len(half.rare.p)]
    if not rare:
        return
    few = len(rare) == 1 and are_few(*rare[0]) and rare[0][0].most_large(rare[0][1]) <= MOST_TERMS
    if few and resolution.coarse < _SEEN * resolution.large:
        yield from _by_number(halves, resolution, side)
    elif side > 0:
        yield from _at_least_one_above(halves, usual, resolution)
    else:
        yield from _at_least_one_below(halves, resolution)


def _by_number(halves: Halves, resolution: Resolution, side: int) -> Iterator[Law]:
    """One law for each number of large losses: so many steps are large, the others usual, in any order."""
    (place,) = (i for i, (half, _) in enumerate(halves) if len(half.rare.p))
    half, times = halves[place]
    for large in range(1, half.most_large(times) + 1):
        left = [(other.usual, count - large if i == place else count) for i, (other, count) in enumerate(halves)]
        usual = _Sum([(pair, count) for pair, count in left if count], resolution.spacing, side)
        rare = _Coarse.of(half.rare, large, resolution.coarse, side)
        summed = usual.on(resolution.coarse)
        log_count = math.log(math.comb(times, large))
        dense = _product([*summed.parts, *rare.parts], resolution.coarse, side, log_count)
        chance = math.exp(log_count + large * math.log(half.chance))
        yield usual.missing_in(rare.scaled(summed.scaled(dense)), chance), usual.slack + summed.slack + rare.slack


def _at_least_one_above(halves: Halves, usual: _Sum, resolution: Resolution) -> Iterator[Law]:
    """All numbers at once. A large loss stands in for one usual step; the other usual steps are dominated by all of them."""
    rare = [(*_on(half.instead, resolution.coarse, 1), times) for half, times in halves if len(half.rare.p)]
    summed = usual.on(resolution.coarse)
    dense = convolved(summed.parts, 1, [(law, times) for law, _, times in rare])
    chance = math.expm1(sum(times * math.log1p(float(max(law.q.sum(), law.q @ np.exp(law.losses)))) for law, _, times in rare))
    yield usual.missing_in(dense, chance), usual.slack + summed.slack + _slack_of_large(halves, [slack for _, slack, _ in rare])


def _at_least_one_below(halves: Halves, resolution: Resolution) -> Iterator[Law]:
    """The same from below: only so many usual steps are counted as are left if as many are large as ever matter."""
    rare = [(*_on(half.instead, resolution.coarse, -1), times) for half, times in halves if len(half.rare.p)]
    counts = [(half, times, half.most_large(times)) for half, times in halves]
    usual = _Sum([(half.usual, times - large) for half, times, large in counts if times > large], resolution.spacing, -1)
    summed = usual.on(resolution.coarse)
    dense = convolved(summed.parts, -1, [(law, times) for law, _, times in rare])
    p, q = (math.prod(half.kept[law] ** large for half, _, large in counts) for law in (0, 1))
    # More large losses than were counted have a chance below 1e-60: far less than this of all that is told, which is above FLOOR.
    told = 1.0 - 1e-9
    slack = usual.slack + summed.slack + _slack_of_large(halves, [slack for _, slack, _ in rare])
    yield replace(summed, p=summed.p * p * told, q=summed.q * q * told).scaled(dense), slack


@dataclass(frozen=True, slots=True)
class _Coarse:
    """Some runs of a pair on a lattice: as a part, or as none, and what to multiply the masses of both laws by instead.

    From below, a lattice too coarse to see anything of a pair has all its outcomes merged into one.
    """

    parts: list[tuple[LatticePair, int]]
    slack: float = 0.0
    p: float = 1.0
    q: float = 1.0

    @classmethod
    def of(cls, pair: DominatingPair, times: int, spacing: float, side: int) -> _Coarse:
        law, slack = _on(pair, spacing, side)
        if side > 0 or len(law.q):
            return cls([(law, times)], times * slack)
        return cls([], times * slack, float(pair.p.sum()) ** times, float(pair.q.sum()) ** times)

    def scaled(self, dense: Dense) -> Dense:
        """The law that the part stood in."""
        return replace(dense, p=dense.p * self.p, q=dense.q * self.q)


class _Sum:
    """The composed law of some pairs on one lattice."""

    def __init__(self, parts: Pairs, spacing: float, side: int) -> None:
        laws = [_Coarse.of(pair, times, spacing, side) for pair, times in parts]
        self._side, self._empty = side, not laws
        self.slack = sum(law.slack for law in laws)
        self.dense = _product([part for law in laws for part in law.parts], spacing, side)
        for law in laws:
            self.dense = law.scaled(self.dense)

    def on(self, spacing: float) -> _Coarse:
        """The same law on a coarser lattice, as one part; as none where there are no steps at all."""
        if self._empty:
            return _Coarse([])
        proper = (self.dense.p > SMALLEST) & (self.dense.q > SMALLEST)
        return _Coarse.of(DominatingPair(self.dense.p[proper], self.dense.q[proper]), 1, spacing, self._side)

    def missing_in(self, dense: Dense, chance: float) -> Dense:
        """A law that this one is a factor of, the other having so much mass: what was left out here is missing there."""
        missing = (self.dense.lost_p + self.dense.lost_q + FLOOR) * chance
        return replace(dense, lost_p=dense.lost_p + missing, lost_q=dense.lost_q + missing)


def _product(laws: list[tuple[LatticePair, int]], spacing: float, side: int, log_count: float = 0.0) -> Dense:
    """Composed, or a single outcome of loss 0 where there is nothing to compose."""
    if laws:
        return convolved(laws, side, log_count=log_count)
    return Dense(spacing, 0, np.full(1, math.exp(log_count)), np.full(1, math.exp(log_count)), 0.0, 0.0)


def _on(pair: DominatingPair, spacing: float, side: int) -> tuple[LatticePair, float]:
    law = (lattice_above if side > 0 else lattice_below)(pair, spacing)
    return law, law.slack


def _slack_of_large(halves: Halves, slacks: list[float]) -> float:
    return max(slacks) * sum(half.most_large(times) for half, times in halves)
