"""The search of **Design**: cutting planes over score orders, cut between a feasible law and the programme's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.counts import Finite, Geometric
from privselect.errors import NotCoveredError
from privselect.planning.design.linear_program import LinearProgram, ScoreOrderCut, worst_order
from privselect.selection.selection import Selection

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.interval import Interval
    from privselect.mechanisms import Mechanism
    from privselect.pairs import DominatingPair
    from privselect.planning.design.goal import DesignGoal

    Floats = NDArray[np.float64]

_CLOSE = 5e-4  # between the programme's bound and the best law found, relative: the search ends
_ROUNDS = 120
_TRIES = 12  # to turn the programme's law into a certified one
_SHARES_OF_ONE = (0.0, 1e-4, 1e-3)  # of the law, that K = 1 is given at least
_WIDEST = 0.1  # of epsilon, as a margin
_COSTLY = 4e-3  # of the chance: where delta is steep a certificate takes long, and so much is left
_LOOSE = 0.05  # tolerance for orders at the programme's own law, which may be far off
_FINE = 2e-3
_RAREST = 1e-9  # P(K >= 1) below this is no law for anyone
_NEW, _STEEP = 1.2, 1.5  # in units of delta: an order the programme did not know, bounds that a delta a little less does not bring together
_STEP = 0.5  # of the way from the feasible law to the programme's
_FAR, _HALVINGS = 4.0, 8  # in units of delta; steps are halved while more than this is leaked


@dataclass(slots=True)
class _Care:
    """With how much less than all of delta (``limit``) or of epsilon (``margin``), and how much of K = 1, a law is to be certified."""

    limit: float = 1.0
    margin: float = 0.0
    low: float = 0.0  # of the limit: certified there
    high: float = math.inf  # and not there
    ones: int = 0

    @property
    def share_of_one(self) -> float:
        return _SHARES_OF_ONE[self.ones]

    def relaxed(self, excess: float) -> bool:
        """After a success: try with more, if there is any more to be had."""
        if self.margin > 0.0:
            self.margin *= 0.5
            return True
        if self.limit >= 1.0 or excess > 1.0 - 2.0 * _CLOSE:
            return False
        self.low = self.limit
        self._move(excess)
        return True

    def wants_margin(self, excess: float) -> bool:
        """Delta falls steeply, and its bounds are far apart, with as much of K = 1 as may be: a little less of epsilon is the measure."""
        return excess > _STEEP and self.ones + 1 == len(_SHARES_OF_ONE)

    def tighten(self, excess: float, over: float, widest: float) -> None:
        """After a failure, with epsilon ``over`` the one asked for."""
        if excess > _STEEP and self.ones + 1 < len(_SHARES_OF_ONE):
            self.ones += 1  # little of K = 1 leaves the bounds far apart
        elif self.margin + 1.02 * over < widest:
            self.margin, self.high = self.margin + 1.02 * over + 1e-5 * widest, math.inf
        else:
            self.high = self.limit
            self._move(excess / (1.0 - _CLOSE))

    def _move(self, excess: float) -> None:
        self.limit = min(self.limit / excess, 1.0)
        if not self.low < self.limit < self.high:
            self.limit = 0.5 * (self.low + min(self.high, 1.0))


class CuttingPlanes:
    """Laws of K for one mechanism and one goal: what they leak, the best one under the cuts known so far, and a certified one.

    The cuts are orders of the pairs that dominate the mechanism, as certificates are about those. What bounds the best chance of any law
    is made of the same orders on pairs below the mechanism (:meth:`at_most`).
    """

    def __init__(self, mechanism: Mechanism, goal: DesignGoal) -> None:
        self.mechanism, self.goal = mechanism, goal
        self.orders: list[tuple[int, ScoreOrderCut]] = []  # with the place of their bracket
        self.rounds = 0
        alone = max(float(b.upper.hockey_stick(goal.epsilon, side=-1)) for b in mechanism.brackets) / goal.delta
        if alone * _RAREST > 1.0:
            raise NotCoveredError(
                f"no law of K with P(K >= 1) above {_RAREST:g} is ({goal.epsilon:g}, {goal.delta:g})-DP here: "
                f"one trial alone has delta {mechanism.delta_at(goal.epsilon).upper:.3g} at epsilon {goal.epsilon:g}"
            )
        self.programme = self._programme(min(1.0 / alone, 1.0) if alone > 0.0 else 1.0)
        # Where all scores are equal the winner is like any single trial: P(K >= 1) times the delta of one.
        self.programme.add(np.full(goal.cap, alone))

    def _programme(self, share: float) -> LinearProgram:
        return LinearProgram(self.goal.values, None if self.goal.mean is None else float(self.goal.mean), share)

    # -- what a law leaks -----------------------------------------------------------------------------------------------------

    def leaks(self, pmf: Floats, tolerance: float = _FINE, margin: float = 0.0) -> float:
        """About how much this law leaks at epsilon - margin, in units of delta; the orders found become cuts."""
        law = self.goal.as_finite(pmf)
        if law is None:
            return 0.0
        epsilon, most = self.goal.epsilon - margin, 0.0
        for place, bracket in enumerate(self.mechanism.brackets):
            order = worst_order(bracket.upper, law, epsilon, tolerance)
            if order is not None:
                self.orders.append((place, order))
                row = self._row(bracket.upper, order)
                self.programme.add(row)
                most = max(most, float((self._row(bracket.upper, order, margin) if margin else row) @ pmf[1:]))
        return most if margin else max(most, self.programme.excess(pmf))

    def _row(self, pair: DominatingPair, order: ScoreOrderCut, margin: float = 0.0) -> Floats:
        return order.coefficients(pair, self.goal.epsilon - margin, self.goal.cap) / self.goal.delta

    def certified(self, law: Finite) -> tuple[float, Interval | None]:
        """A proved bound on what it leaks, in units of delta; and its epsilon, where that is certified to be small enough."""
        selection = Selection(self.mechanism, law)
        excess = float(selection.delta_at(self.goal.epsilon).upper) / self.goal.delta
        if excess > 1.0:
            return excess, None
        found = selection.epsilon_at(self.goal.delta)
        return excess, found if found.upper <= self.goal.epsilon else None

    # -- the search -----------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Cutting planes until the bound and the best feasible law meet, as far as estimates tell."""
        centre = self._first()
        for _ in range(_ROUNDS):
            found = self.programme.solve()
            if found is None or found.bound <= self._value(centre) * (1.0 + _CLOSE):
                break
            self.rounds += 1
            at_found = self.leaks(found.pmf, _LOOSE)
            if at_found <= 1.0:
                at_found = self.leaks(found.pmf)
            between, at_between = self._between(centre, found.pmf)
            if at_between <= 1.0:
                centre, beyond, excess = between, found.pmf, at_found
            else:
                beyond, excess = between, at_between
            here = self.programme.excess(centre)
            if excess <= 1.0:
                centre = beyond
            elif here < 1.0:
                # What a law leaks is convex along the way: up to here it is at most the chord.
                step = (1.0 - here) / (excess - here)
                centre = (1.0 - step) * centre + step * beyond
            else:
                centre = self._scaled(centre, 1.0 / here)
        self.centre = centre

    def _between(self, centre: Floats, found: Floats) -> tuple[Floats, float]:
        """A law part of the way, and what it leaks; nearer the centre where it would leak far too much, as cuts there say little."""
        step = _STEP
        for _ in range(_HALVINGS):
            between = (1.0 - step) * centre + step * found
            leaks = self.leaks(between)
            if leaks <= _FAR:
                break
            step *= _STEP
        return between, leaks

    def _first(self) -> Floats:
        """The longest capped geometric law that is allowed, about; with as much of K = 0 as it takes."""
        cap, mean = self.goal.cap, math.inf if self.goal.mean is None else float(self.goal.mean)
        k = np.arange(cap + 1.0)
        low, high = 0.0, math.log(max(min(mean, 0.5 * cap), 1.0))
        best = np.exp(Geometric(mean=1).log_pmf(k))
        for tried in range(_HALVINGS):
            place = high if tried == 0 else 0.5 * (low + high)
            pmf = np.exp(Geometric(mean=math.exp(place), cap=cap).log_pmf(k))
            if self.leaks(pmf) > 1.0:
                high = place
                continue
            best, low = pmf, place
            if tried == 0:
                break
        best = self._scaled(best, min(1.0, mean / float(best @ k)))
        return self._scaled(best, min(1.0, 1.0 / max(self.leaks(best), 1e-300)))

    def _value(self, pmf: Floats) -> float:
        return float(self.goal.values @ pmf[1:])

    @staticmethod
    def _scaled(pmf: Floats, share: float) -> Floats:
        """The same with K = 0 instead, the rest of the time: what is leaked falls by just this share."""
        scaled = pmf * share
        scaled[0] += 1.0 - share
        return scaled

    # -- its results ----------------------------------------------------------------------------------------------------------

    def best(self) -> tuple[Finite, Interval]:
        """The best certified law found: the programme's own with a little less than all of delta, or of epsilon.

        Where even that is not certified, the search's centre with more of K = 0.
        """
        chosen: tuple[Finite, Interval] | None = None
        care, good_enough = _Care(), self.certifiable() * (1.0 - 2.0 * _CLOSE)
        for _ in range(_TRIES):
            found = self._tightened(care.margin).solve(care.limit)
            if found is None:
                break
            held_back = care.limit < 1.0 or care.margin > 0.0 or found.bound < self.unlimited() * (1.0 - 1e-9)
            law = self.goal.as_finite(found.pmf, keep_one=held_back, share_of_one=care.share_of_one)
            if law is None:
                break
            excess, epsilon = self.certified(law)
            if epsilon is not None:
                if chosen is None or self.goal.chance(law) > self.goal.chance(chosen[0]):
                    chosen = law, epsilon
                if self.goal.chance(chosen[0]) >= good_enough * (1.0 - (_COSTLY if care.margin else 0.0)) or not care.relaxed(excess):
                    break
            elif self.leaks(found.pmf, margin=care.margin) <= _NEW * care.limit:  # else it is an order the programme did not know yet
                over = self._over(law) if care.wants_margin(excess) else math.inf
                care.tighten(excess, over, _WIDEST * self.goal.epsilon)
        return self._scaled_down() if chosen is None else chosen

    def _over(self, law: Finite) -> float:
        return float(Selection(self.mechanism, law).epsilon_at(self.goal.delta).upper) - self.goal.epsilon

    def _tightened(self, margin: float) -> LinearProgram:
        """The same cuts for a smaller epsilon."""
        if margin == 0.0:
            return self.programme
        programme = self._programme(self.programme.share)
        for place, order in self.orders:
            programme.add(self._row(self.mechanism.brackets[place].upper, order, margin))
        return programme

    def law_of(self, count: Count) -> tuple[Finite, Interval] | None:
        """A named law on {0, ..., cap} as a table, if that is certified too."""
        law = self.goal.as_finite(np.exp(count.log_pmf(np.arange(self.goal.cap + 1.0))))
        epsilon = None if law is None else self.certified(law)[1]
        return None if law is None or epsilon is None else (law, epsilon)

    def _scaled_down(self) -> tuple[Finite, Interval]:
        share = 1.0
        for _ in range(_TRIES):
            law = self.goal.as_finite(self._scaled(self.centre, share))
            if law is None:
                break
            excess, epsilon = self.certified(law)
            if epsilon is not None:
                return law, epsilon
            share *= min(1.0 / excess, 1.0) * (1.0 - _CLOSE) if math.isfinite(excess) else 0.5
        raise NotCoveredError(f"no law of K that is ({self.goal.epsilon:g}, {self.goal.delta:g})-DP was found for {self.mechanism}")

    def certifiable(self) -> float:
        """A proved bound on the chance of every law of K that the pairs from above allow: what the search alone leaves open."""
        found = self.programme.solve()
        return self.unlimited() if found is None else min(found.bound, self.unlimited())

    def at_most(self) -> float | None:
        """A proved bound on the chance of every law of K that keeps (epsilon, delta) for this mechanism; None where none is proved.

        The same orders on pairs below the mechanism: what they leak, the mechanism leaks too.
        """
        goal, brackets = self.goal, self.mechanism.brackets
        if not all(bracket.lowers for bracket in brackets):
            return None
        programme = self._programme(self.programme.share)
        for bracket in brackets:
            for low in bracket.lowers:
                programme.add(np.full(goal.cap, float(low.hockey_stick(goal.epsilon, side=-1)) / goal.delta))
        for place, order in self.orders:
            for low in brackets[place].lowers:
                programme.add(self._row(low, order))
        found = programme.solve()
        return self.unlimited() if found is None else min(found.bound, self.unlimited())

    def unlimited(self) -> float:
        """What no privacy at all would allow, rounded up: the values are concave in k, so K would be a whole number next to E K."""
        values = np.concatenate([[0.0], self.goal.values])
        most = float(self.goal.cap) if self.goal.mean is None else min(float(self.goal.mean), float(self.goal.cap))
        return min(float(np.interp(most, np.arange(len(values)), values)) * (1.0 + 1e-12), 1.0)
