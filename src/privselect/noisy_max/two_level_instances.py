"""Real instances of noisy max, from below: some scores level, their rivals level elsewhere, and the record moves the one group.

With M_n the greatest of n noises and S a group of s scores, ``P(the winner is in S) = R(x) = P(M_s - M_n > x)``, where x is how far its n
rivals are ahead. Where the record moves S up by ``gap`` against them, that is R(x - gap). The released index says at least whether it is
in S: a pair of two outcomes, dominated by the mechanism. Where s + n < m, the other scores lie so far below that they never win (a limit of
instances): for noise with an exponential tail few rivals can be worse than many.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.level_chances import at_least_and_at_most, roughly, span
from privselect.noisy_max.two_outcomes import two_outcomes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike, NDArray

    from privselect.noisy_max.additive import Additive
    from privselect.noisy_max.level_chances import Groups
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]
    Worth = Callable[[Floats, Floats], Floats]

_DELTAS = (1e-2, 1e-4, 1e-6, 1e-9)
_OFFSETS = 128  # x in a first search
_CLOSER = 33  # x in a second, around the best of the first
_GROWTH = 2  # from one size of S to the next
_FEWER = (2, 3, 5, 10, 30)  # scores that take part, beside all


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """``groups``: how many scores on one level, and how many on another that is ahead by ``offset``."""

    groups: Groups
    offset: float


def two_level_pairs(noise: Additive, m: int, gap: int, groups: Sequence[Groups] | None = None) -> tuple[DominatingPair, ...]:
    """A handful of instances: the worst found at deltas of 1e-2, 1e-4, 1e-6 and 1e-9, and the one that tells most over many rounds.

    ``groups`` are the sizes (s, n) to try, where not all may move; none is found for noise some hundred thousand times the gap.
    """
    worths: list[Worth] = [lambda p, q, delta=delta: _epsilon(p, q, delta) for delta in _DELTAS]  # type: ignore[misc]
    found = dict.fromkeys(_search(noise, gap, (*worths, _divergence), groups or _groups(m)))
    chances = [instance_chances(noise, gap, levels) for levels in found]
    return tuple(two_outcomes(high, low) for high, low in chances if high > low > 0.0)


def two_level_delta(noise: Additive, m: int, gap: int, epsilon: ArrayLike, groups: Sequence[Groups] | None = None) -> Floats:
    """The greatest delta found at each epsilon >= 0, as a lower bound on that of noisy max."""
    eps = np.asarray(epsilon, dtype=np.float64)
    factors = np.exp(np.minimum(eps.ravel(), 700.0)).tolist()
    worths: list[Worth] = [lambda p, q, factor=factor: p - factor * q for factor in factors]  # type: ignore[misc]
    found = dict.fromkeys(_search(noise, gap, worths, groups or _groups(m)))
    best = np.zeros(eps.shape)
    for levels in found:
        high, low = instance_chances(noise, gap, levels)
        best = np.maximum(best, two_outcomes(high, low).hockey_stick(eps, side=-1))
    return best


@lru_cache(maxsize=256)
def instance_chances(noise: Additive, gap: int, levels: TwoLevels) -> tuple[float, float]:
    """The chance that the winner is in S: at least so much where S has moved up, at most so much where it has not."""
    return at_least_and_at_most(noise, levels.groups, levels.offset, gap)


def _search(noise: Additive, gap: int, worths: Sequence[Worth], groups: Sequence[Groups]) -> list[TwoLevels]:
    """For each worth the best instance on a grid, and then closer by; what is found is only near the best, but real."""
    grids = [_offsets(noise, *both) for both in groups]
    tables = [roughly(noise, both, grid, gap) for both, grid in zip(groups, grids, strict=True)]
    found: list[TwoLevels] = []
    for worth in worths:
        values = np.array([worth(p, q) for p, q in tables])
        which, place = np.unravel_index(int(np.argmax(values)), values.shape)
        both, grid = groups[which], grids[which]
        step = grid[1] - grid[0]
        near = np.linspace(grid[place] - step, grid[place] + step, _CLOSER)
        best = near[np.argmax(worth(*roughly(noise, both, near, gap)))]
        if noise.whole:
            near = np.floor(best) + np.arange(2.0)
            best = near[np.argmax(worth(*roughly(noise, both, near, gap)))]
        found.append(TwoLevels(both, float(best)))
    return found


def _groups(m: int) -> tuple[Groups, ...]:
    """All scores in two groups of many sizes, and some of few scores."""
    few = {(s, total - s) for total in _FEWER if total < m for s in (1, 2, total // 2, total - 1) if s < total}
    return (*((s, m - s) for s in _sizes(m)), *sorted(few))


def _sizes(m: int) -> tuple[int, ...]:
    """1, 2, 3, 4 and on by a factor, and the same from the other end."""
    some, size = {1, m // 2}, 1
    while size <= m // 2:
        some.add(size)
        size = min(_GROWTH * size, size + m // 16 + 1) if size > 3 else size + 1
    return tuple(sorted(some | {m - size for size in some}))


def _offsets(noise: Additive, size: int, rivals: int) -> Floats:
    """From where S nearly always wins to where it nearly never does."""
    (low_s, high_s), (low_n, high_n) = span(noise, size), span(noise, rivals)
    return np.linspace(low_s - high_n, high_s - low_n, _OFFSETS)


def _epsilon(p: Floats, q: Floats, delta: float) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where((p > delta) & (q > 0.0), np.log(np.maximum(p - delta, 0.0)) - np.log(q), -np.inf))


def _divergence(p: Floats, q: Floats) -> Floats:
    """Of Kullback and Leibler: what many rounds add up."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q))
    return np.asarray(np.where((q > 0.0) & (p < 1.0) & (p > q), value, -np.inf))
