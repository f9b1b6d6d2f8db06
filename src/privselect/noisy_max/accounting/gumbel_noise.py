"""Gumbel noise on scores: the exponential mechanism, whose leak is known exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.lower_bounds import Instances
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, NoiseAccounting, accounting_of
from privselect.noisy_max.index_only_noise import Gumbel
from privselect.pairs import Bracket, connect_the_dots, merge_cells, pair_from_profile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.noisy_max.accounting.noise_accounting import ScoreChange

    Floats = NDArray[np.float64]

_CELLS = 2000
_FARTHEST = 45.0  # e^-45 is beyond the last digit of a probability
_LARGEST = 340.0  # of gap/scale: the square of e^340 is still a float
# Values of 1 - epsilon/most. The profile meets 0 as a parabola, so more knots lie near that point.
_SHARES = np.concatenate([np.linspace(1.0, 0.1, 1000, endpoint=False), np.geomspace(0.1, 1e-9, 1000), [0.0]])
_SMALLEST_STEP = 1e-10
_ROUNDING = 1e-12


@accounting_of.register(Gumbel)
@dataclass(frozen=True, slots=True)
class GumbelAccounting(NoiseAccounting):
    """Accounting of noise with density ``exp(-z - exp(-z))/scale``, ``z = x/scale``."""

    noise: Gumbel

    def _largest_loss(self, gap: int) -> float:
        """Return the largest loss, rounded up."""
        return math.nextafter(gap / self.noise.scale, math.inf)

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the bracket in ``u = exp(-z)``, up to cells of the loss.

        In u the distributions are exponential with rates ``t = e^g`` and 1, ``g = gap/scale``, and the loss is ``g - (t-1) u``. It is at
        most g, and values far below have negligible probability.
        """
        most = self._largest_loss(gap)
        if most > _LARGEST:
            return ALL_LEAKS
        rate, excess = math.exp(most), math.expm1(most)
        lowest = min(_FARTHEST, 2.0 * _LARGEST / excess)  # of u, where the loss is about -680
        middle = min(2.0 * most / excess, lowest)  # where the loss is -g; below, coarser cells suffice
        u = np.append(np.linspace(0.0, middle, _CELLS + 1), np.geomspace(middle, lowest, _CELLS // 4 + 1)[1:] if lowest > middle else [])
        u = u[::-1]
        cell_p, cell_q = _exponential_cells(u * rate), _exponential_cells(u)
        upper = connect_the_dots(most - excess * u, cell_p, cell_q)
        return Bracket(upper, (merge_cells(cell_p, cell_q),), "remove")

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return the closed form ``g - log(1 + (a-1)(1 - e^-g))/(a-1)``, rounded up."""
        most, power = self._largest_loss(gap), alpha - 1.0
        # The difference of two numbers up to g has a rounding error of a few units of g.
        return np.asarray(most * (1.0 + 4e-15) - np.log1p(power * -math.expm1(-most)) / power)

    def survival(self, x: Floats) -> Floats:
        """Return ``1 - exp(-exp(-z))``."""
        return np.asarray(-np.expm1(-_exp(-x / self.noise.scale)))

    def cdf(self, x: Floats) -> Floats:
        """Return ``exp(-exp(-z))``."""
        return np.asarray(np.exp(-_exp(-x / self.noise.scale)))

    def index_bracket(self, gap: int) -> Bracket:
        """Return the bracket from :func:`gumbel_delta`, every point of which a choice between two scores attains."""
        most = self._largest_loss(gap)
        if most > _LARGEST:
            return ALL_LEAKS
        knots = most * (1.0 - _SHARES)
        distinct = knots[:-1][np.diff(knots) > _SMALLEST_STEP]  # slopes between closer knots would be rounding errors
        knots = np.unique(np.concatenate([[0.0], distinct, [max(most, _SMALLEST_STEP)]]))
        values = gumbel_delta(most, knots)
        return Bracket(pair_from_profile(knots, values, values), gumbel_instances(most).as_pairs())

    def instances(self, change: ScoreChange) -> Instances:
        """Return instances with two scores, all others far below."""
        return gumbel_instances(min(change.gap / self.noise.scale, _LARGEST))


def gumbel_delta(most: float, epsilon: ArrayLike) -> Floats:
    """Return delta of the exponential mechanism at every real epsilon, with ``most = gap/scale``, rounded up.

    Claim: over all scores and any number of them from 2 on, the largest delta is ``(e^(g/2) - e^(e/2))^2/(e^g - 1)`` for
    ``|e| <= g``, 0 above and ``1 - e^e`` below.
    Holds when index i wins with probability proportional to ``exp(score_i/scale)`` and no two scores move against each other by more
    than gap. The result is that of Dong, Durfee and Rogers (2020). Label: **Bounded range**.

    Proof. For a set S of indices let p and p' be its probability before and after. The odds of S change by a factor of at most t = e^g,
    because each weight in S gains at most t against each weight outside. So ``p <= p' t/(1 + p'(t-1))``, and two scores attain it for
    every p' in (0, 1). ``p' t/(1 + p'(t-1)) - a p'`` is concave in p', with its maximum where ``1 + p'(t-1) = sqrt(t/a)``, which gives the
    claim. For a outside [1/t, t] the maximum lies at p' = 0 or 1.
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    inside = np.clip(eps, -most, most)
    # (e^(g/2) - e^(e/2))^2/(e^g - 1) = (1 - e^((e-g)/2))^2/(1 - e^-g)
    middle = np.expm1(0.5 * (inside - most)) ** 2 / -math.expm1(-most)
    value = np.where(eps > -most, middle, -np.expm1(np.minimum(eps, 0.0)))  # the first is 0 from g on
    return np.asarray(np.minimum(value * (1.0 + 4e-15), 1.0))


def gumbel_instances(most: float) -> Instances:
    """Return the probability of the first of two scores, moved and unmoved, at its worst: ``p' = (sqrt(t/a) - 1)/(t - 1)``."""
    half = 0.5 * most * _SHARES[:-1]  # (g - e)/2
    moved, unmoved = np.expm1(-half) / math.expm1(-most), np.expm1(half) / math.expm1(most)
    return Instances(moved * (1.0 - _ROUNDING), unmoved * (1.0 + _ROUNDING))


def _exponential_cells(u: Floats) -> Floats:
    """Return masses of the exponential distribution of rate 1 above u[0], between neighbours of a decreasing u, and below u[-1]."""
    between = np.exp(-u[1:]) * -np.expm1(np.diff(u))
    return np.concatenate([np.exp(-u[:1]), between, -np.expm1(-u[-1:])])


def _exp(z: Floats) -> Floats:
    """Return ``e^z``, capped at e^700: the results are 0 or 1 well before."""
    return np.asarray(np.exp(np.minimum(z, 700.0)))
