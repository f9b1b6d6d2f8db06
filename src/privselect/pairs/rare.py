"""Steps that hardly ever have a large loss: composed apart, by how often it came.

Where a single loss can be many times the deviation of the sum of all others, no tilt makes the composed law one hill: between the hill
without large losses and that with one there is a valley, and rounding fills it. Each number of large losses alone gives one hill again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.cumulants import Cumulants
from privselect.pairs.dominating import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Pairs = Sequence[tuple[DominatingPair, int]]

_FAR = 4.0  # deviations of the sum beyond which a single loss is large
_JUMP = 8.0  # times which the deviation at the ends must be that in the middle for the split to pay
_RARE = 0.5  # expected number of large losses up to which they are rare
_MOST_TERMS = 40
_DEEP_SHARE = 2.0 / 3.0  # of the digits of the floor: where the valley begins below that, it does not matter


@dataclass(frozen=True, slots=True)
class Term:
    """Composed outcomes with some number of large losses: ``e^log_count`` ways to place them, and in each what comes how often."""

    log_count: float
    usual: Pairs
    rare: Pairs


def large_loss(parts: Pairs, floor: float) -> float:
    """The size from which a loss is composed apart; infinite where none need be."""
    cumulants = Cumulants([(np.log(pair.q), pair.losses, times) for pair, times in parts])
    depth = -_DEEP_SHARE * math.log(floor)
    tilts = np.array([0.0, 1.0, cumulants.low_end(depth)[0], cumulants.high_end(depth)[0]])
    deviations = np.sqrt(np.maximum(cumulants.at(tilts)[2], 0.0))
    usual = float(deviations[:2].max())
    if deviations[2:].max() <= _JUMP * usual:
        return math.inf
    size = _FAR * usual
    return size if 0.0 < _expected(parts, size) <= _RARE else math.inf


def terms(parts: Pairs, size: float, floor: float) -> tuple[list[Term], float]:
    """One term for each number of large losses, and a bound on the mass, under either law, of all that is left out."""
    expected = _expected(parts, size) if size < math.inf else 0.0
    if not expected:
        return [Term(0.0, parts, ())], 0.0
    most = next(k for k in range(1000) if (k + 1) * math.log(expected) - math.lgamma(k + 2) < math.log(floor))
    split = [(_part(pair, size, large=False), _part(pair, size, large=True), times) for pair, times in parts]
    found = [_term(split, numbers) for numbers in _placed([times if len(rare.p) else 0 for _, rare, times in split], most)]
    if len(found) > _MOST_TERMS:
        return [Term(0.0, parts, ())], 0.0
    return found, floor


def _term(split: list[tuple[DominatingPair, DominatingPair, int]], numbers: tuple[int, ...]) -> Term:
    counts = [(*one, number) for one, number in zip(split, numbers, strict=True)]
    return Term(
        sum(math.lgamma(times + 1) - math.lgamma(number + 1) - math.lgamma(times - number + 1) for _, _, times, number in counts),
        [(usual, times - number) for usual, _, times, number in counts if times > number],
        [(rare, number) for _, rare, _, number in counts if number],
    )


def _placed(limits: list[int], most: int) -> Iterator[tuple[int, ...]]:
    """All ways to have up to ``most`` in all, and no more than its limit of each."""
    if not limits:
        yield ()
        return
    for number in range(min(limits[0], most) + 1):
        for rest in _placed(limits[1:], most - number):
            yield (number, *rest)


def _part(pair: DominatingPair, size: float, *, large: bool) -> DominatingPair:
    kept = (np.abs(pair.losses) > size) == large
    leaks = (0.0, 0.0) if large else (pair.p_only, pair.q_only)
    return DominatingPair(pair.p[kept], pair.q[kept], *leaks, pair.rounding)


def _expected(parts: Pairs, size: float) -> float:
    """How many large losses are expected, under that law which has more."""
    far = [(np.abs(pair.losses) > size, pair, times) for pair, times in parts]
    return max(
        sum(times * float(pair.p[large].sum()) for large, pair, times in far),
        sum(times * float(pair.q[large].sum()) for large, pair, times in far),
    )
