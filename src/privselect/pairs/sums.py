"""The laws of a composed loss on its lattice: the sums without large losses, and those with some."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating import DominatingPair
from privselect.pairs.lattice import lattice_above, lattice_below
from privselect.pairs.rare import split
from privselect.pairs.tilted import Dense, convolved
from privselect.pairs.tiny import SMALLEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.pairs.lattice import LatticePair
    from privselect.pairs.rare import Split
    from privselect.pairs.resolution import Resolution

    Pairs = Sequence[tuple[DominatingPair, int]]
    Halves = Sequence[tuple[Split, int]]
    Law = tuple[Dense, float]

_MANY = 150  # runs for each large loss, from which a few usual steps more or less do not matter
_MOST_TERMS = 10  # one for each number of large losses
_SEEN = 0.1  # of a large loss: a lattice coarser than that hardly sees the usual steps at all


def composed_laws(parts: Pairs, resolution: Resolution, side: int) -> Iterator[Law]:
    """Masses that bound those composed, all together, from above (``side`` 1) or below (-1); with each law, how far it may be off."""
    halves = _split(parts, resolution.large)
    usual = _Sum([(half.usual, times) for half, times in halves], resolution.spacing, side)
    yield usual.dense, usual.slack
    rare = [(half, times) for half, times in halves if len(half.rare.p)]
    if not rare:
        return
    few = len(rare) == 1 and rare[0][0].most_large(rare[0][1]) <= _MOST_TERMS and _are_few(*rare[0])
    if few and resolution.coarse < _SEEN * resolution.large:
        yield from _by_number(halves, resolution, side)
    elif side > 0:
        yield from _at_least_one_above(halves, usual, resolution)
    else:
        yield from _at_least_one_below(halves, resolution)


def _split(parts: Pairs, size: float) -> Halves:
    """The large losses of each part apart, where its runs are many; where they are not for any part, those of the one that has most."""
    halves = [(split(pair, size), times) for pair, times in parts]
    rare = [(half, times) for half, times in halves if len(half.rare.p)]
    if len(rare) < 2:
        return halves
    apart = [half for half, times in rare if not _are_few(half, times)]
    apart = apart or [max(rare, key=lambda one: one[1] * float(one[0].rare.p.sum()) * (one[1] > 1))[0]]
    return [(half if half in apart else split(pair, math.inf), times) for (pair, times), (half, _) in zip(parts, halves, strict=True)]


def _are_few(half: Split, times: int) -> bool:
    """Whether the runs are so few that some of them being large leaves notably fewer usual ones."""
    return times < _MANY * half.most_large(times)


def _by_number(halves: Halves, resolution: Resolution, side: int) -> Iterator[Law]:
    """One law for each number of large losses: so many steps are large, the others usual, in any order."""
    (place,) = (i for i, (half, _) in enumerate(halves) if len(half.rare.p))
    half, times = halves[place]
    for large in range(1, half.most_large(times) + 1):
        left = [(other.usual, count - large if i == place else count) for i, (other, count) in enumerate(halves)]
        usual = _Sum([(pair, count) for pair, count in left if count], resolution.spacing, side)
        law, slack = _on(half.rare, resolution.coarse, side)
        log_count = math.lgamma(times + 1) - math.lgamma(large + 1) - math.lgamma(times - large + 1)
        summed = usual.on(resolution.coarse)
        dense = convolved([*summed.parts, (law, large)], side, log_count=log_count)
        yield summed.scaled(dense), usual.slack + summed.slack + large * slack


def _at_least_one_above(halves: Halves, usual: _Sum, resolution: Resolution) -> Iterator[Law]:
    """All numbers at once. A large loss stands in for one usual step; the other usual steps are dominated by all of them."""
    rare = [(*_on(half.instead, resolution.coarse, 1), times) for half, times in halves if len(half.rare.p)]
    summed = usual.on(resolution.coarse)
    dense = convolved(summed.parts, 1, [(law, times) for law, _, times in rare])
    yield dense, usual.slack + summed.slack + _slack_of_large(halves, [slack for _, slack, _ in rare])


def _at_least_one_below(halves: Halves, resolution: Resolution) -> Iterator[Law]:
    """The same from below: only so many usual steps are counted as are left if as many are large as ever matter."""
    rare = [(*_on(half.instead, resolution.coarse, -1), times) for half, times in halves if len(half.rare.p)]
    counts = [(half, times, half.most_large(times)) for half, times in halves]
    usual = _Sum([(half.usual, times - large) for half, times, large in counts if times > large], resolution.spacing, -1)
    summed = usual.on(resolution.coarse)
    dense = convolved(summed.parts, -1, [(law, times) for law, _, times in rare])
    p, q = (math.prod(half.kept[law] ** large for half, _, large in counts) for law in (0, 1))
    # More large losses than were counted have a chance below 1e-60: far less than this of all that is told.
    told = 1.0 - 1e-9
    slack = usual.slack + summed.slack + _slack_of_large(halves, [slack for _, slack, _ in rare])
    yield replace(summed, p=summed.p * p * told, q=summed.q * q * told).scaled(dense), slack


@dataclass(frozen=True, slots=True)
class _Summed:
    """A sum on a coarser lattice: as one part, or as none, and what to multiply the masses of both laws by."""

    parts: list[tuple[LatticePair, int]]
    slack: float = 0.0
    p: float = 1.0
    q: float = 1.0

    def scaled(self, dense: Dense) -> Dense:
        """The law that the part stood in."""
        return replace(dense, p=dense.p * self.p, q=dense.q * self.q)


class _Sum:
    """The composed law of some pairs on one lattice."""

    def __init__(self, parts: Pairs, spacing: float, side: int) -> None:
        laws = [(*_on(pair, spacing, side), times) for pair, times in parts]
        self._side = side
        self.slack = sum(times * slack for _, slack, times in laws)
        self._empty = not laws
        self.dense = (
            convolved([(law, times) for law, _, times in laws], side) if laws else Dense(spacing, 0, np.ones(1), np.ones(1), 0.0, 0.0)
        )

    def on(self, spacing: float) -> _Summed:
        """The same law on a coarser lattice."""
        if self._empty:
            return _Summed([])
        proper = (self.dense.p > SMALLEST) & (self.dense.q > SMALLEST)
        pair = DominatingPair(self.dense.p[proper], self.dense.q[proper])
        law, slack = _on(pair, spacing, self._side)
        # Too coarse to see anything of it: all of it is merged into one outcome.
        return _Summed([(law, 1)], slack) if len(law.q) or self._side > 0 else _Summed([], slack, float(pair.p.sum()), float(pair.q.sum()))


def _on(pair: DominatingPair, spacing: float, side: int) -> tuple[LatticePair, float]:
    law = (lattice_above if side > 0 else lattice_below)(pair, spacing)
    return law, law.slack


def _slack_of_large(halves: Halves, slacks: list[float]) -> float:
    return max(slacks) * sum(half.most_large(times) for half, times in halves)
