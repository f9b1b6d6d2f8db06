"""Gumbel noise on scores: the exponential mechanism, whose leak is known exactly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.lower_bounds import Instances
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, Additive, additive
from privselect.noisy_max.index_only_noise import Gumbel
from privselect.pairs import Bracket, connect_the_dots, merge_cells, pair_from_curve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.noisy_max.accounting.score_sensitivity import Moves

    Floats = NDArray[np.float64]

_CELLS = 2000
_FARTHEST = 45.0  # e^-45 is beyond the last digit of a probability
_LARGEST = 340.0  # of gap/scale: the square of e^340 is still a float
# 1 - epsilon/most: the curve meets 0 as a parabola, so more of them near its end.
_SHARES = np.concatenate([np.linspace(1.0, 0.1, 1000, endpoint=False), np.geomspace(0.1, 1e-9, 1000), [0.0]])
_APART = 1e-10
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class GumbelNoise(Additive):
    """Density ``exp(-z - exp(-z))/scale`` with ``z = x/scale``."""

    noise: Gumbel

    def _most(self, gap: int) -> float:
        """The greatest loss, rounded up."""
        return math.nextafter(gap / self.noise.scale, math.inf)

    def shifted(self, gap: int) -> Bracket:
        """In ``u = exp(-z)``: exponential laws of rates ``t = e^g`` and 1, ``g = gap/scale``, and a loss ``g - (t-1) u``.

        Holds up to cells of the loss. It is at most g; what lies far below is nearly never seen.
        """
        most = self._most(gap)
        if most > _LARGEST:
            return ALL_LEAKS
        rate, excess = math.exp(most), math.expm1(most)
        lowest = min(_FARTHEST, 2.0 * _LARGEST / excess)  # of u, where the loss is down to about -680
        middle = min(2.0 * most / excess, lowest)  # where the loss is -g: below, coarser cells do
        u = np.append(np.linspace(0.0, middle, _CELLS + 1), np.geomspace(middle, lowest, _CELLS // 4 + 1)[1:] if lowest > middle else [])
        u = u[::-1]
        cell_p, cell_q = _exponential_cells(u * rate), _exponential_cells(u)
        upper = connect_the_dots(most - excess * u, cell_p, cell_q)
        return Bracket(upper, (merge_cells(cell_p, cell_q),), "remove")

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """In closed form: ``g - log(1 + (a-1)(1 - e^-g))/(a-1)``, rounded up."""
        most, power = self._most(gap), alpha - 1.0
        # A difference of two numbers up to g: so much of g is lost.
        return np.asarray(most * (1.0 + 4e-15) - np.log1p(power * -math.expm1(-most)) / power)

    def survival(self, x: Floats) -> Floats:
        """``1 - exp(-exp(-z))``."""
        return np.asarray(-np.expm1(-_exp(-x / self.noise.scale)))

    def below(self, x: Floats) -> Floats:
        """``exp(-exp(-z))``."""
        return np.asarray(np.exp(-_exp(-x / self.noise.scale)))

    def choice(self, gap: int) -> Bracket:
        """By :func:`gumbel_delta`, of which every point is that of a real choice between two."""
        most = self._most(gap)
        if most > _LARGEST:
            return ALL_LEAKS
        knots = most * (1.0 - _SHARES)
        apart = knots[:-1][np.diff(knots) > _APART]  # slopes between nearer ones would be made of rounding
        knots = np.unique(np.concatenate([[0.0], apart, [max(most, _APART)]]))
        values = gumbel_delta(most, knots)
        return Bracket(pair_from_curve(knots, values, values), gumbel_instances(most).chosen())

    def instances(self, moves: Moves) -> Instances:
        """Two scores, the others far below."""
        return gumbel_instances(min(moves.gap / self.noise.scale, _LARGEST))


@additive.register(Gumbel)
def _(noise: Gumbel) -> Additive:
    return GumbelNoise(noise)


def gumbel_delta(most: float, epsilon: ArrayLike) -> Floats:
    """Delta of the exponential mechanism at every real epsilon, with ``most = gap/scale``, rounded up.

    Claim: over all scores and any number of them from 2 on, the greatest delta is ``(e^(g/2) - e^(e/2))^2/(e^g - 1)`` for
    ``|e| <= g``, 0 above and ``1 - e^e`` below.
    Holds when index i wins with chance proportional to ``exp(score_i/scale)`` and no two scores move against each other by more than gap.
    The result is that of Dong, Durfee and Rogers (2020). Label: **Bounded range**.

    Proof. For a set S of indices let p and p' be its chance before and after. The odds of S change by a factor of at most t = e^g, as
    each weight in S gains at most t against each weight outside. So ``p <= p' t/(1 + p'(t-1))``, and two scores attain it for every p' in
    (0, 1). ``p' t/(1 + p'(t-1)) - a p'`` is concave in p', and greatest where ``1 + p'(t-1) = sqrt(t/a)``: put in, that is the claim.
    For a beyond [1/t, t] the greatest lies at an end, p' = 0 or 1.
    """
    eps = np.asarray(epsilon, dtype=np.float64)
    inside = np.clip(eps, -most, most)
    # (e^(g/2) - e^(e/2))^2/(e^g - 1) = (1 - e^((e-g)/2))^2/(1 - e^-g)
    middle = np.expm1(0.5 * (inside - most)) ** 2 / -math.expm1(-most)
    value = np.where(eps > -most, middle, -np.expm1(np.minimum(eps, 0.0)))  # from g on, the first is 0
    return np.asarray(np.minimum(value * (1.0 + 4e-15), 1.0))


def gumbel_instances(most: float) -> Instances:
    """The chance of the first of two scores, with and without the record, where it is the worst: ``p' = (sqrt(t/a) - 1)/(t - 1)``."""
    half = 0.5 * most * _SHARES[:-1]  # (g - e)/2
    moved, still = np.expm1(-half) / math.expm1(-most), np.expm1(half) / math.expm1(most)
    return Instances(moved * (1.0 - _ROUNDING), still * (1.0 + _ROUNDING))


def _exponential_cells(u: Floats) -> Floats:
    """Masses of the exponential law of rate 1 above u[0], between neighbours of a falling u, and below u[-1]."""
    between = np.exp(-u[1:]) * -np.expm1(np.diff(u))
    return np.concatenate([np.exp(-u[:1]), between, -np.expm1(-u[-1:])])


def _exp(z: Floats) -> Floats:
    """``e^z``, at most the largest float: what is made of it is 0 or 1 long before."""
    return np.asarray(np.exp(np.minimum(z, 700.0)))
