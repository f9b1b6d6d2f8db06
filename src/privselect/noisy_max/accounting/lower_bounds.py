"""Lower bounds on noisy max from concrete scores and changes of them.

Some scores, the group S, share one level, and their rivals share another. The record moves one group. With M_n the maximum of n noises and
S a group of s scores, ``P(the winner is in S) = R(x) = P(M_s - M_n > x)``, where x is how far the n rivals are ahead. If the record
moves S up by ``gap`` against them, the probability is R(x - gap). The released index reveals at least whether the winner is in S: a pair
with two outcomes, which the mechanism dominates. If s + n < m, the other scores lie so far below that they never win (a limit of
instances). For noise with an exponential tail, few rivals can be worse than many.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.max_comparison import (
    Offsets,
    estimate_win_probabilities,
    is_resolvable,
    range_of_maximum,
    win_probability_bounds,
)
from privselect.pairs import DominatingPair

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.noisy_max.accounting.max_comparison import GroupSizes
    from privselect.noisy_max.accounting.noise_accounting import NoiseAccounting, ScoreChange

    Floats = NDArray[np.float64]

_LARGEST_P = 1.0 - 1e-6
_P_ROUNDING = 1e-9  # of 1 - p, where p is at most _LARGEST_P
_PROBABILITIES = (0.5, 0.3, 0.15, 0.06, 0.02, 5e-3, 1e-3, 2e-4, 4e-5, 8e-6, 1e-6, 1e-9)  # of the unmoved group
_ORDERS = (2.0, 8.0, 32.0)  # over many rounds the leak follows the Renyi divergence of some order
_TARGET_DELTAS = (0.1, 1e-2, 1e-4, 1e-6, 1e-9)
_SEARCHED = 128  # offsets of each pair of groups
_KEPT = 160  # offsets of the best pair of groups
_USEFUL = (1e-14, 1.0 - 1e-4)  # range of useful probabilities of S
_GROWTH = 2  # factor from one size of S to the next
_SMALL_TOTALS = (2, 3, 5, 10, 30)  # numbers of competing scores, in addition to all m


@dataclass(frozen=True, slots=True, eq=False)
class Instances:
    """For each instance, the probability that its group wins: ``moved`` rounded down, ``unmoved`` rounded up."""

    moved: Floats
    unmoved: Floats

    def delta(self, epsilon: Floats) -> Floats:
        """Return the largest hockey stick of all instances at each epsilon >= 0."""
        flat = np.ravel(epsilon)
        values = np.array([(self.moved - np.exp(e) * self.unmoved).max(initial=0.0) for e in np.minimum(flat, 700.0)])
        return values.reshape(np.shape(epsilon))

    def epsilon(self, delta: Floats) -> Floats:
        """Return the largest epsilon >= 0 at which some instance still exceeds each delta."""
        flat = np.ravel(delta)
        with np.errstate(divide="ignore"):
            values = np.array([(np.log(np.maximum(self.moved - d, 0.0)) - np.log(self.unmoved)).max(initial=0.0) for d in flat])
        return (values * (1.0 - 1e-14)).reshape(np.shape(delta))

    def as_pairs(self) -> tuple[DominatingPair, ...]:
        """Return a few instances as pairs: the best at some probabilities of the group, and the best over many rounds."""
        p, q = self.moved, self.unmoved
        usable = (p > q) & (q > 0.0) & (p < 1.0)
        p, q = p[usable], q[usable]
        if not len(p):
            return ()
        with np.errstate(divide="ignore", over="ignore"):
            best = [int(np.argmax(np.where(q <= probability, p, 0.0))) for probability in _PROBABILITIES]
            for a in _ORDERS:
                moments = np.logaddexp(a * np.log(p) + (1.0 - a) * np.log(q), a * np.log1p(-p) + (1.0 - a) * np.log1p(-q))
                best.append(int(np.argmax(moments)))
        return tuple(binary_pair(float(p[i]), float(q[i])) for i in dict.fromkeys(best))


def binary_pair(high: float, low: float) -> DominatingPair:
    """Return the pair of an event with probability >= ``high`` under the first distribution and <= ``low`` under the second.

    Lowering ``high`` or raising ``low``, with high >= low, corresponds to mixing with a coin flip: the pair stays dominated.
    """
    first = min(high, _LARGEST_P)
    if not first > low > 0.0:
        return DominatingPair(np.ones(1), np.ones(1))
    return DominatingPair(np.array([1.0 - first, first]), np.array([1.0 - low, low]), rounding=_P_ROUNDING)


def two_group_instances(noise: NoiseAccounting, change: ScoreChange) -> Instances:
    """Return many offsets of those group sizes that a rough search finds worst at some delta or over many rounds.

    Returns no instances if the noise is more than about ten thousand times the gap, because too many cells would be needed.
    """
    if not is_resolvable(noise, change.gap):
        return Instances(np.zeros(0), np.zeros(0))
    groups = list(_group_sizes(change))
    tables = [estimate_win_probabilities(noise, both, _offsets(noise, both), change.gap) for both in groups]
    best = dict.fromkeys(int(np.argmax([objective(p, q).max() for p, q in tables])) for objective in _objectives())
    found = []
    for which in best:
        offsets = _finer_offsets(_offsets(noise, groups[which]), tables[which], integer=noise.integer)
        found.append(win_probability_bounds(noise, groups[which], offsets, change.gap))
    moved, unmoved = (np.concatenate(probabilities) for probabilities in zip(*found, strict=True))
    useful = (moved > unmoved) & (unmoved > 0.0)
    return Instances(moved[useful], unmoved[useful])


def _group_sizes(change: ScoreChange) -> Iterator[GroupSizes]:
    """Yield splits of all m scores into two groups, and splits of few scores; one of the two groups must be able to move alone."""
    m = change.m
    some, size = {1, m // 2}, 1
    while size <= min(m // 2, change.changed):
        some.add(size)
        size = min(_GROWTH * size, size + m // 16 + 1) if size > 3 else size + 1
    sizes = sorted({min(size, change.changed) for size in some})
    few = {(s, total - s) for total in _SMALL_TOTALS if total < m for s in (1, 2, total // 2, total - 1) if s < total}
    for s, n in dict.fromkeys([*((s, m - s) for s in sizes), *((m - s, s) for s in sizes), *sorted(few)]):
        if min(s, n) <= change.changed:
            yield s, n


def _offsets(noise: NoiseAccounting, groups: GroupSizes) -> Offsets:
    """Return offsets from almost certain victory of S to almost certain defeat."""
    (low_s, high_s), (low_n, high_n) = (range_of_maximum(noise, count) for count in groups)
    first = low_s - high_n
    return Offsets(first, (high_s - low_n - first) / (_SEARCHED - 1), _SEARCHED)


def _finer_offsets(offsets: Offsets, table: tuple[Floats, Floats], *, integer: bool) -> Offsets:
    """Return a finer grid over the useful offsets; on integers if the noise is integer."""
    moved, unmoved = table
    useful = np.flatnonzero((unmoved >= _USEFUL[0]) & (moved <= _USEFUL[1]))
    x = offsets.values()
    first, last = (x[useful[0]], x[useful[-1]]) if len(useful) else (x[0], x[-1])
    first, last = first - offsets.step, last + offsets.step
    step = (last - first) / (_KEPT - 1)
    if integer:
        first, step = np.floor(first), max(np.floor(step), 1.0)
    return Offsets(float(first), float(step), int(np.ceil((last - first) / step)) + 1)


def _objectives() -> list[Callable[[Floats, Floats], Floats]]:
    """Return what to maximise over instances (p, q): epsilon at some deltas, and the divergence that adds up over rounds."""
    return [*(lambda p, q, delta=delta: _epsilon(p, q, delta) for delta in _TARGET_DELTAS), _kl_divergence]


def _epsilon(p: Floats, q: Floats, delta: float) -> Floats:
    usable = (p > delta) & (q > 0.0)
    return np.asarray(np.where(usable, np.log(np.where(usable, p - delta, 1.0)) - np.log(np.where(usable, q, 1.0)), -np.inf))


def _kl_divergence(p: Floats, q: Floats) -> Floats:
    usable = (q > 0.0) & (p < 1.0) & (p > q)
    p, q = np.where(usable, p, 0.5), np.where(usable, q, 0.5)
    return np.asarray(np.where(usable, p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), -np.inf))
