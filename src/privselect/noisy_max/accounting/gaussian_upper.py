r"""Gaussian noise: what each set of winners can cost, from above.

Neighbours differ by a set S of scores that move up by at most the gap against all others (noise of variance 1), and the hockey stick at
epsilon >= 0 is the greatest, over S and over the scores, of ``P(winner in S, moved) - e^epsilon P(winner in S)``. Proofs:
docs/derivations/noisy_max.md.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from privselect.mechanisms.gaussian import gaussian_delta_above
from privselect.noisy_max.accounting.two_group_gaussian import LARGEST_SHIFT, LEAST_SHIFT, two_levels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.noisy_max.accounting.score_sensitivity import Moves

    Floats = NDArray[np.float64]

# The greatest of so many normals of variance 1, whatever their means, has a log-concave density (**Two levels**, lemma).
PROVED = 58
# Sets that leave out so few scores, or have so few, are computed. Those between cost at most ``D_1`` more for each winner more.
_LEFT_OUT = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, PROVED)
_LEFT_OUT_OF_MANY, _MANY = (1, 20, 39, PROVED), 500
_UP = 1.0 + 1e-11  # of a difference of normal tails, a sum of some sixty of them, and their products


def two_levels_delta(moves: Moves, epsilon: Floats) -> Floats:
    r"""The hockey stick of Gaussian noisy max at each epsilon >= 0, from above.

    Claim: for a set of s winners with ``min(s, m-s) <= 58`` the worst scores are on two levels: ``delta_S = D_s(e)``, the profile of one
    number with the noise ``M_s - M_{m-s}``. The greatest over s is exact up to m = 117. Above that it is at most the greatest of those that
    have, or leave out, 58 scores or fewer, and, for all others, of **Projected** and of sums over parts of 58 winners and of single ones.

    Holds when the noise is Gaussian, independent and of one variance. Label: **Two levels**.
    """
    if moves.gap > LARGEST_SHIFT:
        return np.ones_like(epsilon)
    moves = replace(moves, gap=max(moves.gap, LEAST_SHIFT))  # which leaks at least as much
    if min(moves.together, moves.m // 2) <= PROVED:
        return np.asarray(np.maximum.reduce([two_levels(moves.m, s, moves.gap).delta(epsilon) for s in moves.sizes()]))
    single = one_rival_delta(moves, epsilon)
    ends = []
    for before, few in pairwise((0, *(_LEFT_OUT if moves.m < _MANY else _LEFT_OUT_OF_MANY))):
        levels = two_levels(moves.m, moves.m - few, moves.gap).delta(epsilon) + (few - before - 1) * single
        ends.append(np.minimum(levels, _projected(moves, few, epsilon)))
    for few, after in pairwise((*(_LEFT_OUT if moves.m < _MANY else (1,)), PROVED + 1)):
        levels = two_levels(moves.m, few, moves.gap).delta(epsilon) + (after - few - 1) * single
        ends.append(np.minimum(levels, _projected(moves, after - 1, epsilon)))
    block = two_levels(moves.m, PROVED, moves.gap).delta(epsilon)

    def in_blocks(s: Floats) -> Floats:
        """One block of 58 winners and the rest one by one, or as many blocks as there are."""
        return np.asarray(np.minimum(block + (s - PROVED) * single, s // PROVED * block + (PROVED - 1) * single))

    return np.asarray(np.maximum.reduce([_over_sets(moves, moves.m - PROVED - 1, in_blocks, epsilon), *ends]) * _UP)


def one_rival_delta(moves: Moves, epsilon: Floats) -> Floats:
    r"""What a single winner can cost at each epsilon >= 0, from above.

    Claim: ``delta_{i} <= D_1(e) = max_c integral [Q(t - gap) - e^e Q(t)] d Phi(t-c)^{m-1}``, Q the normal tail: the rivals' greatest is
    least dispersed where their means are equal, and the integrand is unimodal. A set of s winners costs at most ``s D_1``.

    Holds when the noise is Gaussian; for Laplace noise it is false. Label: **One rival**.
    """
    if moves.gap > LARGEST_SHIFT:
        return np.ones_like(epsilon)
    return two_levels(moves.m, 1, max(moves.gap, LEAST_SHIFT)).delta(epsilon)


def projected_delta(moves: Moves, epsilon: Floats) -> Floats:
    r"""The hockey stick at each epsilon >= 0, from above, by sets of winners.

    Claim: ``delta_S <= min( delta_Gauss(gap sqrt(s(m-s)/m)), s D_1 )``; the greatest over s is a bound. The winner depends only on
    differences of the noisy scores, so what all scores have in common can be left out of the move.

    Holds when the noise is Gaussian. Label: **Projected**.
    """
    single = one_rival_delta(moves, epsilon)
    return _over_sets(moves, moves.m - 1, lambda s: np.asarray(s * single * _UP), epsilon)


def _projected(moves: Moves, s: float | Floats, epsilon: Floats) -> Floats:
    """The projected Gaussian of a set of s, which is that of its complement."""
    share = np.asarray(s) * (moves.m - np.asarray(s)) / moves.m
    return gaussian_delta_above(moves.gap * np.sqrt(share) * (1.0 + 1e-15), epsilon)


def _over_sets(moves: Moves, last: int, pieces: Callable[[Floats], Floats], epsilon: Floats) -> Floats:
    """The greatest of ``min(projected Gaussian, pieces(s))`` over s up to ``last`` (>= m/2), where pieces are bounds that grow with s.

    Up to m/2 both grow with s, so m/2 is the greatest of those; from there on the Gaussian falls, and the crossing decides.
    """
    low, high = np.full(epsilon.shape, float(moves.m // 2)), np.full(epsilon.shape, last + 1.0)
    start = np.minimum(_projected(moves, low, epsilon), pieces(low))
    crossed = pieces(low) > _projected(moves, low, epsilon)  # then the middle is the greatest of all
    while np.any(high - low > 1.0):
        middle = np.floor(0.5 * (low + high))
        above = pieces(middle) > _projected(moves, middle, epsilon)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(
        np.where(crossed, start, np.maximum(pieces(low), _projected(moves, np.minimum(high, float(last)), epsilon) * (high <= last)))
    )
