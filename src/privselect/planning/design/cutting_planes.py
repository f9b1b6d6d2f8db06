"""The search of **Design**: cutting planes over score orders, between a feasible law of K and the optimum of a linear program."""

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

_CLOSE = 5e-4  # relative gap between the bound and the best law of K at which the search stops
_ITERATIONS = 120
_TRIES = 12  # to certify the optimum of the linear program
_SHARES_OF_ONE = (0.0, 1e-4, 1e-3)  # minimum of P(K = 1)/P(K >= 1)
_WIDEST = 0.1  # largest margin, relative to epsilon
_COSTLY = 4e-3  # accepted relative loss of success if delta is steep, because certifying is then slow
_LOOSE = 0.05  # tolerance for orders at the optimum of the program, which may be far from feasible
_FINE = 2e-3
_RAREST = 1e-9  # smallest useful P(K >= 1)
_NEW, _STEEP = 1.2, 1.5  # in units of delta: an order unknown to the program; bounds too far apart for a slightly smaller delta
_STEP = 0.5  # relative position between the feasible law of K and the optimum of the program
_FAR, _HALVINGS = 4.0, 8  # the step is halved while delta is above _FAR times the budget


@dataclass(slots=True)
class _Slack:
    """How much of delta (``limit``) and epsilon (``margin``) a law of K leaves unused, and its minimum P(K = 1), for certification."""

    limit: float = 1.0
    margin: float = 0.0
    low: float = 0.0  # largest limit that was certified
    high: float = math.inf  # smallest limit that was not
    ones: int = 0

    @property
    def share_of_one(self) -> float:
        return _SHARES_OF_ONE[self.ones]

    def relax(self, excess: float) -> bool:
        """Reduce the slack after a success; return whether there was any."""
        if self.margin > 0.0:
            self.margin *= 0.5
            return True
        if self.limit >= 1.0 or excess > 1.0 - 2.0 * _CLOSE:
            return False
        self.low = self.limit
        self._move(excess)
        return True

    def needs_margin(self, excess: float) -> bool:
        """Return whether delta is so steep that a margin on epsilon is needed, because more of K = 1 does not help."""
        return excess > _STEEP and self.ones + 1 == len(_SHARES_OF_ONE)

    def tighten(self, excess: float, over: float, widest: float) -> None:
        """Increase the slack after a failure; ``over`` is the excess of epsilon."""
        if excess > _STEEP and self.ones + 1 < len(_SHARES_OF_ONE):
            self.ones += 1  # more of K = 1 brings the bounds together
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
    """The search for one mechanism and one goal: the cuts found, the best law of K under them, and a certified one.

    The cuts are orders of pairs that dominate the mechanism, because certificates use these pairs. The bound on the success probability
    of every law of K uses the same orders on pairs below the mechanism (:meth:`upper_bound`).
    """

    def __init__(self, mechanism: Mechanism, goal: DesignGoal) -> None:
        self.mechanism, self.goal = mechanism, goal
        self.orders: list[tuple[int, ScoreOrderCut]] = []  # with the index of their bracket
        self.iterations = 0
        alone = max(float(b.upper.hockey_stick(goal.epsilon, side=-1)) for b in mechanism.brackets) / goal.delta
        if alone * _RAREST > 1.0:
            raise NotCoveredError(
                f"no law of K with P(K >= 1) above {_RAREST:g} is ({goal.epsilon:g}, {goal.delta:g})-DP here: "
                f"one trial alone has delta {mechanism.delta_at(goal.epsilon).upper:.3g} at epsilon {goal.epsilon:g}"
            )
        self.program = self._new_program(min(1.0 / alone, 1.0) if alone > 0.0 else 1.0)
        # If all scores are equal, the winner is distributed like one trial: P(K >= 1) times the delta of one.
        self.program.add(np.full(goal.cap, alone))

    def _new_program(self, share: float) -> LinearProgram:
        return LinearProgram(self.goal.values, None if self.goal.mean is None else float(self.goal.mean), share)

    # -- the delta of a law of K --------------------------------------------------------------------------------

    def leaks(self, pmf: Floats, tolerance: float = _FINE, margin: float = 0.0) -> float:
        """Return the approximate delta of this pmf at epsilon - margin, in units of delta, and add the orders found as cuts."""
        law = self.goal.as_finite(pmf)
        if law is None:
            return 0.0
        epsilon, most = self.goal.epsilon - margin, 0.0
        for index, bracket in enumerate(self.mechanism.brackets):
            order = worst_order(bracket.upper, law, epsilon, tolerance)
            if order is not None:
                self.orders.append((index, order))
                row = self._row(bracket.upper, order)
                self.program.add(row)
                most = max(most, float((self._row(bracket.upper, order, margin) if margin else row) @ pmf[1:]))
        return most if margin else max(most, self.program.excess(pmf))

    def _row(self, pair: DominatingPair, order: ScoreOrderCut, margin: float = 0.0) -> Floats:
        return order.coefficients(pair, self.goal.epsilon - margin, self.goal.cap) / self.goal.delta

    def certified(self, law: Finite) -> tuple[float, Interval | None]:
        """Return a proved bound on the delta of this law of K, in units of delta, and its epsilon if that meets the budget."""
        selection = Selection(self.mechanism, law)
        excess = float(selection.delta_at(self.goal.epsilon).upper) / self.goal.delta
        if excess > 1.0:
            return excess, None
        found = selection.epsilon_at(self.goal.delta)
        return excess, found if found.upper <= self.goal.epsilon else None

    # -- the search -----------------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Add cuts until the bound and the best feasible law of K meet, as far as estimates show."""
        centre = self._first()
        for _ in range(_ITERATIONS):
            found = self.program.solve()
            if found is None or found.bound <= self._value(centre) * (1.0 + _CLOSE):
                break
            self.iterations += 1
            at_found = self.leaks(found.pmf, _LOOSE)
            if at_found <= 1.0:
                at_found = self.leaks(found.pmf)
            between, at_between = self._between(centre, found.pmf)
            if at_between <= 1.0:
                centre, beyond, excess = between, found.pmf, at_found
            else:
                beyond, excess = between, at_between
            here = self.program.excess(centre)
            if excess <= 1.0:
                centre = beyond
            elif here < 1.0:
                # Delta is convex along the segment, so up to this step it is at most the budget.
                step = (1.0 - here) / (excess - here)
                centre = (1.0 - step) * centre + step * beyond
            else:
                centre = self._scaled(centre, 1.0 / here)
        self.centre = centre

    def _between(self, centre: Floats, found: Floats) -> tuple[Floats, float]:
        """Return a pmf on the segment and its delta; nearer the centre if its delta is far too large, because cuts are weak there."""
        step = _STEP
        for _ in range(_HALVINGS):
            between = (1.0 - step) * centre + step * found
            leaks = self.leaks(between)
            if leaks <= _FAR:
                break
            step *= _STEP
        return between, leaks

    def _first(self) -> Floats:
        """Return about the longest allowed capped geometric law of K, mixed with K = 0 if necessary."""
        cap, mean = self.goal.cap, math.inf if self.goal.mean is None else float(self.goal.mean)
        k = np.arange(cap + 1.0)
        low, high = 0.0, math.log(max(min(mean, 0.5 * cap), 1.0))
        best = np.exp(Geometric(mean=1).log_pmf(k))
        for tried in range(_HALVINGS):
            log_mean = high if tried == 0 else 0.5 * (low + high)
            pmf = np.exp(Geometric(mean=math.exp(log_mean), cap=cap).log_pmf(k))
            if self.leaks(pmf) > 1.0:
                high = log_mean
                continue
            best, low = pmf, log_mean
            if tried == 0:
                break
        best = self._scaled(best, min(1.0, mean / float(best @ k)))
        return self._scaled(best, min(1.0, 1.0 / max(self.leaks(best), 1e-300)))

    def _value(self, pmf: Floats) -> float:
        return float(self.goal.values @ pmf[1:])

    @staticmethod
    def _scaled(pmf: Floats, share: float) -> Floats:
        """Return the mixture of ``pmf``, with weight ``share``, and K = 0; delta is multiplied by ``share``."""
        scaled = pmf * share
        scaled[0] += 1.0 - share
        return scaled

    # -- the results ---------------------------------------------------------------------------------------

    def best(self) -> tuple[Finite, Interval]:
        """Return the best certified law of K: the optimum of the program with a little slack in delta or epsilon.

        If none can be certified, return the centre of the search mixed with K = 0.
        """
        chosen: tuple[Finite, Interval] | None = None
        slack, good_enough = _Slack(), self.certifiable_upper_bound() * (1.0 - 2.0 * _CLOSE)
        for _ in range(_TRIES):
            found = self._tightened(slack.margin).solve(slack.limit)
            if found is None:
                break
            held_back = slack.limit < 1.0 or slack.margin > 0.0 or found.bound < self.unlimited() * (1.0 - 1e-9)
            law = self.goal.as_finite(found.pmf, keep_one=held_back, share_of_one=slack.share_of_one)
            if law is None:
                break
            excess, epsilon = self.certified(law)
            if epsilon is not None:
                if chosen is None or self.goal.success_probability(law) > self.goal.success_probability(chosen[0]):
                    chosen = law, epsilon
                if self.goal.success_probability(chosen[0]) >= good_enough * (1.0 - (_COSTLY if slack.margin else 0.0)) or not slack.relax(
                    excess
                ):
                    break
            elif self.leaks(found.pmf, margin=slack.margin) <= _NEW * slack.limit:  # otherwise the order is a new cut: solve again
                over = self._over(law) if slack.needs_margin(excess) else math.inf
                slack.tighten(excess, over, _WIDEST * self.goal.epsilon)
        return self._scaled_down() if chosen is None else chosen

    def _over(self, law: Finite) -> float:
        return float(Selection(self.mechanism, law).epsilon_at(self.goal.delta).upper) - self.goal.epsilon

    def _tightened(self, margin: float) -> LinearProgram:
        """Return the program with the same cuts at epsilon - margin."""
        if margin == 0.0:
            return self.program
        program = self._new_program(self.program.share)
        for index, order in self.orders:
            program.add(self._row(self.mechanism.brackets[index].upper, order, margin))
        return program

    def as_certified_table(self, count: Count) -> tuple[Finite, Interval] | None:
        """Return a parametric law of K on {0, ..., cap} as a table with its epsilon if the table is certified, else None."""
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

    def certifiable_upper_bound(self) -> float:
        """Return a proved bound on the success probability of every law of K that the accountant could certify."""
        found = self.program.solve()
        return self.unlimited() if found is None else min(found.bound, self.unlimited())

    def upper_bound(self) -> float | None:
        """Return a proved bound on the success probability of every (epsilon, delta)-DP law of K; None if none is proved.

        The orders are applied to pairs below the mechanism, which leak at most as much as the mechanism.
        """
        goal, brackets = self.goal, self.mechanism.brackets
        if not all(bracket.lowers for bracket in brackets):
            return None
        program = self._new_program(self.program.share)
        for bracket in brackets:
            for low in bracket.lowers:
                program.add(np.full(goal.cap, float(low.hockey_stick(goal.epsilon, side=-1)) / goal.delta))
        for index, order in self.orders:
            for low in brackets[index].lowers:
                program.add(self._row(low, order))
        found = program.solve()
        return self.unlimited() if found is None else min(found.bound, self.unlimited())

    def unlimited(self) -> float:
        """Return the bound without any privacy, rounded up: the values are concave in k, so K is an integer next to E K."""
        values = np.concatenate([[0.0], self.goal.values])
        most = float(self.goal.cap) if self.goal.mean is None else min(float(self.goal.mean), float(self.goal.cap))
        return min(float(np.interp(most, np.arange(len(values)), values)) * (1.0 + 1e-12), 1.0)
