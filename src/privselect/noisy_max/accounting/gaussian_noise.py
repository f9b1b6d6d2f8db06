r"""Gaussian noise on scores: bounds on the cost of each set of winners.

Neighbours differ by a set S of scores that move up by at most the gap against all others (noise of variance 1). The hockey stick at
epsilon >= 0 is the maximum, over S and over the scores, of ``P(winner in S, moved) - e^epsilon P(winner in S)``. Proofs:
docs/derivations/noisy_max.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.gaussian import Gaussian, gaussian_bracket, gaussian_delta_upper
from privselect.noisy_max.accounting.lower_bounds import Instances
from privselect.noisy_max.accounting.noise_accounting import NoiseAccounting, accounting_of
from privselect.noisy_max.accounting.two_group_gaussian import (
    LARGEST_SHIFT,
    ROUNDING,
    SMALLEST_PROBABILITY,
    SMALLEST_SHIFT,
    two_group_profile,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.accounting.noise_accounting import ScoreChange
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]

# The maximum of up to 58 normals of variance 1, with any means, has a log-concave density (**Two levels**, lemma).
PROVED_GROUP_SIZE = 58
# Sizes of a group, or of its complement, that are computed. A size between two of them costs at most ``D_1`` more per extra winner.
_SIZES = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, PROVED_GROUP_SIZE)
_SIZES_OF_MANY, _MANY = (1, 20, 39, PROVED_GROUP_SIZE), 500
_WORST_SHARES = (0.5, 0.6, 0.7, 0.76, 0.83)  # of the scores, that move: one of them is near the worst
_UP = 1.0 + 1e-11  # rounding of a difference of normal tails, a sum of some sixty of them, and their products


@accounting_of.register(Gaussian)
@dataclass(frozen=True, slots=True)
class GaussianAccounting(NoiseAccounting):
    """Accounting of noise N(0, sigma^2)."""

    noise: Gaussian

    @property
    def single_release(self) -> Mechanism:
        """The Gaussian mechanism."""
        return self.noise

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the bracket of the Gaussian mechanism with sensitivity ``gap``."""
        return gaussian_bracket(gap / self.noise.sigma)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return the closed form, rounded up."""
        shift = gap / self.noise.sigma
        with np.errstate(over="ignore"):  # for tiny noise the divergence is practically infinite
            return np.asarray(0.5 * alpha * shift * shift * (1.0 + 4e-15))

    def survival(self, x: Floats) -> Floats:
        """Return the normal tail."""
        return np.asarray(ndtr(-x / self.noise.sigma))

    def cdf(self, x: Floats) -> Floats:
        """Return the normal distribution function."""
        return np.asarray(ndtr(x / self.noise.sigma))

    def two_score_mechanism(self, gap: int) -> Mechanism:
        """Return the Gaussian mechanism on the difference of two noisy scores.

        The winner of two shows on which side of an offset the difference lies, which at one epsilon is the best test.
        """
        # Rounded down: less noise leaks more.
        return replace(self.noise, sigma=math.nextafter(self.noise.sigma * math.sqrt(2.0) / gap * (1.0 - 4e-16), 0.0))

    def index_delta(self, change: ScoreChange, epsilon: Floats) -> Floats:
        """Return the bound over sets of winners."""
        return two_group_delta(self._in_deviations(change), epsilon)

    def instances(self, change: ScoreChange) -> Instances:
        """Return scores on two levels, at many offsets."""
        unit = self._in_deviations(change)
        if not SMALLEST_SHIFT <= unit.gap <= LARGEST_SHIFT:
            return Instances(np.zeros(0), np.zeros(0))
        found = [two_group_profile(unit.m, s, unit.gap) for s in _sizes_to_try(unit)]
        moved, unmoved = (np.concatenate([getattr(profile, name) for profile in found]) for name in ("moved", "unmoved"))
        return Instances(moved * (1.0 - ROUNDING), unmoved * (1.0 + ROUNDING) + 1e-20 * SMALLEST_PROBABILITY)

    def _in_deviations(self, change: ScoreChange) -> ScoreChange:
        """Return the change in units of sigma, rounded up."""
        return replace(change, gap=math.nextafter(change.gap / self.noise.sigma, math.inf))


def _sizes_to_try(change: ScoreChange) -> list[int]:
    if change.m <= 2 * PROVED_GROUP_SIZE + 1:
        return list(change.group_sizes())  # the sizes that the upper bound uses
    if change.changed >= change.m // 2:
        return [int(share * change.m) for share in _WORST_SHARES]
    few = [2**power for power in range(change.changed.bit_length())]
    return [*few, change.changed, *(change.m - s for s in [*few, change.changed])]


def two_group_delta(change: ScoreChange, epsilon: Floats) -> Floats:
    r"""Return the hockey stick of Gaussian noisy max at each epsilon >= 0, rounded up.

    Claim: for a set of s winners with ``min(s, m-s) <= 58`` the worst scores are on two levels: ``delta_S = D_s(e)``, the profile of one
    number with the noise ``M_s - M_{m-s}``. The maximum over s is exact up to m = 117. For larger m, the other s are bounded
    by **Projected** and by sums over parts of 58 and of 1 winners.

    Holds when the noise is Gaussian, independent and of one variance. Label: **Two levels**.
    """
    if change.gap > LARGEST_SHIFT:
        return np.ones_like(epsilon)
    change = replace(change, gap=max(change.gap, SMALLEST_SHIFT))  # leaks at least as much
    if min(change.changed, change.m // 2) <= PROVED_GROUP_SIZE:
        return np.asarray(np.maximum.reduce([two_group_profile(change.m, s, change.gap).delta(epsilon) for s in change.group_sizes()]))
    single = one_rival_delta(change, epsilon)
    bounds = []
    for before, few in pairwise((0, *(_SIZES if change.m < _MANY else _SIZES_OF_MANY))):
        groups = two_group_profile(change.m, change.m - few, change.gap).delta(epsilon) + (few - before - 1) * single
        bounds.append(np.minimum(groups, _projected(change, few, epsilon)))
    for few, after in pairwise((*(_SIZES if change.m < _MANY else (1,)), PROVED_GROUP_SIZE + 1)):
        groups = two_group_profile(change.m, few, change.gap).delta(epsilon) + (after - few - 1) * single
        bounds.append(np.minimum(groups, _projected(change, after - 1, epsilon)))
    block = two_group_profile(change.m, PROVED_GROUP_SIZE, change.gap).delta(epsilon)

    def in_blocks(s: Floats) -> Floats:
        """Return one block of 58 winners plus single winners, or as many blocks as fit."""
        one_block = block + (s - PROVED_GROUP_SIZE) * single
        return np.asarray(np.minimum(one_block, s // PROVED_GROUP_SIZE * block + (PROVED_GROUP_SIZE - 1) * single))

    return np.asarray(np.maximum.reduce([_over_sets(change, change.m - PROVED_GROUP_SIZE - 1, in_blocks, epsilon), *bounds]) * _UP)


def one_rival_delta(change: ScoreChange, epsilon: Floats) -> Floats:
    r"""Return the largest cost of a single winner at each epsilon >= 0, rounded up.

    Claim: ``delta_{i} <= D_1(e) = max_c integral [Q(t - gap) - e^e Q(t)] d Phi(t-c)^{m-1}``, Q the normal tail: the rivals' maximum is
    least dispersed if their means are equal, and the integrand is unimodal. A set of s winners costs at most ``s D_1``.

    Holds when the noise is Gaussian; for Laplace noise it is false. Label: **One rival**.
    """
    if change.gap > LARGEST_SHIFT:
        return np.ones_like(epsilon)
    return two_group_profile(change.m, 1, max(change.gap, SMALLEST_SHIFT)).delta(epsilon)


def projected_delta(change: ScoreChange, epsilon: Floats) -> Floats:
    r"""Return the hockey stick at each epsilon >= 0, rounded up, as a maximum over sets of winners.

    Claim: ``delta_S <= min( delta_Gauss(gap sqrt(s(m-s)/m)), s D_1 )``; the maximum over s is a bound. The winner depends only on
    differences of the noisy scores, so the part of the move that all scores share can be left out.

    Holds when the noise is Gaussian. Label: **Projected**.
    """
    single = one_rival_delta(change, epsilon)
    return _over_sets(change, change.m - 1, lambda s: np.asarray(s * single * _UP), epsilon)


def _projected(change: ScoreChange, s: float | Floats, epsilon: Floats) -> Floats:
    """Return the projected Gaussian profile of a set of s scores, which is that of its complement."""
    share = np.asarray(s) * (change.m - np.asarray(s)) / change.m
    return gaussian_delta_upper(change.gap * np.sqrt(share) * (1.0 + 1e-15), epsilon)


def _over_sets(change: ScoreChange, last: int, pieces: Callable[[Floats], Floats], epsilon: Floats) -> Floats:
    """Return the maximum of ``min(projected Gaussian, pieces(s))`` over s up to ``last`` (>= m/2); the pieces increase with s.

    Up to m/2 both increase with s, so their maximum is at m/2. From there the Gaussian decreases, and the crossing decides.
    """
    low, high = np.full(epsilon.shape, float(change.m // 2)), np.full(epsilon.shape, last + 1.0)
    start = np.minimum(_projected(change, low, epsilon), pieces(low))
    crossed = pieces(low) > _projected(change, low, epsilon)  # then the maximum is at m/2
    while np.any(high - low > 1.0):
        middle = np.floor(0.5 * (low + high))
        above = pieces(middle) > _projected(change, middle, epsilon)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(
        np.where(crossed, start, np.maximum(pieces(low), _projected(change, np.minimum(high, float(last)), epsilon) * (high <= last)))
    )
