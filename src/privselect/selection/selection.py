"""Private selection itself: draw K, run K trials, release only the best. It is a mechanism again, so it nests."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import OPEN_UNIT, REAL, check_array, check_number, format_value
from privselect.counts.base import Count
from privselect.errors import NotCoveredError, ParameterError
from privselect.interval import Interval
from privselect.mechanisms.base import Mechanism, check_accuracy, check_orders, plain, reached
from privselect.pairs import Bracket, pair_from_curve
from privselect.pairs.compose import ACCURACY
from privselect.selection.bounds.ratio import ratio_epsilon
from privselect.selection.exact.accountant import Accountant
from privselect.selection.exact.engine import ExactLower
from privselect.selection.safe_search import LARGEST_EPSILON
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_ROUNDING = 1e-15  # of a sum of numbers below 1
_MOST_COMPOSED = 32  # a bounded K up to this is also bounded by releasing every trial
_MOST_COMPOSED_ALONE = 1000
_CURVE_FALL = 0.15  # fall of log delta between the knots of a nested selection's curve, and twice that
_CURVE_DEEP = 1e-12  # below this
_CURVE_FLOOR = 1e-40  # where that curve stops; the rest counts as infinite loss
_ORDERS_AT = (1e-2, 1e-4, 1e-6, 1e-9)  # deltas for which a nested selection offers its worst orders


@register
@dataclass(frozen=True, slots=True)
class Selection(Mechanism):
    """Draw K from ``count``, run ``mechanism`` K times, release the best-scoring output alone (a fixed symbol if K = 0)."""

    text_name = "selection"

    mechanism: Mechanism = field(metadata={"positional": True})
    count: Count = field(metadata={"positional": True})

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise ParameterError(f"`mechanism` must be a mechanism such as gaussian(sigma=4), got {format_value(self.mechanism)}")
        if not isinstance(self.count, Count):
            raise ParameterError(f"`count` must be a law of K such as geometric(mean=30), got {format_value(self.count)}")

    @property
    def neighbours(self) -> str:
        """That of the trials."""
        return self.mechanism.neighbours

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """All trials are of the same case: the selections over those of the trials."""
        inner = self.mechanism.cases
        return (self,) if inner == (self.mechanism,) else tuple(Selection(case, self.count) for case in inner)

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """The selection is (epsilon, delta)-DP: delta for one or many real epsilons."""
        eps = check_array("epsilon", epsilon, REAL)
        proved = all(bracket.lowers for bracket in self.mechanism.brackets)
        uppers = _each(self._upper, eps)
        lowers = np.minimum(_each(self._lower, eps), uppers) if proved else None
        return Interval(None if lowers is None else plain(lowers), plain(uppers))

    def upper_curve(self) -> Callable[[float], float]:
        """The upper end of :meth:`delta_at` for epsilon >= 0, to be asked again and again: neighbouring epsilons share their work."""
        curves = [accountant.curve() for accountant in self._accountants()]
        return lambda epsilon: max(curve(epsilon) for curve in curves)

    def epsilon_at(self, delta: ArrayLike, *, accuracy: float | None = None) -> Interval:
        """The selection is (epsilon, delta)-DP: the least epsilon >= 0 for one or many deltas.

        Where epsilon is beyond 700, the lower end says 700, and the upper end may be infinite. With ``accuracy``, the ends are at most
        that far apart, relative; an accuracy that cannot be reached is refused.
        """
        wanted = check_array("delta", delta, OPEN_UNIT)
        return reached(lambda within: self._epsilon_within(wanted, within), check_accuracy(accuracy))

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        by_case = _cached_accountants(self, accuracy)
        proved = all(accountant.bracket.lowers for accountants in by_case for accountant in accountants)
        pairs = [_epsilon_interval(_worst_first(by_case, d), d) for d in delta.ravel().tolist()]
        uppers = np.array([upper for _, upper in pairs]).reshape(delta.shape)
        lowers = np.array([lower for lower, _ in pairs]).reshape(delta.shape)
        return Interval(plain(lowers) if proved else None, plain(uppers))

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """By Papernot and Steinke's theorem for the law of K; infinite where there is none."""
        from privselect.selection.bounds.renyi_bounds import selection_curve

        orders = check_orders(alpha)
        try:
            return selection_curve(self.mechanism, self.count)(orders)
        except NotCoveredError:
            return np.full(orders.shape, np.inf)

    def selection_gap(self, delta: float) -> float:
        """``upper/lower - 1`` in epsilon with both ends on the same discrete pair: what the selection step alone leaves open."""
        wanted = check_number("delta", delta, OPEN_UNIT)
        accountants = [Accountant(Bracket(a.bracket.upper, (a.bracket.upper,)), self.count, a.composed) for a in self._accountants()]
        lower, upper = _epsilon_interval(accountants, wanted)
        if not math.isfinite(upper):
            return math.inf
        return upper / lower - 1.0 if lower > 0.0 else (0.0 if upper == 0.0 else math.inf)

    def _accountants(self) -> tuple[Accountant, ...]:
        return tuple(accountant for accountants in _cached_accountants(self, ACCURACY) for accountant in accountants)

    def _upper(self, epsilon: float) -> float:
        # A symmetric mechanism, and an add/remove one with both orders at hand, is its own reverse.
        if epsilon < 0.0:
            return min(_reversed(self._upper, epsilon) + _ROUNDING, 1.0)
        return max(accountant.upper(epsilon) for accountant in self._accountants())

    def _lower(self, epsilon: float) -> float:
        if epsilon < 0.0:
            return max(_reversed(self._lower, epsilon) - _ROUNDING, 0.0)
        return max(accountant.lower(epsilon) for accountant in self._accountants())

    def _make_brackets(self) -> tuple[Bracket, ...]:
        """Upper: the whole curve as a pair. Lower: a few real orders, each a pair of its own; their envelope is no lower bound."""
        if self.cases != (self,):
            return tuple(bracket for case in self.cases for bracket in case.brackets)
        accountants = {a.bracket.direction: a for a in self._accountants()}
        opposite = {"both": "both", "remove": "add", "add": "remove"}
        uppers = {direction: cache(accountant.curve()) for direction, accountant in accountants.items()}
        knots = _knots(lambda epsilon: max(upper(epsilon) for upper in uppers.values()))
        curves = {direction: np.array([upper(epsilon) for epsilon in knots]) for direction, upper in uppers.items()}
        return tuple(
            Bracket(
                pair_from_curve(knots, curves[direction], curves[opposite[direction]]),
                tuple(self._real_orders(accountant)),
                direction,
            )
            for direction, accountant in accountants.items()
        )

    def _real_orders(self, accountant: Accountant) -> list[DominatingPair]:
        found = []
        for pair in accountant.bracket.lowers:
            lower = ExactLower(pair, self.count)
            for delta in _ORDERS_AT:
                epsilon = accountant.epsilons(delta)[0]
                # Where more than this delta leaks outright no epsilon will do, and there is no order to look for.
                order = lower.staircase(epsilon) if epsilon < LARGEST_EPSILON else None
                if order is not None:
                    found.append(order.selected_pair(self.count))
        return found


def _epsilon_interval(accountants: Iterable[Accountant], delta: float) -> tuple[float, float]:
    lower, upper = 0.0, 0.0
    for accountant in accountants:
        if 0.0 < lower < LARGEST_EPSILON and accountant.is_safe(lower, delta):
            continue  # safe where the other order is not yet: it decides neither end
        one_lower, upper = accountant.epsilons(delta, at_least=upper)
        lower = max(lower, one_lower)
    return min(lower, upper), upper


def _reversed(bound: Callable[[float], float], epsilon: float) -> float:
    """``delta_{P||P'}(e) = 1 - e^e + e^e delta_{P'||P}(-e)``, for e < 0."""
    return -math.expm1(epsilon) + math.exp(epsilon) * bound(-epsilon)


def _each(bound: Callable[[float], float], values: Floats) -> Floats:
    return np.array([bound(value) for value in values.ravel().tolist()]).reshape(values.shape)


def _knots(upper: Callable[[float], float]) -> list[float]:
    """Epsilons from 0 on, spaced so that log delta falls about evenly."""
    knots, step = [0.0], 0.01
    value = upper(0.0)
    while value > _CURVE_FLOOR and knots[-1] < LARGEST_EPSILON and len(knots) < 1500:
        knots.append(min(knots[-1] + step, LARGEST_EPSILON))
        there = upper(knots[-1])
        fall = math.log(value / there) if there > 0.0 else 1.0
        if value == there < 1.0:
            break
        wanted = _CURVE_FALL if there > _CURVE_DEEP else 2.0 * _CURVE_FALL
        step *= min(max(wanted / max(fall, 1e-9), 0.2), 2.0)
        value = there
    return knots


@lru_cache(maxsize=64)
def _cached_accountants(selection: Selection, accuracy: float) -> tuple[tuple[Accountant, ...], ...]:
    """For each case of the trials, one for each order of the neighbours."""
    return tuple(_accountants_of(case, selection.count, accuracy) for case in selection.mechanism.cases)


def _accountants_of(trial: Mechanism, count: Count, accuracy: float) -> tuple[Accountant, ...]:
    brackets = trial.brackets_within(accuracy)
    largest = composed_trials(count)
    if largest is None:
        return tuple(Accountant(bracket, count) for bracket in brackets)
    return tuple(Accountant(bracket, count, pair) for bracket, pair in zip(brackets, trial.repeated(largest), strict=True))


def _worst_first(by_case: tuple[tuple[Accountant, ...], ...], delta: float) -> list[Accountant]:
    """Those of the case that seems to cost most, then the others, which most often need no more than a glance."""

    def rough(accountants: tuple[Accountant, ...]) -> float:
        return max(ratio_epsilon(accountant.bracket.upper, accountant.count, delta) for accountant in accountants)

    ordered = by_case if len(by_case) == 1 else sorted(by_case, key=rough, reverse=True)
    return [accountant for accountants in ordered for accountant in accountants]


def composed_trials(count: Count) -> int | None:
    """The largest K, where it is small enough for the release of every trial to be a bound worth having; None elsewhere."""
    if count.largest is None:
        return None
    # Without K = 1 nothing but composition bounds the largest losses.
    most = _MOST_COMPOSED if np.isfinite(count.log_pmf(1)) else _MOST_COMPOSED_ALONE
    return count.largest if count.largest <= most else None
