"""Divide a privacy budget: that of a search among its fits, and that of one fit among its releases."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sklearn.base import clone

from privselect._util.validation import OPEN_UNIT, POSITIVE, check_number, format_value
from privselect.counts import Count
from privselect.errors import ParameterError
from privselect.integrations.sklearn.pipeline import final_estimator, final_prefix
from privselect.mechanisms import Mechanism
from privselect.regression.methods import RegressionMethod
from privselect.regression.ops.calibration import largest_mu
from privselect.selection import Selection
from privselect.text_forms import parse

_TOLERANCE = 1e-4  # relative, of the epsilon of one fit
_SMALLEST, _LARGEST = 1e-4, 100.0  # epsilons of one fit that are tried
_COUNT_SHARE, _CENTRE_SHARE = 0.01, 0.1  # of mu^2
_UP = 1.0 + 1e-12


@dataclass(frozen=True, slots=True)
class MuBudget:
    """The mu of the regression method, of the count of clipped records and of the centre; 0 if one is not released."""

    method: float
    count: float = 0.0
    centre: float = 0.0

    @property
    def extra(self) -> float:
        """The mu of the count and the centre together, rounded up."""
        return math.hypot(self.count, self.centre) * _UP


MethodFactory = Callable[[MuBudget, float, float, int], RegressionMethod]  # from mu budget, delta, ridge and number of records


def mechanism_within(make_method: MethodFactory, budget: MuBudget, delta: float) -> Mechanism:
    """Return what a method with this mu budget leaks; it does not depend on the ridge and the number of records."""
    return make_method(budget, delta, 1.0, 1).mechanism


@lru_cache(maxsize=1024)
def split_budget(make_method: MethodFactory, budget: tuple[float, float], *, counted: bool, centred: bool) -> MuBudget | None:
    """Return the largest mu budget whose mechanism is (epsilon, delta)-DP by its own accountant; None if there is none.

    The result is cached because scikit-learn often requests a mechanism. It depends on public numbers alone.
    """
    epsilon, delta = budget

    def split(mu: float) -> MuBudget:
        count, centre = _COUNT_SHARE if counted else 0.0, _CENTRE_SHARE if centred else 0.0
        return MuBudget(mu * math.sqrt(1.0 - count - centre), mu * math.sqrt(count), mu * math.sqrt(centre))

    mu = largest_mu(lambda mu: mechanism_within(make_method, split(mu), delta), epsilon, delta)
    return split(mu) if mu > 0.0 else None


def sized_for_search(estimator: Any, count: Any, *, epsilon: float, delta: float) -> Any:
    """Return a clone whose ``epsilon`` and ``delta`` make a search with ``count`` trials (epsilon, delta)-DP.

    The delta of one fit is ``delta`` divided by the expected number of trials. Its epsilon is the largest one found that meets the budget.
    Other parameters keep the values of ``estimator``. In a pipeline, the parameters are those of the last step. The noise of a hold-out is
    not included: a search with one costs the larger of the two selections.
    """
    budget, total_delta = check_number("epsilon", epsilon, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    law = parse(count) if isinstance(count, str) else count
    if not isinstance(law, Count):
        raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(count)}")
    _check_has_budget(final_estimator(estimator))
    prefix = final_prefix(estimator)
    fit_delta = total_delta / max(law.expected(), 1.0)
    if fit_delta == 0.0:
        raise ParameterError(f"`delta` must be larger to be divided among {law.expected():g} trials, got {format_value(delta)}")

    def sized(fit_epsilon: float) -> Any:
        return clone(estimator).set_params(**{f"{prefix}epsilon": fit_epsilon, f"{prefix}delta": fit_delta})

    def cost(fit_epsilon: float) -> float:
        return float(Selection(final_estimator(sized(fit_epsilon)).mechanism, law).epsilon_at(total_delta).upper)

    fit_epsilon = _largest_within(cost, budget)
    if fit_epsilon == 0.0:
        raise ParameterError(
            f"`epsilon` must be larger for {law} and delta={total_delta:g}, got {format_value(epsilon)}: no fit leaks little enough"
        )
    return sized(fit_epsilon)


def _largest_within(cost: Callable[[float], float], budget: float) -> float:
    """Return the largest argument found with a cost in (0, budget]; 0 if there is none, because a fit without cost has no information."""
    low, high = (0.0, 0.0), (math.inf, math.inf)  # epsilons of one fit with their costs: one within the budget, one beyond it
    guess, by_secant = min(budget, _LARGEST), True
    while high[0] > max(low[0] * (1.0 + _TOLERANCE), _SMALLEST) and low[0] < _LARGEST and low[1] < budget * (1.0 - _TOLERANCE):
        found = guess, cost(guess)
        low, high = (found, high) if found[1] <= budget else (low, found)
        # Bisect every other time: at a jump of the cost the secant makes only small steps.
        guess, by_secant = _between(low, high, budget * (1.0 - 0.5 * _TOLERANCE) if by_secant else math.nan), not by_secant
    return low[0] if low[1] > 0.0 else 0.0


def _between(low: tuple[float, float], high: tuple[float, float], target: float) -> float:
    """Return the point where the secant reaches the target, kept away from both ends; the midpoint if the target is NaN."""
    if math.isinf(high[0]):
        return min(2.0 * low[0], _LARGEST)
    if math.isinf(high[1]) or math.isnan(target):
        return 0.5 * (low[0] + high[0])
    share = (target - low[1]) / (high[1] - low[1])
    return low[0] + (high[0] - low[0]) * min(max(share, 0.02), 0.98)


def _check_has_budget(estimator: Any) -> None:
    parameters = estimator.get_params(deep=False) if hasattr(estimator, "get_params") else {}
    if not {"epsilon", "delta"} <= parameters.keys() or not isinstance(getattr(estimator, "mechanism", None), Mechanism):
        raise ParameterError(
            f"`estimator` must have parameters `epsilon` and `delta` and a `mechanism` that depends on them, got {type(estimator).__name__}"
        )
