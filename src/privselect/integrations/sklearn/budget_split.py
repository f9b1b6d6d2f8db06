"""A budget for one fit, from that of a whole search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from privselect._util.validation import OPEN_UNIT, POSITIVE, check_number, format_value
from privselect.counts import Count
from privselect.errors import ParameterError
from privselect.integrations.sklearn.pipeline import private_part
from privselect.mechanisms import Mechanism
from privselect.regression.ops.calibration import largest_mu
from privselect.selection import Selection
from privselect.text_forms import parse
from collections.abc import Callable



_CLOSE = 1e-4  # of the fit's own epsilon
_LEAST = 1e-4  # own epsilons below it are not tried
_MOST = 100.0


def sized_for_search(estimator: Any, count: Any, *, epsilon: float, delta: float) -> Any:
    """A clone whose own ``epsilon`` and ``delta`` are such that a search of ``count`` trials of it is (epsilon, delta)-DP.

    Its own delta is ``delta`` by the expected number of trials, its own epsilon the largest found for which the selection stays within.
    Where what a fit leaks depends on other parameters too, those of ``estimator`` are taken; of a pipeline, those of its last step.
    A hold-out that is counted with noise is not looked at: a search with one costs the larger of the two selections.
    """
    goal, share = check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    law = parse(count) if isinstance(count, str) else count
    if not isinstance(law, Count):
        raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(count)}")
    prefix = _prefix(estimator)
    own_delta = share / max(law.expected(), 1.0)
    if own_delta == 0.0:
        raise ParameterError(f"`delta` must be greater, as it is shared among {law.expected():g} trials, got {format_value(delta)}")

    def sized(own: float) -> Any:
        return clone(estimator).set_params(**{f"{prefix}epsilon": own, f"{prefix}delta": own_delta})

    def price(own: float) -> float:
        return float(Selection(private_part(sized(own)).mechanism, law).epsilon_at(share).upper)

    own = _largest(price, goal)
    if own == 0.0:
        raise ParameterError(
            f"`epsilon` must be greater for {law} and delta={share:g}, as no fit leaks little enough, got {format_value(epsilon)}"
        )
    return sized(own)


def _largest(price: Callable[[float], float], goal: float) -> float:
    """The largest argument found that costs at most the goal, and something: 0 where none does, as what costs nothing tells nothing."""
    low, high = (0.0, 0.0), (math.inf, math.inf)  # an own epsilon and its price: one that fits, and one that does not
    guess, by_line = min(goal, _MOST), True
    while high[0] > max(low[0] * (1.0 + _CLOSE), _LEAST) and low[0] < _MOST and low[1] < goal * (1.0 - _CLOSE):
        found = guess, price(guess)
        low, high = (found, high) if found[1] <= goal else (low, found)
        # Every other time in the middle: where the price jumps a line leads there in small steps.
        guess, by_line = _between(low, high, goal * (1.0 - 0.5 * _CLOSE) if by_line else math.nan), not by_line
    return low[0] if low[1] > 0.0 else 0.0


def _between(low: tuple[float, float], high: tuple[float, float], goal: float) -> float:
    """Where the straight line through both has the goal, and never too near to either end; without a goal in the middle."""
    if math.isinf(high[0]):
        return min(2.0 * low[0], _MOST)
    if math.isinf(high[1]) or math.isnan(goal):
        return 0.5 * (low[0] + high[0])
    share = (goal - low[1]) / (high[1] - low[1])
    return low[0] + (high[0] - low[0]) * min(max(share, 0.02), 0.98)


def _prefix(estimator: Any) -> str:
    prefix, part = "", estimator
    while isinstance(part, Pipeline):
        name, part = part.steps[-1]
        prefix += f"{name}__"
    known = part.get_params(deep=False) if hasattr(part, "get_params") else {}
    if not {"epsilon", "delta"} <= known.keys() or not isinstance(getattr(part, "mechanism", None), Mechanism):
        raise ParameterError(
            f"`estimator` must have parameters `epsilon` and `delta` and a `mechanism` that follows them, got {type(part).__name__}"
        )
    return prefix


_COUNT, _CENTRE = 0.01, 0.1  # of mu^2
_UP = 1.0 + 1e-12


@dataclass(frozen=True, slots=True)
class Parts:
    """The mu of the recipe, of the count of records beyond the bounds and of the centre; 0 for what is not released."""

    recipe: float
    count: float = 0.0
    centre: float = 0.0

    @property
    def beside(self) -> float:
        """Of all Gaussian releases but the recipe's, rounded up."""
        return math.hypot(self.count, self.centre) * _UP


Leak = Callable[[Parts, float], Mechanism]


@lru_cache(maxsize=1024)
def parts_for(leak: Leak, budget: tuple[float, float], *, counted: bool, centred: bool) -> Parts | None:
    """The largest parts for which what they ``leak`` is (epsilon, delta)-DP by its own accountant; None where none are.

    Remembered, as scikit-learn asks for a mechanism often: of public numbers alone.
    """
    epsilon, delta = budget

    def shared(mu: float) -> Parts:
        count, centre = _COUNT if counted else 0.0, _CENTRE if centred else 0.0
        return Parts(mu * math.sqrt(1.0 - count - centre), mu * math.sqrt(count), mu * math.sqrt(centre))

    mu = largest_mu(lambda mu: leak(shared(mu), delta), epsilon, delta)
    return shared(mu) if mu > 0.0 else None
