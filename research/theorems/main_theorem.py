r"""``thm:main_thm``: any law of K, any f-divergence, a finite or a continuous score.

Outcomes are listed from the best score down, with masses ``p`` on one data set and ``q`` on its neighbour. The masses above an
outcome are u and v. The winner has the distributions ``A(y) = integral of phi'(1-u) du`` over y's stretch of u, and ``A'(y)``
likewise over v. If K can be 0, one more outcome has mass P(K=0) on both sides and adds ``f(1) P(K=0)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from privselect._util.validation import REAL, Range, check_number
from privselect.pairs import DominatingPair
from privselect.selection.bounds.ratio import max_along_path
from privselect.selection.exact.weight_bounds import Weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]

_ORDER = Range(1.0, np.inf, low_open=True)
_UP = 1.0 + 1e-11
_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(8)


class Divergence(Protocol):
    """A convex f, in the form that the theorem needs."""

    def perspective(self, a: Floats, b: Floats) -> Floats:
        """Return ``f(a/b) b``, by continuity where b = 0."""

    def term_bounds(self, p: Floats, q: Floats, u: Floats, v: Floats, count: Count) -> Floats:
        """Return, for each outcome, an upper bound on ``f(p phi'(1-u) / (q phi'(1-v))) q phi'(1-v)`` along the polygon (u, v)."""


@dataclass(frozen=True, slots=True)
class HockeyStick:
    """``f(z) = (z - exp(epsilon))_+``."""

    epsilon: float

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, REAL)

    def perspective(self, a: Floats, b: Floats) -> Floats:
        """Return ``(a - exp(epsilon) b)_+``."""
        return np.asarray(np.maximum(a - np.exp(self.epsilon) * b, 0.0))

    def term_bounds(self, p: Floats, q: Floats, u: Floats, v: Floats, count: Count) -> Floats:
        """Bound each outcome on short pieces of the polygon, where phi' lies below its chord and above its tangents."""
        weight = Weight(count, _argument_rounding(len(p)))
        u, v = _refine(u, v, weight)
        rise = 0.5 * np.diff(v)
        middle = np.clip(v[:-1] + rise, 1e-7 / (weight.scale + 1.0), 1.0)  # slopes are secants to a point slightly to the left
        value = weight.below(middle)
        flat, steep = weight.slopes(middle, value)
        gain = weight.above(u)
        loss = np.exp(self.epsilon) * q[:, None]
        at_left = p[:, None] * gain[:-1] - loss * (value + flat * rise)
        at_right = p[:, None] * gain[1:] - loss * (value - steep * rise)
        # Chord minus tangents is convex along a piece: its larger endpoint value is a bound. The gain alone at the start is another.
        pieces = np.minimum(np.maximum(at_left, at_right), p[:, None] * gain[:-1])
        return np.asarray(weight.scale * np.maximum(pieces.max(axis=1), 0.0) * _UP)


@dataclass(frozen=True, slots=True)
class Power:
    """``f(z) = z^alpha``, alpha > 1: the divergence is ``exp((alpha-1) D_alpha)``, with D_alpha the Renyi divergence."""

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, _ORDER)

    def perspective(self, a: Floats, b: Floats) -> Floats:
        """Return ``a^alpha b^(1-alpha)``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.exp(self.alpha * np.log(a) - (self.alpha - 1.0) * np.log(b))
        return np.where(a > 0.0, value, 0.0)

    def term_bounds(self, p: Floats, q: Floats, u: Floats, v: Floats, count: Count) -> Floats:
        """Bound each outcome by ``p^alpha q^(1-alpha)`` times one factor, which is the same for all outcomes."""
        outcome = self.perspective(p, q)
        with np.errstate(invalid="ignore"):
            return np.where(outcome > 0.0, outcome * np.exp(self.log_penalty(u, v, count)) * _UP, 0.0)

    def log_penalty(self, u: Floats, v: Floats, count: Count) -> float:
        """Return an upper bound on ``alpha log phi'(1-u) - (alpha-1) log phi'(1-v)`` along the polygon."""
        return max_along_path(count.log_dpgf, (u, v), gain=self.alpha, cost=self.alpha - 1.0)


def main_thm(f: Divergence, p: ArrayLike, q: ArrayLike, count: Count) -> float:
    r"""Return an upper bound on the f-divergence between the selections on two neighbouring data sets.

    Claim: ``H_f(A||A') <= sum_y f( Q(y) phi'(q_y) / (Q'(y) phi'(q'_y)) ) Q'(y) phi'(q'_y)``, plus ``f(1) P(K=0)``, where q_y and q'_y are
    the probabilities that the same post-processing gives to Q and Q'. The post-processing used is the best one that the proof
    needs: for each y, a lower set of the score order with one outcome split.

    Holds when f is convex, the law of K is public and independent of the data, and the score order is the same on both data
    sets. Label: thm:main_thm.
    """
    DominatingPair.from_masses(p, q)  # validates the masses
    first, second = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    return float(np.sum(f.term_bounds(first, second, _masses_above(first), _masses_above(second), count)) + _no_trial_term(f, count))


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """A continuous score: its density, and the mass above a value (1 minus the mass below would lose its digits)."""

    density: Callable[[Floats], Floats]
    above: Callable[[Floats], Floats]


def main_thm_continuous(f: Divergence, base: ScoreDistribution, neighbour: ScoreDistribution, count: Count, knots: ArrayLike) -> float:
    r"""Compute ``H_f(A||A')`` for a continuous score, an equality.

    Claim: ``H_f(A||A') = integral f( Q(y) phi'(Q(<=y)) / (Q'(y) phi'(Q'(<=y))) ) Q'(y) phi'(Q'(<=y)) dy``, plus ``f(1) P(K=0)``.

    Holds when the score has densities on both data sets. The integral runs from the first knot to the last, by Gauss's rule
    between knots: an estimate, not rounded to either side. Label: eq:thm_statement_continuous.
    """
    edges = np.asarray(knots, dtype=np.float64)
    half = 0.5 * np.diff(edges)
    y = (edges[:-1] + half)[:, None] + half[:, None] * _GAUSS_NODES
    a = base.density(y) * np.exp(count.log_dpgf(base.above(y)))
    b = neighbour.density(y) * np.exp(count.log_dpgf(neighbour.above(y)))
    return float(half @ (f.perspective(a, b) @ _GAUSS_WEIGHTS) + _no_trial_term(f, count))


def _masses_above(masses: Floats) -> Floats:
    """Return the mass above each outcome, followed by 1 for the total, whatever the rounding of the sum."""
    return np.concatenate([[0.0], np.minimum(np.cumsum(masses)[:-1], 1.0), [1.0]])


def _no_trial_term(f: Divergence, count: Count) -> float:
    """Return ``f(1) P(K=0)``."""
    none = np.array([count.probability_of_zero()])
    return float(f.perspective(none, none)[0])


def _argument_rounding(size: int) -> float:
    return (size + 8) * 2.0**-52


def _refine(u: Floats, v: Floats, weight: Weight) -> tuple[Floats, Floats]:
    """Return the same polygon with a vertex wherever u or v passes a point at which phi' has fallen slightly."""
    index = np.arange(len(u), dtype=np.float64)
    marks = weight.equal_declines(0.01)
    # The inverse of u jumps where u is constant: any point is valid there, because only the length of the pieces matters.
    extra = np.concatenate([np.interp(marks, u, index), np.interp(marks, v, index)])
    refined = np.unique(np.concatenate([index, extra]))
    return np.interp(refined, index, u), np.interp(refined, index, v)
