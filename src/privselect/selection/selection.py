"""Private selection: draw K, run K trials, release only the best. The result is a mechanism again, so selections nest."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import OPEN_UNIT, REAL, check_array, check_number, format_value
from privselect.counts.base import Count
from privselect.errors import NotCoveredError, ParameterError
from privselect.interval import Interval
from privselect.mechanisms.base import Mechanism, check_orders, scalar_or_array
from privselect.pairs import Bracket
from privselect.pairs.compose import ACCURACY
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.exact.accountant import Accountant
from privselect.selection.selected_pairs import selected_brackets
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_ROUNDING = 1e-15  # of a sum of numbers below 1
_MAX_COMPOSED = 32  # a K up to this is also bounded by the release of every trial
_MAX_COMPOSED_ALONE = 1000  # the same if no other bound is finite


@register
@dataclass(frozen=True, slots=True)
class Selection(Mechanism):
    """Draw K from ``count``, run ``mechanism`` K times, release only the best-scoring output (a fixed symbol if K = 0).

    Epsilons above 700 are not resolved: the lower bound is then 700, and the upper bound may be infinite.
    """

    text_name = "selection"
    is_factor = True

    mechanism: Mechanism = field(metadata={"positional": True})
    count: Count = field(metadata={"positional": True})

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(self.mechanism)}")
        if not isinstance(self.count, Count):
            raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(self.count)}")

    @property
    def neighbours(self) -> str:
        """The neighbouring relation of the trials."""
        return self.mechanism.neighbours

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """The selections over the cases of the trials: all trials of a run are of the same case."""
        inner = self.mechanism.cases
        return (self,) if inner == (self.mechanism,) else tuple(Selection(case, self.count) for case in inner)

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """Return bounds on delta for one or many real epsilons."""
        eps = check_array("epsilon", epsilon, REAL)
        proven = all(bracket.lowers for bracket in self.mechanism.brackets)
        uppers = _map_elements(self._upper, eps)
        lowers = np.minimum(_map_elements(self._lower, eps), uppers) if proven else None
        return Interval(None if lowers is None else scalar_or_array(lowers), scalar_or_array(uppers))

    def upper_curve(self) -> Callable[[float], float]:
        """Return the upper bound of :meth:`delta_at` as a function for many epsilons >= 0; nearby epsilons share their work."""
        curves = [accountant.upper_curve() for accountant in self._accountants()]
        return lambda epsilon: max(curve(epsilon) for curve in curves)

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        by_case = _cached_accountants(self, accuracy)
        proven = all(accountant.bracket.lowers for accountants in by_case for accountant in accountants)
        pairs = [_epsilon_interval(_worst_case_first(by_case, d), d) for d in delta.ravel().tolist()]
        uppers = np.array([upper for _, upper in pairs]).reshape(delta.shape)
        lowers = np.array([lower for lower, _ in pairs]).reshape(delta.shape)
        return Interval(scalar_or_array(lowers) if proven else None, scalar_or_array(uppers))

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Return Papernot and Steinke's bound for the law of K, or infinity if there is none."""
        from privselect.selection.bounds.renyi_bounds import selection_renyi_curve

        orders = check_orders(alpha)
        try:
            return selection_renyi_curve(self.mechanism, self.count)(orders)
        except NotCoveredError:
            return np.full(orders.shape, np.inf)

    def selection_gap(self, delta: float) -> float:
        """Return ``upper/lower - 1`` in epsilon, both for the same discrete pair: the gap left by the selection step alone."""
        at = check_number("delta", delta, OPEN_UNIT)
        accountants = [Accountant(Bracket(a.bracket.upper, (a.bracket.upper,)), self.count, a.composed) for a in self._accountants()]
        lower, upper = _epsilon_interval(accountants, at)
        if not math.isfinite(upper):
            return math.inf
        return upper / lower - 1.0 if lower > 0.0 else (0.0 if upper == 0.0 else math.inf)

    def _accountants(self) -> tuple[Accountant, ...]:
        return tuple(accountant for accountants in _cached_accountants(self, ACCURACY) for accountant in accountants)

    def _upper(self, epsilon: float) -> float:
        # The accountants cover both orders of the neighbours, so the reversed pair has the same bound.
        if epsilon < 0.0:
            return min(_reverse(self._upper, epsilon) + _ROUNDING, 1.0)
        return max(accountant.upper(epsilon) for accountant in self._accountants())

    def _lower(self, epsilon: float) -> float:
        if epsilon < 0.0:
            return max(_reverse(self._lower, epsilon) - _ROUNDING, 0.0)
        return max(accountant.lower(epsilon) for accountant in self._accountants())

    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        if self.cases != (self,):
            return tuple(bracket for case in self.cases for bracket in case.brackets_within(accuracy))
        if self.count.largest == 1 and self.count.probability_of_zero() == 0.0:
            return self.mechanism.brackets_within(accuracy)  # K is 1: the only trial is released
        (accountants,) = _cached_accountants(self, accuracy)
        return selected_brackets(accountants, accuracy)


def _epsilon_interval(accountants: Iterable[Accountant], delta: float) -> tuple[float, float]:
    lower, upper = 0.0, 0.0
    for accountant in accountants:
        if 0.0 < lower < LARGEST_EPSILON and accountant.is_safe(lower, delta):
            continue  # already safe where an earlier order is not: it changes neither bound
        one_lower, upper = accountant.epsilon_bounds(delta, at_least=upper)
        lower = max(lower, one_lower)
    return min(lower, upper), upper


def _reverse(bound: Callable[[float], float], epsilon: float) -> float:
    """Return ``delta_{P||P'}(e) = 1 - e^e + e^e delta_{P'||P}(-e)``, for e < 0."""
    return -math.expm1(epsilon) + math.exp(epsilon) * bound(-epsilon)


def _map_elements(bound: Callable[[float], float], values: Floats) -> Floats:
    return np.array([bound(value) for value in values.ravel().tolist()]).reshape(values.shape)


@lru_cache(maxsize=64)
def _cached_accountants(selection: Selection, accuracy: float) -> tuple[tuple[Accountant, ...], ...]:
    """Return, for each case of the trials, one accountant for each order of the neighbours."""
    return tuple(_accountants_of(case, selection.count, accuracy) for case in selection.mechanism.cases)


def _accountants_of(trial: Mechanism, count: Count, accuracy: float) -> tuple[Accountant, ...]:
    brackets = trial.brackets_within(accuracy)
    largest = composable_trials(count)
    if largest is None:
        return tuple(Accountant(bracket, count) for bracket in brackets)
    return tuple(Accountant(bracket, count, pair) for bracket, pair in zip(brackets, trial.composed_pairs(largest), strict=True))


def _worst_case_first(by_case: tuple[tuple[Accountant, ...], ...], delta: float) -> list[Accountant]:
    """Return the accountants by decreasing Ratio epsilon of their case: later ones often need one evaluation only."""

    def case_ratio_epsilon(accountants: tuple[Accountant, ...]) -> float:
        return max(ratio_epsilon(accountant.bracket.upper, accountant.count, delta) for accountant in accountants)

    ordered = by_case if len(by_case) == 1 else sorted(by_case, key=case_ratio_epsilon, reverse=True)
    return [accountant for accountants in ordered for accountant in accountants]


def selection_of(mechanism: Mechanism, count: Count | None) -> Mechanism:
    """Return the selection of the best of K trials, or the mechanism itself without a law of K."""
    return mechanism if count is None else Selection(mechanism, count)


def composable_trials(count: Count) -> int | None:
    """Return the largest K if it is small enough to bound the selection by the release of every trial, else None."""
    if count.largest is None:
        return None
    # If K is never 1, only composition bounds the largest losses.
    limit = _MAX_COMPOSED if np.isfinite(count.log_pmf(1)) else _MAX_COMPOSED_ALONE
    return count.largest if count.largest <= limit else None
