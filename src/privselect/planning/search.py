"""Searches for the riskiest value of a parameter that still meets a privacy budget."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privselect._util.safe_search import smallest_integer_where
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.planning.search_range import SearchRange

_LONGEST_STEP = math.log(8.0)  # of a step outside the bracket: with far less noise than needed the bound is slow to compute
_FIRST_RISKY_STEP = math.log(3.0)  # longest first step to a riskier value: the elasticity is still a guess
_STEPS = 80
_LARGEST_EXACT = 10**6  # integers up to here are solved exactly

_DENSE = 64  # integers are tried one by one up to here
_GROWTH = 1.05  # and beyond in steps of this factor
_STRIDE = 1.25  # step of largest_feasible, for expensive conditions


class InfeasibleError(ParameterError):
    """Not even the safest value meets the budget."""


class UnconstrainedError(ParameterError):
    """Even the riskiest value meets the budget."""


@dataclass(slots=True)
class BudgetSearch:
    """Secant steps on log(bound) over a search range, bracketed by values that meet and values that exceed the budget.

    The result is a value at which the bound was evaluated and is at most the budget. The search uses that the bound grows
    towards riskier values for speed only. It stops at a bound within the relative ``tolerance`` of the budget, or at a bracket
    narrower than ``bracket_tolerance``. With ``exact_integers`` an integer is final only if its riskier neighbour exceeds the budget.
    """

    bound: Callable[[float], float]
    search_range: SearchRange
    budget: float
    tolerance: float = 3e-6
    bracket_tolerance: float = 1e-5
    exact_integers: bool = True
    met: dict[float, float] = field(default_factory=dict)
    exceeded: dict[float, float] = field(default_factory=dict)
    elasticity: float = 0.5  # last estimate of d log(bound) / d log(parameter)

    def solve(self, start: float, elasticity: float = 0.5) -> float:
        """Return the riskiest value found that meets the budget, searching from ``start``; ``elasticity`` is a first guess."""
        self.elasticity, before = elasticity, (math.nan, math.nan)
        value, width = self.search_range.round_safely(start), math.inf
        for step in range(_STEPS):
            excess = self._evaluate(value)
            if self._is_finished(value, excess):
                break
            place = self._risk(value)
            run = place - before[0]
            if run != 0.0 and math.isfinite(run) and math.isfinite(before[1] + excess) and before[1] != excess:
                self.elasticity = min(max((excess - before[1]) / run, 0.01), 20.0)
            before = (place, excess)
            bisect = False
            if step % 3 == 2:  # bisect if secant steps have narrowed the bracket too little
                safe, unsafe = self._bracket()
                bisect, width = unsafe - safe > 0.5 * width, unsafe - safe
            value = self._next_value(place, excess, bisect=bisect, is_first=step == 0)
        return max(self.met, key=self._risk) if self.met else self._raise_infeasible()

    # The coordinate of a value, "risk", is its logarithm with the sign that makes riskier values larger.

    def _risk(self, value: float) -> float:
        return -self.search_range.safe_direction * self.search_range.to_log(value)

    def _value(self, risk: float) -> float:
        return self.search_range.from_log(-self.search_range.safe_direction * risk)

    def _evaluate(self, value: float) -> float:
        """Evaluate and record the bound; return its log ratio to the budget."""
        epsilon = self.bound(value)
        (self.met if epsilon <= self.budget else self.exceeded)[value] = epsilon
        return math.log(epsilon / self.budget) if epsilon > 0.0 else -math.inf

    def _bracket(self) -> tuple[float, float]:
        safe = max(map(self._risk, self.met), default=-math.inf)
        # A value that exceeds the budget may be safer than one that meets it, because the bound is not exactly monotone.
        return safe, min((self._risk(value) for value in self.exceeded if self._risk(value) > safe), default=math.inf)

    def _is_finished(self, value: float, excess: float) -> bool:
        if excess <= 0.0 and value == self.search_range.riskiest:
            raise UnconstrainedError(f"even {self.search_range.format(value)}")
        if excess > 0.0 and value == self.search_range.safest:
            self._raise_infeasible()
        safe, unsafe = self._bracket()
        if self.search_range.integer and self.exact_integers and abs(value) < _LARGEST_EXACT:
            return self._is_exact()
        return (
            -self.tolerance <= excess <= 0.0 or unsafe - safe <= self.bracket_tolerance or (self.search_range.integer and self._is_exact())
        )

    def _is_exact(self) -> bool:
        return bool(self.met) and self.search_range.riskier(max(self.met, key=self._risk)) in self.exceeded

    def _raise_infeasible(self) -> float:
        raise InfeasibleError(f"even {self.search_range.format(self.search_range.safest)}")

    def _next_value(self, place: float, excess: float, *, bisect: bool, is_first: bool) -> float:
        safe, unsafe = self._bracket()
        aim = -0.4 * self.tolerance
        point = place + (aim - excess) / self.elasticity if math.isfinite(excess) else place - math.copysign(_LONGEST_STEP, excess)
        point = min(max(point, place - _LONGEST_STEP), place + (_FIRST_RISKY_STEP if is_first else _LONGEST_STEP))
        if self.search_range.integer and not bisect:
            point = min(max(point, safe), unsafe)  # the loops below then move to an integer that was not tried
        elif math.isfinite(unsafe - safe) and (bisect or not safe < point < unsafe):
            point = 0.5 * (safe + unsafe)
        value = self._value(point)
        if self.search_range.integer:
            while value in self.met and value != self.search_range.riskiest:
                value = self.search_range.riskier(value)
            while value in self.exceeded and value != self.search_range.safest:
                value += self.search_range.safe_direction
        return value


def feasible_ranges(meets: Callable[[int], bool], low: int, high: int) -> tuple[tuple[int, int], ...]:
    """Return the ranges (first, last) of integers from ``low`` to ``high`` for which ``meets`` holds.

    Integers are tried one by one at first, then in steps of 5%; the bounds of each range found are exact. A range that starts and
    ends between two neighbouring trial points is missed.
    """
    places = _trial_points(low, high)
    seen = {place: meets(place) for place in places}

    def edge(left: int, right: int) -> int:
        """Return the last integer that gives the same answer as ``left``; ``right`` gives the other answer."""
        return smallest_integer_where(lambda place: meets(place) != seen[left], left, right) - 1

    ranges: list[tuple[int, int]] = []
    first = places[0] if seen[places[0]] else None
    for before, here in itertools.pairwise(places):
        if seen[here] == seen[before]:
            continue
        last = edge(before, here)
        if first is None:
            first = last + 1
        else:
            ranges.append((first, last))
            first = None
    return (*ranges, (first, places[-1])) if first is not None else tuple(ranges)


def largest_feasible(meets: Callable[[int], bool], low: int, high: int) -> int:
    """Return the largest integer up to which ``meets`` held at every integer tried, starting from ``low``.

    Trial points grow by 25% up to the first that fails; bisection then finds the exact edge. The result is less than ``low`` if
    ``low`` fails, and ``high`` if no trial point fails. Failures between two trial points are missed.
    """
    last, ahead = low - 1, low
    while meets(ahead):
        last = ahead
        if ahead == high:
            return high
        ahead = min(max(ahead + 1, math.floor(ahead * _STRIDE)), high)
    return smallest_integer_where(lambda place: not meets(place), last, ahead) - 1


def _trial_points(low: int, high: int) -> list[int]:
    places = list(range(low, min(low + _DENSE, high) + 1))
    while places[-1] < high:
        places.append(min(math.ceil(places[-1] * _GROWTH), high))
    return places
