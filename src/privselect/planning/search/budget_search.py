"""The least safe value of a parameter that still meets a budget, by few evaluations of a costly bound."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.planning.search.search_range import Axis

_FARTHEST = math.log(8.0)  # a step into the unknown: far less noise than needed costs much time
_STEPS = 80
_MOST_SETTLED = 10**6  # whole numbers up to here are settled to the last one


class NothingMeetsItError(ParameterError):
    """Not even the safest value meets the budget."""


class AnythingMeetsItError(ParameterError):
    """Even the least safe value meets the budget."""


@dataclass(slots=True)
class Search:
    """Secant steps on log(bound) over the axis, kept between what met the budget and what did not.

    The answer is a value at which the bound was seen to be at most the budget; that the bound grows towards the less safe end is
    used to find it quickly and is not needed for its truth. The search stops at a bound within ``close`` of the budget, relative, or
    at values within ``narrow`` of each other; with ``to_the_last``, a whole number ends at a neighbour that was seen to exceed.
    """

    bound: Callable[[float], float]
    axis: Axis
    budget: float
    close: float = 3e-6
    narrow: float = 1e-5
    to_the_last: bool = True
    met: dict[float, float] = field(default_factory=dict)
    exceeded: dict[float, float] = field(default_factory=dict)
    elasticity: float = 0.5  # d log(bound) / d log(parameter), as last seen

    def solve(self, start: float, elasticity: float = 0.5) -> float:
        """The least safe value found that meets the budget, searched for from ``start``; ``elasticity`` is a guess."""
        self.elasticity, before = elasticity, (math.nan, math.nan)
        value, width = self.axis.kept(start), math.inf
        for step in range(_STEPS):
            excess = self._excess(value)
            if self._done(value, excess):
                break
            place = self._place(value)
            run = place - before[0]
            if run != 0.0 and math.isfinite(run) and math.isfinite(before[1] + excess) and before[1] != excess:
                self.elasticity = min(max((excess - before[1]) / run, 0.01), 20.0)
            before = (place, excess)
            bisect = False
            if step % 3 == 2:  # secant steps that narrow too little get one in the middle
                safe, unsafe = self._bracket()
                bisect, width = unsafe - safe > 0.5 * width, unsafe - safe
            value = self._next(place, excess, bisect=bisect)
        return max(self.met, key=self._place) if self.met else self._nothing()

    # A place grows towards the less safe end: a greater one leaks more.

    def _place(self, value: float) -> float:
        return -self.axis.towards_safe * self.axis.place(value)

    def _value(self, place: float) -> float:
        return self.axis.value(-self.axis.towards_safe * place)

    def _excess(self, value: float) -> float:
        epsilon = self.bound(value)
        (self.met if epsilon <= self.budget else self.exceeded)[value] = epsilon
        return math.log(epsilon / self.budget) if epsilon > 0.0 else -math.inf

    def _bracket(self) -> tuple[float, float]:
        safe = max(map(self._place, self.met), default=-math.inf)
        # An exceeding value on the safe side of one that meets the budget is the bound's own unevenness.
        return safe, min((self._place(value) for value in self.exceeded if self._place(value) > safe), default=math.inf)

    def _done(self, value: float, excess: float) -> bool:
        if excess <= 0.0 and value == self.axis.last:
            raise AnythingMeetsItError(f"even {self.axis.shown(value)}")
        if excess > 0.0 and value == self.axis.safest:
            self._nothing()
        safe, unsafe = self._bracket()
        if self.axis.whole and self.to_the_last and abs(value) < _MOST_SETTLED:
            return self._settled()
        return -self.close <= excess <= 0.0 or unsafe - safe <= self.narrow or (self.axis.whole and self._settled())

    def _settled(self) -> bool:
        return bool(self.met) and self.axis.less_safe(max(self.met, key=self._place)) in self.exceeded

    def _nothing(self) -> float:
        raise NothingMeetsItError(f"even {self.axis.shown(self.axis.safest)}")

    def _next(self, place: float, excess: float, *, bisect: bool) -> float:
        safe, unsafe = self._bracket()
        aim = -0.4 * self.close
        point = place + (aim - excess) / self.elasticity if math.isfinite(excess) else place - math.copysign(_FARTHEST, excess)
        point = min(max(point, place - _FARTHEST), place + _FARTHEST)
        if self.axis.whole and not bisect:
            point = min(max(point, safe), unsafe)  # and then the neighbour of one that is known
        elif math.isfinite(unsafe - safe) and (bisect or not safe < point < unsafe):
            point = 0.5 * (safe + unsafe)
        value = self._value(point)
        if self.axis.whole:
            while value in self.met and value != self.axis.last:
                value = self.axis.less_safe(value)
            while value in self.exceeded and value != self.axis.safest:
                value += self.axis.towards_safe
        return value
