"""A mechanism of which only Renyi divergences are known."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import NON_NEGATIVE, Range, check_number, check_sequence, format_value
from privselect.errors import ParameterError
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.mechanisms.profile_knots import falling_knots
from privselect.mechanisms.renyi_to_dp import renyi_to_delta
from privselect.pairs import Bracket, DominatingPair, pair_from_curve
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_ORDER = Range(1.0, math.inf, low_open=True)
_LEAST_LOG = -660.0  # of a delta: near the smallest float
_FALL, _FAR_FALL = 0.1, 0.5  # of log delta from knot to knot, above and below e^_FAR


@register
@dataclass(frozen=True, slots=True)
class Renyi(StatedMechanism):
    """Every Renyi divergence of order ``alpha_i`` is at most ``epsilon_i``, in both directions, and nothing else is known.

    At each epsilon the greatest delta that one of these allows is taken (:func:`renyi_to_delta`), and the least over the orders and
    over both directions. At a single epsilon and for a single order some real mechanism leaks that much, but none has the whole
    curve: it is an upper bound only, and no lower end is claimed.
    """

    text_name = "renyi"

    orders: tuple[tuple[float, float], ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        StatedMechanism.__post_init__(self)
        entries = check_sequence("orders", self.orders, "pairs (alpha, epsilon) such as ((2, 0.1), (10, 0.6))")
        object.__setattr__(self, "orders", tuple(_order(entry) for entry in entries))
        if not self.orders:
            raise ParameterError("`renyi` needs at least one (alpha, epsilon), got none")

    def _make_brackets(self) -> tuple[Bracket, ...]:
        if any(divergence == 0.0 for _, divergence in self.orders):
            same = DominatingPair(np.ones(1), np.ones(1))  # a divergence of 0: both laws are one
            return (Bracket(same, (same,)),)
        knots = self._knots()
        curve = self._curve(knots)
        return (Bracket(pair_from_curve(knots, curve, curve), ()),)

    def _curve(self, epsilon: Floats) -> Floats:
        """The least bound over all orders at each epsilon >= 0; the bound on the other direction gives one by reversal."""
        bounds = [np.ones_like(epsilon)]
        for alpha, divergence in self.orders:
            bounds.append(renyi_to_delta(alpha, divergence, epsilon))
            factor = np.exp(epsilon)
            bounds.append(factor * renyi_to_delta(alpha, divergence, -epsilon) - np.expm1(epsilon) + 1e-15 * factor)
        return np.asarray(np.minimum.accumulate(np.minimum.reduce(bounds)))

    def _knots(self) -> Floats:
        """Epsilons from 0 on, at which log delta falls about evenly."""
        # Where lem:rdp_to_dp reaches the smallest float.
        ends = [value - (_LEAST_LOG + math.log(a)) / (a - 1.0) for a, value in self.orders]
        end = min(max(min(ends), 1e-3), LARGEST_LOSS)
        return falling_knots(self._curve, end, _FALL, _FAR_FALL)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """By chords: ``(alpha-1) D_alpha`` is convex in alpha, and 0 at alpha = 1. Infinite beyond the largest order known."""
        orders = check_orders(alpha)
        known = sorted(self.orders)
        # Divergences grow with the order: one of a larger order holds for each smaller one.
        values = np.minimum.accumulate(np.array([value for _, value in known])[::-1])[::-1]
        places = np.array([1.0, *(a for a, _ in known)])
        moments = np.append(0.0, (places[1:] - 1.0) * values)
        return np.asarray(np.interp(orders, places, moments, right=np.inf) / (orders - 1.0) * (1.0 + 1e-12))


def _order(entry: Any) -> tuple[float, float]:
    try:
        alpha, epsilon = entry
    except (TypeError, ValueError):
        raise ParameterError(f"each order must be a pair (alpha, epsilon), got {format_value(entry)}") from None
    return check_number("alpha", alpha, _ORDER), check_number("epsilon", epsilon, NON_NEGATIVE)
