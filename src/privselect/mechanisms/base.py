"""The base class of all mechanisms."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privselect._util.validation import ACCURACY_RANGE, OPEN_UNIT, REAL, Range, check_array, check_number, format_value, integer_range
from privselect.errors import AccuracyError
from privselect.interval import Interval
from privselect.mechanisms.neighbours import ANY, check_relation
from privselect.pairs.compose import ACCURACY, CompositionStep
from privselect.pairs.dominating_pair import renyi_of_pair
from privselect.pairs.envelope import envelope_per_order
from privselect.text_forms import Spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs import Bracket, DominatingPair

    Floats = NDArray[np.float64]


MAX_RUNS = 10**9
_FINEST_ACCURACY = 2e-6  # tried last if a coarser accuracy was requested and missed
_ORDERS, _RUNS = Range(1.0, math.inf, low_open=True), integer_range(1, MAX_RUNS)


class Mechanism(Spec):
    """A frozen description of a private mechanism.

    A subclass defines the pairs that dominate it (:meth:`_make_brackets`). Everything else follows from them.
    """

    __slots__ = ()
    sensitivity: ClassVar[str | None] = None  # what the noise is measured against, if there is noise
    is_factor: ClassVar[bool] = False  # whether a composition computes the pair of all its runs by itself, and keeps it

    @property
    def neighbours(self) -> str:
        """The neighbouring relation of the guarantee: "add_remove", "replace_one", or "any" (the caller's relation)."""
        return ANY

    @abstractmethod
    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        """Return the ordered pairs, each between discrete lower and upper pairs: any two neighbours have an order that one covers.

        Mechanisms with refinable cells choose them for a relative ``accuracy`` in epsilon; others ignore it.
        """

    @property
    def brackets(self) -> tuple[Bracket, ...]:
        """The brackets at the default accuracy."""
        return self.brackets_within(ACCURACY)

    @lru_cache(maxsize=64)  # noqa: B019 - mechanisms are small and frozen
    def brackets_within(self, accuracy: float) -> tuple[Bracket, ...]:
        """Return the brackets for a relative accuracy in epsilon, if the mechanism can be refined."""
        return self._make_brackets(accuracy)

    @property
    def brackets_by_order(self) -> dict[str, Bracket]:
        """One bracket for each order of the neighbours ("both", or "remove" and "add"), valid for all :attr:`cases`."""
        return envelope_per_order(self.brackets)

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """Mechanisms of which, for any two neighbours, one leaks at least as much in every run; by default only this one."""
        return (self,)

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """Return the steps that this mechanism consists of, as (step, number of runs); by default itself, once."""
        return ((self, 1),)

    def repeated(self, times: int) -> Mechanism:
        """Return this number of runs with all outputs released, as one mechanism."""
        from privselect.mechanisms.composed import Composed

        return self if times == 1 else Composed((self,), times=times)

    def composition_step(self) -> CompositionStep:
        """Return this mechanism as one step of a composition, for the order "remove" if there are two."""
        return CompositionStep(next(iter(self.brackets_by_order.values())))

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """Compute delta of (epsilon, delta)-DP for one or many real epsilons."""
        eps = check_array("epsilon", epsilon, REAL)
        uppers = [bracket.upper.hockey_stick(eps, side=1) for bracket in self.brackets]
        lowers = [low.hockey_stick(eps, side=-1) for bracket in self.brackets for low in bracket.lowers]
        return interval_of_maxima(uppers, lowers)

    def upper_curve(self) -> Callable[[float], float]:
        """Return the upper bound of :meth:`delta_at` as a function for many epsilons >= 0."""
        return lambda epsilon: float(self.delta_at(epsilon).upper)

    def epsilon_at(self, delta: ArrayLike, *, accuracy: float | None = None) -> Interval:
        """Compute the smallest epsilon >= 0 of (epsilon, delta)-DP for one or many deltas.

        With ``accuracy``, the relative distance of the bounds is at most that. Raises AccuracyError if it cannot be reached.
        """
        deltas = check_array("delta", delta, OPEN_UNIT)
        requested = check_accuracy(accuracy)
        return epsilon_to_accuracy(lambda accuracy: self._epsilon_within(deltas, accuracy), requested)

    def epsilon_fast(self, delta: ArrayLike, *, accuracy: float = ACCURACY) -> Interval:
        """Compute :meth:`epsilon_at` in one pass, with only the effort that ``accuracy`` needs.

        Both bounds are still proved, but their distance may exceed ``accuracy``.
        """
        return self._epsilon_within(check_array("delta", delta, OPEN_UNIT), check_number("accuracy", accuracy, ACCURACY_RANGE))

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        brackets = self.brackets_within(accuracy)
        uppers = [bracket.upper.epsilon_at(delta, side=1) for bracket in brackets]
        lowers = [low.epsilon_at(delta, side=-1) for bracket in brackets for low in bracket.lowers]
        return interval_of_maxima(uppers, lowers)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Compute an upper bound on the Renyi divergence of each order alpha > 1, over both orders of the neighbours."""
        orders = check_orders(alpha)
        curves = [renyi_of_pair(pair, orders) for bracket in self.brackets for pair in (bracket.upper, bracket.upper.reverse)]
        return np.asarray(np.maximum.reduce(curves))

    def composed_pairs(self, times: int, accuracy: float = ACCURACY) -> tuple[DominatingPair, ...]:
        """Return pairs that dominate ``times`` independent runs with all outputs released.

        ``accuracy`` is an approximate relative accuracy in epsilon. The case that applies is the same in all runs.
        """
        from privselect.mechanisms.factors import composed_brackets

        runs = check_times(times)
        if self.cases != (self,):
            return tuple(pair for case in self.cases for pair in case.composed_pairs(runs, accuracy))
        steps = [(step, count * runs) for step, count in self.composition_steps()]
        return tuple(bracket.upper for bracket in composed_brackets(steps, accuracy))


@dataclass(frozen=True, slots=True)
class StatedMechanism(Mechanism):
    """A mechanism whose noise or guarantee is stated for the caller's neighbouring relation, which may be named."""

    neighbours: str = field(default=ANY, kw_only=True)

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        check_relation(self.neighbours)


def check_accuracy(accuracy: float | None) -> float | None:
    """Check the relative distance allowed between the bounds of an epsilon."""
    return None if accuracy is None else check_number("accuracy", accuracy, ACCURACY_RANGE)


def epsilon_to_accuracy(find: Callable[[float], Interval], accuracy: float | None) -> Interval:
    """Return ``find(accuracy)``, or a finer result if its bounds are too far apart; raise if no result is accurate enough."""
    if accuracy is None:
        return find(ACCURACY)
    gaps = []
    for attempt in sorted({accuracy, 0.3 * accuracy, min(accuracy, _FINEST_ACCURACY)}, reverse=True):
        found = find(attempt)
        if found.lower is None:
            raise AccuracyError(f"an `accuracy` of {format_value(accuracy)} needs a proved lower bound, which this mechanism does not have")
        lower, upper = np.asarray(found.lower), np.asarray(found.upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps.append(float(np.where(upper == lower, 0.0, upper / lower - 1.0).max()))
        if gaps[-1] <= accuracy:
            return found
        if not math.isfinite(gaps[-1]):
            break
    best = min(gaps)
    if math.isinf(best):
        reachable = "no accuracy can be reached"
    else:
        reachable = f"{best + 0.05 * 10.0 ** math.floor(math.log10(best)):.1e} can be reached"  # rounded up
    raise AccuracyError(f"an `accuracy` of {format_value(accuracy)} in epsilon cannot be reached here; {reachable}")


def interval_of_maxima(uppers: list[Floats], lowers: list[Floats]) -> Interval:
    """Return the interval from the largest lower bound to the largest upper bound; without a lower bound if there is none."""
    upper = np.maximum.reduce(uppers)
    if not lowers:
        return Interval(None, scalar_or_array(upper))
    lower = np.maximum.reduce(lowers)
    if np.any(lower > upper * (1.0 + 1e-9) + 1e-300):
        raise ArithmeticError("a lower bound exceeds an upper bound: one of them is wrong")
    return Interval(scalar_or_array(np.minimum(lower, upper)), scalar_or_array(upper))


def interval_of_cases(intervals: Iterable[Interval]) -> Interval:
    """Return the interval of the maximum over several cases. A lower bound of one case is one of all, even if other cases have none."""
    found = list(intervals)
    lowers = [np.asarray(interval.lower) for interval in found if interval.lower is not None]
    return interval_of_maxima([np.asarray(interval.upper) for interval in found], lowers)


def check_orders(alpha: ArrayLike) -> Floats:
    """Check orders of Renyi divergences, each above 1."""
    return check_array("alpha", alpha, _ORDERS)


def check_times(times: int) -> int:
    """Check a number of runs."""
    return int(check_number("times", times, _RUNS))


def scalar_or_array(values: Floats) -> Any:
    """Return a Python float for a single number, otherwise the array."""
    return float(values) if np.ndim(values) == 0 else values
