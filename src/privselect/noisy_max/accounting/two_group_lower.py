"""Real instances of noisy max, from below: some scores level, their rivals level elsewhere, and the record moves the one group.

With M_n the greatest of n noises and S a group of s scores, ``P(the winner is in S) = R(x) = P(M_s - M_n > x)``, where x is how far its n
rivals are ahead. Where the record moves S up by ``gap`` against them, that is R(x - gap). The released index says at least whether it is
in S: a pair of two outcomes, dominated by the mechanism. Where s + n < m, the other scores lie so far below that they never win (a limit of
instances): for noise with an exponential tail few rivals can be worse than many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.lower_bounds import Instances
from privselect.noisy_max.accounting.max_comparison import Offsets, at_least_and_at_most, can_tell, roughly, span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from privselect.noisy_max.accounting.max_comparison import Groups
    from privselect.noisy_max.accounting.noise_accounting import Additive
    from privselect.noisy_max.accounting.score_sensitivity import Moves

    Floats = NDArray[np.float64]

_GOOD_AT = (0.1, 1e-2, 1e-4, 1e-6, 1e-9)  # deltas
_SEARCHED = 128  # offsets of each pair of groups
_KEPT = 160  # offsets of the best
_USEFUL = (1e-14, 1.0 - 1e-4)  # chances of S that are good for something
_GROWTH = 2  # from one size of S to the next
_FEWER = (2, 3, 5, 10, 30)  # scores that take part, beside all


def two_level_instances(noise: Additive, moves: Moves) -> Instances:
    """Many offsets of those groups that a rough search finds worst at one of some deltas, or over many rounds.

    None is found for noise some ten thousand times the gap: cells would be too many.
    """
    if not can_tell(noise, moves.gap):
        return Instances(np.zeros(0), np.zeros(0))
    groups = list(_groups(moves))
    tables = [roughly(noise, both, _offsets(noise, both), moves.gap) for both in groups]
    best = dict.fromkeys(int(np.argmax([worth(p, q).max() for p, q in tables])) for worth in _worths())
    found = []
    for which in best:
        offsets = _closer(_offsets(noise, groups[which]), tables[which], whole=noise.whole)
        found.append(at_least_and_at_most(noise, groups[which], offsets, moves.gap))
    moved, still = (np.concatenate(chances) for chances in zip(*found, strict=True))
    useful = (moved > still) & (still > 0.0)
    return Instances(moved[useful], still[useful])


def _groups(moves: Moves) -> Iterator[Groups]:
    """All scores in two groups of many sizes, and some of few scores; one of the two must be free to move on its own."""
    m = moves.m
    some, size = {1, m // 2}, 1
    while size <= min(m // 2, moves.together):
        some.add(size)
        size = min(_GROWTH * size, size + m // 16 + 1) if size > 3 else size + 1
    sizes = sorted({min(size, moves.together) for size in some})
    few = {(s, total - s) for total in _FEWER if total < m for s in (1, 2, total // 2, total - 1) if s < total}
    for s, n in dict.fromkeys([*((s, m - s) for s in sizes), *((m - s, s) for s in sizes), *sorted(few)]):
        if min(s, n) <= moves.together:
            yield s, n


def _offsets(noise: Additive, groups: Groups) -> Offsets:
    """From where S nearly always wins to where it nearly never does."""
    (low_s, high_s), (low_n, high_n) = (span(noise, count) for count in groups)
    first = low_s - high_n
    return Offsets(first, (high_s - low_n - first) / (_SEARCHED - 1), _SEARCHED)


def _closer(offsets: Offsets, table: tuple[Floats, Floats], *, whole: bool) -> Offsets:
    """Those that were useful, closer to each other; of whole noise whole ones."""
    moved, still = table
    useful = np.flatnonzero((still >= _USEFUL[0]) & (moved <= _USEFUL[1]))
    x = offsets.values()
    first, last = (x[useful[0]], x[useful[-1]]) if len(useful) else (x[0], x[-1])
    first, last = first - offsets.step, last + offsets.step
    step = (last - first) / (_KEPT - 1)
    if whole:
        first, step = np.floor(first), max(np.floor(step), 1.0)
    return Offsets(float(first), float(step), int(np.ceil((last - first) / step)) + 1)


def _worths() -> list[Callable[[Floats, Floats], Floats]]:
    """What an instance of chances (p, q) is good for: the epsilon at a delta, and what many rounds add up."""
    return [*(lambda p, q, delta=delta: _epsilon(p, q, delta) for delta in _GOOD_AT), _divergence]


def _epsilon(p: Floats, q: Floats, delta: float) -> Floats:
    usable = (p > delta) & (q > 0.0)
    return np.asarray(np.where(usable, np.log(np.where(usable, p - delta, 1.0)) - np.log(np.where(usable, q, 1.0)), -np.inf))


def _divergence(p: Floats, q: Floats) -> Floats:
    """Of Kullback and Leibler."""
    usable = (q > 0.0) & (p < 1.0) & (p > q)
    p, q = np.where(usable, p, 0.5), np.where(usable, q, 0.5)
    return np.asarray(np.where(usable, p * np.log(p / q) + (1.0 - p) * np.log((1.0 - p) / (1.0 - q)), -np.inf))
