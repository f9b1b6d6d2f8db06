"""Distribution of a composed loss on its lattice: the part without large losses, and the parts with some."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair
from privselect.pairs.loss_lattice import lattice_lower, lattice_upper
from privselect.pairs.rare_large_losses import MAX_TERMS, has_few_runs, split_pairs
from privselect.pairs.subnormal_masses import SMALLEST
from privselect.pairs.tilted_fft import FLOOR, DenseDistribution, compose_on_lattice

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.pairs.lattice_resolution import Resolution
    from privselect.pairs.loss_lattice import LatticePair
    from privselect.pairs.rare_large_losses import SplitPair

    Pairs = Sequence[tuple[DominatingPair, int]]
    SplitParts = Sequence[tuple[SplitPair, int]]
    BoundedDistribution = tuple[DenseDistribution, float]

_LARGEST_COARSENESS = 0.1  # coarse spacing over large loss: a coarser lattice does not resolve the usual steps


def composed_distributions(parts: Pairs, resolution: Resolution, side: int) -> Iterator[BoundedDistribution]:
    """Yield distributions whose sum bounds the composed masses from above (``side`` 1) or below (-1), each with its slack."""
    splits = split_pairs(parts, resolution.large_loss)
    usual = _ComposedPart([(part.usual, times) for part, times in splits], resolution.spacing, side)
    yield usual.dense, usual.slack
    rare = [(part, times) for part, times in splits if len(part.rare.p)]
    if not rare:
        return
    few = len(rare) == 1 and has_few_runs(*rare[0]) and rare[0][0].max_large_losses(rare[0][1]) <= MAX_TERMS
    if few and resolution.coarse_spacing < _LARGEST_COARSENESS * resolution.large_loss:
        yield from _by_number_of_large_losses(splits, resolution, side)
    elif side > 0:
        yield from _at_least_one_above(splits, usual, resolution)
    else:
        yield from _at_least_one_below(splits, resolution)


def _by_number_of_large_losses(splits: SplitParts, resolution: Resolution, side: int) -> Iterator[BoundedDistribution]:
    """Yield one distribution for each number of large losses; the other steps have usual losses, in any order."""
    (place,) = (i for i, (part, _) in enumerate(splits) if len(part.rare.p))
    part, times = splits[place]
    for large in range(1, part.max_large_losses(times) + 1):
        left = [(other.usual, count - large if i == place else count) for i, (other, count) in enumerate(splits)]
        usual = _ComposedPart([(pair, count) for pair, count in left if count], resolution.spacing, side)
        rare = _LatticePart.of(part.rare, large, resolution.coarse_spacing, side)
        summed = usual.on(resolution.coarse_spacing)
        log_count = math.log(math.comb(times, large))
        dense = _compose_or_unit([*summed.parts, *rare.parts], resolution.coarse_spacing, side, log_count)
        probability = math.exp(log_count + large * math.log(part.probability))
        yield usual.missing_in(rare.scaled(summed.scaled(dense)), probability), usual.slack + summed.slack + rare.slack


def _at_least_one_above(splits: SplitParts, usual: _ComposedPart, resolution: Resolution) -> Iterator[BoundedDistribution]:
    """Yield one upper bound for all numbers of large losses: a large loss replaces a usual step, yet all usual steps are counted."""
    rare = [(*_to_lattice(part.relative_to_usual, resolution.coarse_spacing, 1), times) for part, times in splits if len(part.rare.p)]
    summed = usual.on(resolution.coarse_spacing)
    dense = compose_on_lattice(summed.parts, 1, [(pair, times) for pair, _, times in rare])
    probability = math.expm1(sum(times * math.log1p(float(max(pair.q.sum(), pair.q @ np.exp(pair.losses)))) for pair, _, times in rare))
    yield usual.missing_in(dense, probability), usual.slack + summed.slack + _slack_of_large_losses(splits, [slack for _, slack, _ in rare])


def _at_least_one_below(splits: SplitParts, resolution: Resolution) -> Iterator[BoundedDistribution]:
    """Yield one lower bound for all relevant numbers of large losses: as many usual steps as remain with the largest such number."""
    rare = [(*_to_lattice(part.relative_to_usual, resolution.coarse_spacing, -1), times) for part, times in splits if len(part.rare.p)]
    counts = [(part, times, part.max_large_losses(times)) for part, times in splits]
    usual = _ComposedPart([(part.usual, times - large) for part, times, large in counts if times > large], resolution.spacing, -1)
    summed = usual.on(resolution.coarse_spacing)
    dense = compose_on_lattice(summed.parts, -1, [(pair, times) for pair, _, times in rare])
    p, q = (math.prod(part.usual_masses[which] ** large for part, _, large in counts) for which in (0, 1))
    # Larger numbers of large losses have a probability below 1e-60: a far smaller share of any mass kept, which is above FLOOR.
    kept = 1.0 - 1e-9
    slack = usual.slack + summed.slack + _slack_of_large_losses(splits, [slack for _, slack, _ in rare])
    yield replace(summed, p=summed.p * p * kept, q=summed.q * q * kept).scaled(dense), slack


@dataclass(frozen=True, slots=True)
class _LatticePart:
    """Runs of a pair on a lattice: a part to compose, or no part and factors ``p`` and ``q`` for the masses of both distributions.

    The factors are for a lower bound on a lattice too coarse for the pair: all outcomes are merged into one.
    """

    parts: list[tuple[LatticePair, int]]
    slack: float = 0.0
    p: float = 1.0
    q: float = 1.0

    @classmethod
    def of(cls, pair: DominatingPair, times: int, spacing: float, side: int) -> _LatticePart:
        on_lattice, slack = _to_lattice(pair, spacing, side)
        if side > 0 or len(on_lattice.q):
            return cls([(on_lattice, times)], times * slack)
        return cls([], times * slack, float(pair.p.sum()) ** times, float(pair.q.sum()) ** times)

    def scaled(self, dense: DenseDistribution) -> DenseDistribution:
        """Return the distribution multiplied by the factors of this part."""
        return replace(dense, p=dense.p * self.p, q=dense.q * self.q)


class _ComposedPart:
    """Composed distribution of some pairs on one lattice."""

    def __init__(self, parts: Pairs, spacing: float, side: int) -> None:
        lattice_parts = [_LatticePart.of(pair, times, spacing, side) for pair, times in parts]
        self._side, self._empty = side, not lattice_parts
        self.slack = sum(lattice_part.slack for lattice_part in lattice_parts)
        self.dense = _compose_or_unit([part for lattice_part in lattice_parts for part in lattice_part.parts], spacing, side)
        for lattice_part in lattice_parts:
            self.dense = lattice_part.scaled(self.dense)

    def on(self, spacing: float) -> _LatticePart:
        """Return this distribution on a coarser lattice as one part, or no part if there are no steps."""
        if self._empty:
            return _LatticePart([])
        proper = (self.dense.p > SMALLEST) & (self.dense.q > SMALLEST)
        return _LatticePart.of(DominatingPair(self.dense.p[proper], self.dense.q[proper]), 1, spacing, self._side)

    def missing_in(self, dense: DenseDistribution, probability: float) -> DenseDistribution:
        """Add the mass that this factor of ``dense`` left out to the mass that ``dense`` left out, times the mass of the other factor."""
        missing = (self.dense.lost_p + self.dense.lost_q + FLOOR) * probability
        return replace(dense, lost_p=dense.lost_p + missing, lost_q=dense.lost_q + missing)


def _compose_or_unit(parts: list[tuple[LatticePair, int]], spacing: float, side: int, log_count: float = 0.0) -> DenseDistribution:
    """Compose the parts; without parts, return a single outcome of loss 0."""
    if parts:
        return compose_on_lattice(parts, side, log_count=log_count)
    return DenseDistribution(spacing, 0, np.full(1, math.exp(log_count)), np.full(1, math.exp(log_count)), 0.0, 0.0)


def _to_lattice(pair: DominatingPair, spacing: float, side: int) -> tuple[LatticePair, float]:
    on_lattice = (lattice_upper if side > 0 else lattice_lower)(pair, spacing)
    return on_lattice, on_lattice.slack


def _slack_of_large_losses(splits: SplitParts, slacks: list[float]) -> float:
    return max(slacks) * sum(part.max_large_losses(times) for part, times in splits)
