"""What every mechanism offers."""

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
from privselect.pairs.envelope import envelope_per_order
from privselect.pairs.dominating_pair import renyi_of_pair
from privselect.text_forms import Spec

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs import Bracket, DominatingPair

    Floats = NDArray[np.float64]


MAX_RUNS = 10**9
_MOST_CARE = 2e-6  # the accuracy that is tried last where a coarser one was asked for and missed
_ORDERS, _RUNS = Range(1.0, math.inf, low_open=True), integer_range(1, MAX_RUNS)


class Mechanism(Spec):
    """A frozen description of something private.

    A subclass says which pairs dominate it (:meth:`_make_brackets`); everything else follows from them.
    """

    __slots__ = ()
    sensitivity: ClassVar[str | None] = None  # what the noise is measured against, where there is noise

    @property
    def neighbours(self) -> str:
        """The neighbouring relation that the guarantee is for: "add_remove", "replace_one", or "any" (the caller's own)."""
        return ANY

    @abstractmethod
    def _make_brackets(self, accuracy: float, /) -> tuple[Bracket, ...]:
        """Return one bracket for each order of the neighbours: any two neighbours have an order that one bracket covers.

        Mechanisms whose cells can be refined make them fine enough for a relative ``accuracy`` in epsilon; others ignore it.
        """

    @property
    def brackets(self) -> tuple[Bracket, ...]:
        """The ordered pairs of neighbours, made once."""
        return self.brackets_within(ACCURACY)

    def brackets_within(self, accuracy: float) -> tuple[Bracket, ...]:
        """Return the brackets for a relative accuracy in epsilon, made once for each accuracy."""
        return _cached_brackets(self, accuracy)

    @property
    def brackets_by_order(self) -> dict[str, Bracket]:
        """One bracket for each order of the neighbours ("both", or "remove" and "add") that holds whichever of :attr:`cases` applies."""
        return envelope_per_order(self.brackets)

    @property
    def cases(self) -> tuple[Mechanism, ...]:
        """For each two neighbours, one of these leaks at least as much as this does, the same one in every run: itself, for most."""
        return (self,)

    def composition_steps(self) -> tuple[tuple[Mechanism, int], ...]:
        """What it is composed of, and how many times each: itself, once, for most."""
        return ((self, 1),)

    def composition_step(self) -> CompositionStep:
        """What composition asks of one step; the order "remove" where there are two."""
        return CompositionStep(next(iter(self.brackets_by_order.values())))

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """The mechanism is (epsilon, delta)-DP: delta for one or many real epsilons."""
        eps = check_array("epsilon", epsilon, REAL)
        uppers = [bracket.upper.hockey_stick(eps, side=1) for bracket in self.brackets]
        lowers = [low.hockey_stick(eps, side=-1) for bracket in self.brackets for low in bracket.lowers]
        return interval_of_maxima(uppers, lowers)

    def epsilon_at(self, delta: ArrayLike, *, accuracy: float | None = None) -> Interval:
        """The mechanism is (epsilon, delta)-DP: the least epsilon >= 0 for one or many deltas.

        With ``accuracy``, the ends are at most that far apart, relative; an accuracy that cannot be reached is refused.
        """
        wanted = check_array("delta", delta, OPEN_UNIT)
        asked = check_accuracy(accuracy)
        return epsilon_to_accuracy(lambda accuracy: self._epsilon_within(wanted, accuracy), asked)

    def epsilon_fast(self, delta: ArrayLike, *, accuracy: float = ACCURACY) -> Interval:
        """As :meth:`epsilon_at`, with the care that ``accuracy`` asks for and no more.

        Quicker, proved from both sides all the same, and not refused where the ends stay further apart.
        """
        return self._epsilon_within(check_array("delta", delta, OPEN_UNIT), check_number("accuracy", accuracy, ACCURACY_RANGE))

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        brackets = self.brackets_within(accuracy)
        uppers = [bracket.upper.epsilon_at(delta, side=1) for bracket in brackets]
        lowers = [low.epsilon_at(delta, side=-1) for bracket in brackets for low in bracket.lowers]
        return interval_of_maxima(uppers, lowers)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """An upper bound on the Renyi divergence of each order alpha > 1, greatest over both orders of the neighbours."""
        orders = check_orders(alpha)
        curves = [renyi_of_pair(pair, orders) for bracket in self.brackets for pair in (bracket.upper, bracket.upper.reverse)]
        return np.asarray(np.maximum.reduce(curves))

    def repeated(self, times: int, accuracy: float = ACCURACY) -> tuple[DominatingPair, ...]:
        """Pairs that dominate ``times`` independent runs, all outputs released; ``accuracy`` in epsilon, relative, about.

        They are runs of one and the same mechanism: the case that applies is the same in all of them.
        """
        from privselect.mechanisms.composed import composed_brackets

        runs = check_times(times)
        if self.cases != (self,):
            return tuple(pair for case in self.cases for pair in case.repeated(runs, accuracy))
        return tuple(bracket.upper for bracket in composed_brackets([(step, count * runs) for step, count in self.composition_steps()], accuracy))


@dataclass(frozen=True, slots=True)
class StatedMechanism(Mechanism):
    """One whose noise or guarantee is stated for the caller's own neighbouring relation, which may be named."""

    neighbours: str = field(default=ANY, kw_only=True)

    def __post_init__(self) -> None:
        Spec.__post_init__(self)
        check_relation(self.neighbours)


@lru_cache(maxsize=64)
def _cached_brackets(mechanism: Mechanism, accuracy: float) -> tuple[Bracket, ...]:
    return mechanism._make_brackets(accuracy)  # noqa: SLF001


def check_accuracy(accuracy: float | None) -> float | None:
    """How far the ends of an epsilon may be apart, relative."""
    return None if accuracy is None else check_number("accuracy", accuracy, ACCURACY_RANGE)


def epsilon_to_accuracy(find: Callable[[float], Interval], accuracy: float | None) -> Interval:
    """What ``find`` finds for an accuracy, with more care where that does not suffice; refused if its ends stay too far apart."""
    if accuracy is None:
        return find(ACCURACY)
    gaps = []
    for care in sorted({accuracy, 0.3 * accuracy, min(accuracy, _MOST_CARE)}, reverse=True):
        found = find(care)
        if found.lower is None:
            raise AccuracyError(f"an `accuracy` of {format_value(accuracy)} cannot be promised where no lower end is proved")
        lower, upper = np.asarray(found.lower), np.asarray(found.upper)
        with np.errstate(divide="ignore", invalid="ignore"):
            gaps.append(float(np.where(upper == lower, 0.0, upper / lower - 1.0).max()))
        if gaps[-1] <= accuracy:
            return found
        if not math.isfinite(gaps[-1]):
            break
    best = min(gaps)
    named = "none can" if math.isinf(best) else f"{best + 0.05 * 10.0 ** math.floor(math.log10(best)):.1e} can"  # rounded up
    raise AccuracyError(f"an `accuracy` of {format_value(accuracy)} in epsilon cannot be reached here; {named}")


def interval_of_maxima(uppers: list[Floats], lowers: list[Floats]) -> Interval:
    """The greatest of each, as an interval; without a lower end where there is none."""
    upper = np.maximum.reduce(uppers)
    if not lowers:
        return Interval(None, scalar_or_array(upper))
    lower = np.maximum.reduce(lowers)
    if np.any(lower > upper * (1.0 + 1e-9) + 1e-300):
        raise ArithmeticError("a lower bound lies above an upper one: one of them is wrong")  # never to pass for a number
    return Interval(scalar_or_array(np.minimum(lower, upper)), scalar_or_array(upper))


def check_orders(alpha: ArrayLike) -> Floats:
    """Orders of Renyi divergences, each above 1."""
    return check_array("alpha", alpha, _ORDERS)


def check_times(times: int) -> int:
    """A number of runs."""
    return int(check_number("times", times, _RUNS))


def scalar_or_array(values: Floats) -> Any:
    """A Python float for a single number, the array itself otherwise."""
    return float(values) if np.ndim(values) == 0 else values
