r"""``thm:main_thm``: any law of K, any f-divergence, a finite or a continuous score.

Outcomes are listed from the best score down, with masses ``p`` on one data set and ``q`` on its neighbour. Above an outcome lie
the masses u and v; the winner has the laws ``A(y) = integral of phi'(1-u) du`` over y's stretch of u, and ``A'(y)`` likewise
over v. If K can be 0, one more outcome has mass P(K=0) on both sides and adds ``f(1) P(K=0)``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from privselect._util.validation import REAL, Range, check_number
from privselect.pairs import DominatingPair
from privselect.pairs.renyi import renyi_of_pair
from privselect.selection.bounds.ratio import vertices
from privselect.selection.exact.pgf_weight import Weight
from privselect.selection.safe_search import greatest_along

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]

_ORDER = Range(1.0, np.inf, low_open=True)
_UP = 1.0 + 1e-11
_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(8)


class Divergence(Protocol):
    """A convex f, as the theorem needs it."""

    def perspective(self, a: Floats, b: Floats) -> Floats:
        """``f(a/b) b``, by continuity where b = 0."""

    def greatest(self, p: Floats, q: Floats, u: Floats, v: Floats, count: Count) -> Floats:
        """For each outcome, an upper bound on ``f(p phi'(1-u) / (q phi'(1-v))) q phi'(1-v)`` along the polygon (u, v)."""


@dataclass(frozen=True, slots=True)
class HockeyStick:
    """``f(z) = (z - exp(epsilon))_+``."""

    epsilon: float

    def __post_init__(self) -> None:
        check_number("epsilon", self.epsilon, REAL)

    def perspective(self, a: Floats, b: Floats) -> Floats:
        """``(a - exp(epsilon) b)_+``."""
        return np.asarray(np.maximum(a - np.exp(self.epsilon) * b, 0.0))

    def greatest(self, p: Floats, q: Floats, u: Floats, v: Floats, count: Count) -> Floats:
        """The polygon is cut into short pieces; on each, phi' lies below its chord and above its tangents."""
        weight = Weight(count, _argument_rounding(len(p)))
        u, v = _refined(u, v, weight)
        rise = 0.5 * np.diff(v)
        middle = np.clip(v[:-1] + rise, 1e-7 / (weight.scale + 1.0), 1.0)  # slopes are taken a little to the left of it
        value = weight.below(middle)
        flat, steep = weight.slopes(middle, value)
        gain = weight.above(u)
        loss = np.exp(self.epsilon) * q[:, None]
        at_left = p[:, None] * gain[:-1] - loss * (value + flat * rise)
        at_right = p[:, None] * gain[1:] - loss * (value - steep * rise)
        # Chord minus tangents is convex along a piece: the greater end bounds it. So does the gain alone, at its greater end.
        pieces = np.minimum(np.maximum(at_left, at_right), p[:, None] * gain[:-1])
        return np.asarray(weight.scale * np.maximum(pieces.max(axis=1), 0.0) * _UP)


@dataclass(frozen=True, slots=True)
class Power:
    """``f(z) = z^alpha``, alpha > 1: the divergence is ``exp((alpha-1) D_alpha)``, with D_alpha the Renyi divergence."""

    alpha: float

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, _ORDER)

    def perspective(self, a: Floats, b: Floats) -> Floats:
        """``a^alpha b^(1-alpha)``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.exp(self.alpha * np.log(a) - (self.alpha - 1.0) * np.log(b))
        return np.where(a > 0.0, value, 0.0)

    def greatest(self, p: Floats, q: Floats, u: Floats, v: Floats, count: Count) -> Floats:
        """The outcome and its place part ways: ``p^alpha q^(1-alpha)`` times one factor that is the same for all outcomes."""
        outcome = self.perspective(p, q)
        with np.errstate(invalid="ignore"):
            return np.where(outcome > 0.0, outcome * np.exp(self.log_penalty(u, v, count)) * _UP, 0.0)

    def log_penalty(self, u: Floats, v: Floats, count: Count) -> float:
        """An upper bound on ``alpha log phi'(1-u) - (alpha-1) log phi'(1-v)`` along the polygon."""
        return greatest_along(count.log_dpgf, (u, v), gain=self.alpha, cost=self.alpha - 1.0)


def main_thm(f: Divergence, p: ArrayLike, q: ArrayLike, count: Count) -> float:
    r"""An upper bound on the f-divergence between the selections on two neighbouring data sets.

    Claim: ``H_f(A||A') <= sum_y f( Q(y) phi'(q_y) / (Q'(y) phi'(q'_y)) ) Q'(y) phi'(q'_y)``, plus ``f(1) P(K=0)``, where q_y and q'_y are
    the chances that one and the same post-processing gives Q and Q'. Here the post-processing is the best one that the proof
    needs: for each y, a lower set of the score order with one outcome split.

    Holds when f is convex, the law of K is public and independent of the data, and the score order is the same on both data
    sets. Label: thm:main_thm.
    """
    first, second = _checked(p, q)
    u, v = _path(first), _path(second)
    none = _atom_of_none(count)
    return float(np.sum(f.greatest(first, second, u, v, count)) + f.perspective(none, none)[0])


def selection_divergence(f: Divergence, p: ArrayLike, q: ArrayLike, count: Count) -> float:
    """``H_f(A||A')`` itself for this score order, by quadrature of phi' (relative error below 1e-12): not rounded to either side."""
    first, second = _checked(p, q)
    none = _atom_of_none(count)
    terms = f.perspective(selected(first, count), selected(second, count))
    return float(np.sum(terms) + f.perspective(none, none)[0])


def selected(masses: ArrayLike, count: Count) -> Floats:
    """The winner's law over the same outcomes, best score first; what is missing to 1 is P(K=0)."""
    given = np.asarray(masses, dtype=np.float64)
    edges = _path(given)
    cuts = np.unique(np.concatenate([edges, Weight(count, 0.0).decline(0.1)]))
    half = 0.5 * np.diff(cuts)
    values = np.exp(count.log_dpgf((cuts[:-1] + half)[:, None] + half[:, None] * _GAUSS_NODES))
    pieces = half * (values @ _GAUSS_WEIGHTS)
    owner = np.searchsorted(edges, cuts[:-1], side="right") - 1
    return np.bincount(owner, weights=pieces, minlength=len(given))[: len(given)].astype(np.float64)


def lemma_7(p: ArrayLike, q: ArrayLike, count: Count, alpha: float) -> float:
    r"""The Renyi bound that ``thm:main_thm`` gives back for ``f(z) = z^alpha``: Lemma 7 of Papernot and Steinke (2022).

    Claim: ``D_alpha(A||A') <= D_alpha(Q||Q') + 1/(alpha-1) sup log( phi'(q)^alpha phi'(q')^(1-alpha) )``, over all (q, q') that one
    post-processing makes of Q and Q'. With u = 1-q given, v = 1-q' is at most g(u).

    Holds when K >= 1.
    """
    first, second = _checked(p, q)
    pair = DominatingPair.from_masses(first, second)
    return float(renyi_of_pair(pair, alpha)) + Power(alpha).log_penalty(*vertices(pair), count) / (alpha - 1.0)


@dataclass(frozen=True, slots=True)
class Score:
    """A continuous score: its density, and the mass above a value (not 1 minus the mass below, which has no digits left)."""

    density: Callable[[Floats], Floats]
    above: Callable[[Floats], Floats]


def main_thm_continuous(f: Divergence, base: Score, neighbour: Score, count: Count, knots: ArrayLike) -> float:
    r"""``H_f(A||A')`` for a continuous score, an equality.

    Claim: ``H_f(A||A') = integral f( Q(y) phi'(Q(<=y)) / (Q'(y) phi'(Q'(<=y))) ) Q'(y) phi'(Q'(<=y)) dy``, plus ``f(1) P(K=0)``.

    Holds when the score has densities on both data sets. The integral runs from the first knot to the last, by Gauss's rule
    between them: an estimate, not rounded to either side. Label: eq:thm_statement_continuous.
    """
    ends = np.asarray(knots, dtype=np.float64)
    half = 0.5 * np.diff(ends)
    y = (ends[:-1] + half)[:, None] + half[:, None] * _GAUSS_NODES
    a = base.density(y) * np.exp(count.log_dpgf(base.above(y)))
    b = neighbour.density(y) * np.exp(count.log_dpgf(neighbour.above(y)))
    none = _atom_of_none(count)
    return float(half @ (f.perspective(a, b) @ _GAUSS_WEIGHTS) + f.perspective(none, none)[0])


def _checked(p: ArrayLike, q: ArrayLike) -> tuple[Floats, Floats]:
    DominatingPair.from_masses(p, q)  # says what is wrong with masses that are none
    return np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)


def _path(masses: Floats) -> Floats:
    """The masses above each outcome, and the last one: 1, whatever the rounding."""
    return np.concatenate([[0.0], np.minimum(np.cumsum(masses)[:-1], 1.0), [1.0]])


def _atom_of_none(count: Count) -> Floats:
    return np.array([count.probability_of_zero()])


def _argument_rounding(size: int) -> float:
    return (size + 8) * 2.0**-52


def _refined(u: Floats, v: Floats, weight: Weight) -> tuple[Floats, Floats]:
    """The same polygon with more vertices: wherever u or v passes a point at which phi' has fallen a little."""
    place = np.arange(len(u), dtype=np.float64)
    marks = weight.decline(0.01)
    # Where u stands still, its inverse jumps: any place will do, pieces need only be short where they can be.
    extra = np.concatenate([np.interp(marks, u, place), np.interp(marks, v, place)])
    places = np.unique(np.concatenate([place, extra]))
    return np.interp(places, place, u), np.interp(places, place, v)
