"""What every mechanism offers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from privselect.interval import Interval
from privselect.mechanisms.neighbours import ANY, check_relation
from privselect.pairs.pld import compose_pair
from privselect.parameters import OPEN_UNIT, REAL, Range, check_array, check_number, whole
from privselect.text import Described

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.pairs import Bracket, DominatingPair

    Floats = NDArray[np.float64]


_ORDERS, _RUNS = Range(1.0, math.inf, low_open=True), whole(1, 10**9)


class Mechanism(Described):
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
    def _make_brackets(self) -> tuple[Bracket, ...]:
        """The ordered pairs, each caught between discrete ones."""

    @property
    def brackets(self) -> tuple[Bracket, ...]:
        """The ordered pairs of neighbours, made once."""
        return _cached_brackets(self)

    def delta_at(self, epsilon: ArrayLike) -> Interval:
        """The mechanism is (epsilon, delta)-DP: delta for one or many real epsilons."""
        eps = check_array("epsilon", epsilon, REAL)
        uppers = [bracket.upper.hockey_stick(eps, side=1) for bracket in self.brackets]
        lowers = [low.hockey_stick(eps, side=-1) for bracket in self.brackets for low in bracket.lowers]
        return _greatest(uppers, lowers)

    def epsilon_at(self, delta: ArrayLike) -> Interval:
        """The mechanism is (epsilon, delta)-DP: the least epsilon >= 0 for one or many deltas."""
        wanted = check_array("delta", delta, OPEN_UNIT)
        uppers = [bracket.upper.epsilon_at(wanted, side=1) for bracket in self.brackets]
        lowers = [low.epsilon_at(wanted, side=-1) for bracket in self.brackets for low in bracket.lowers]
        return _greatest(uppers, lowers)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """An upper bound on the Renyi divergence of each order alpha > 1, greatest over both orders of the neighbours."""
        orders = check_orders(alpha)
        curves = [_renyi(pair, orders) for bracket in self.brackets for pair in (bracket.upper, bracket.upper.reverse)]
        return np.asarray(np.maximum.reduce(curves))

    def repeated(self, times: int) -> tuple[DominatingPair, ...]:
        """Pairs that dominate ``times`` independent runs, all outputs released."""
        runs = check_times(times)
        return tuple(compose_pair(bracket.upper, runs) for bracket in self.brackets)


@dataclass(frozen=True, slots=True)
class StatedMechanism(Mechanism):
    """One whose noise or guarantee is stated for the caller's own neighbouring relation, which may be named."""

    neighbours: str = field(default=ANY, kw_only=True)

    def __post_init__(self) -> None:
        Described.__post_init__(self)
        check_relation(self.neighbours)


@lru_cache(maxsize=64)
def _cached_brackets(mechanism: Mechanism) -> tuple[Bracket, ...]:
    return mechanism._make_brackets()  # noqa: SLF001


def _greatest(uppers: list[Floats], lowers: list[Floats]) -> Interval:
    upper = np.maximum.reduce(uppers)
    lower = np.minimum(np.maximum.reduce(lowers), upper) if lowers else None
    return Interval(None if lower is None else plain(lower), plain(upper))


def check_orders(alpha: ArrayLike) -> Floats:
    """Orders of Renyi divergences, each above 1."""
    return check_array("alpha", alpha, _ORDERS)


def check_times(times: int) -> int:
    """A number of runs."""
    return int(check_number("times", times, _RUNS))


def plain(values: Floats) -> Any:
    """A Python float for a single number, the array itself otherwise."""
    return float(values) if np.ndim(values) == 0 else values


def _renyi(pair: DominatingPair, alpha: Floats) -> Floats:
    """``log(sum p^a q^(1-a)) / (a - 1)``, in logs."""
    if pair.p_only > 0.0:
        return np.full(np.shape(alpha), np.inf)
    from scipy.special import logsumexp

    log_p, losses = np.log(pair.p), pair.losses
    flat = np.atleast_1d(alpha).ravel()
    values = np.array([logsumexp(log_p + (a - 1.0) * losses) / (a - 1.0) for a in flat])
    return np.asarray(np.maximum(values * (1.0 + 1e-12), 0.0).reshape(np.shape(alpha)))
