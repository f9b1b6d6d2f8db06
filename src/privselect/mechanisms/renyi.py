"""Renyi differential privacy: a mechanism given by Renyi divergences, and the conversion to (epsilon, delta)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, Range, check_array, check_number, check_sequence, format_value
from privselect.errors import ParameterError
from privselect.mechanisms.base import StatedMechanism, check_orders
from privselect.pairs import Bracket, DominatingPair, pair_from_profile
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_profile import place_knots
from privselect.text_forms import register

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]
    RenyiCurve = Callable[[Floats], Floats]

_ORDER = Range(1.0, math.inf, low_open=True)
_SMALLEST_LOG = -660.0  # of a delta: near the smallest float
_FALL, _FAR_FALL = 0.1, 0.5  # of log delta from knot to knot, near and far
_LOWEST_LOG_S, _HIGHEST_LOG_S = -700.0, 100.0
_ROUNDS = 60  # of the golden-section search: the bracket shrinks by 1e-12
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_ULPS = 8.0 * 2.0**-53
_LARGEST_LOG = 700.0
# Consecutive orders differ by 2%. The loss against the optimal alpha is of second order in that.
ORDERS = 1.0 + np.geomspace(1e-3, 1e6, 1050)
_UP = 1.0 + 1e-12


@register
@dataclass(frozen=True, slots=True)
class Renyi(StatedMechanism):
    """Every Renyi divergence of order ``alpha_i`` is at most ``epsilon_i``, in both directions.

    At each epsilon, each order and direction allows a largest delta (:func:`renyi_to_delta`), and the smallest of these is used. At one
    epsilon and for one order, a real mechanism attains it. No mechanism attains the whole profile, so there is no lower bound.
    """

    text_name = "renyi"

    orders: tuple[tuple[float, float], ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        StatedMechanism.__post_init__(self)
        entries = check_sequence("orders", self.orders, "pairs (alpha, epsilon) such as ((2, 0.1), (10, 0.6))")
        object.__setattr__(self, "orders", tuple(_order(entry) for entry in entries))
        if not self.orders:
            raise ParameterError("`renyi` needs at least one (alpha, epsilon), got none")

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        if any(divergence == 0.0 for _, divergence in self.orders):
            same = DominatingPair(np.ones(1), np.ones(1))  # a divergence of 0: both distributions are equal
            return (Bracket(same, (same,)),)
        knots = self._knots()
        profile = self._profile(knots)
        return (Bracket(pair_from_profile(knots, profile, profile), ()),)

    def _profile(self, epsilon: Floats) -> Floats:
        """Return the smallest bound over all orders and both directions at each epsilon >= 0."""
        bounds = [np.ones_like(epsilon)]
        for alpha, divergence in self.orders:
            bounds.append(renyi_to_delta(alpha, divergence, epsilon))
            factor = np.exp(epsilon)
            bounds.append(factor * renyi_to_delta(alpha, divergence, -epsilon) - np.expm1(epsilon) + 1e-15 * factor)
        return np.asarray(np.minimum.accumulate(np.minimum.reduce(bounds)))

    def _knots(self) -> Floats:
        # The last knot is where lem:rdp_to_dp reaches the smallest float.
        ends = [value - (_SMALLEST_LOG + math.log(a)) / (a - 1.0) for a, value in self.orders]
        end = min(max(min(ends), 1e-3), LARGEST_LOSS)
        return place_knots(self._profile, end, _FALL, _FAR_FALL)

    def renyi_at(self, alpha: ArrayLike) -> Floats:
        """Interpolate by chords: ``(alpha-1) D_alpha`` is convex in alpha, and 0 at 1. Infinite beyond the largest known order."""
        orders = check_orders(alpha)
        known = sorted(self.orders)
        # Divergences increase with the order: the bound of a larger order holds for each smaller one.
        values = suffix_minimum(np.array([value for _, value in known]))
        alphas = np.array([1.0, *(a for a, _ in known)])
        moments = np.append(0.0, (alphas[1:] - 1.0) * values)
        return np.asarray(np.interp(orders, alphas, moments, right=np.inf) / (orders - 1.0) * (1.0 + 1e-12))


def _order(entry: Any) -> tuple[float, float]:
    try:
        alpha, epsilon = entry
    except (TypeError, ValueError):
        raise ParameterError(f"each order must be a pair (alpha, epsilon), got {format_value(entry)}") from None
    return check_number("alpha", alpha, _ORDER), check_number("epsilon", epsilon, NON_NEGATIVE)


def renyi_to_delta(alpha: float, divergence: float, epsilon: Floats) -> Floats:
    r"""Return the largest delta at each real epsilon that a Renyi divergence of order alpha allows, rounded up.

    Claim: let ``E_Q X = 1`` and ``E_Q X^alpha <= M = exp((alpha-1) divergence)`` with X = dP/dQ, and ``a = e^epsilon``. If
    ``c0 - s x + c x^alpha >= (x - a)_+`` for every x >= 0, then ``delta(epsilon) <= c0 - s + c M``. For every s > 0 there is such a curve
    that touches both branches. The minimum over s is the largest delta of all pairs of distributions, attained by distributions on two
    outcomes (Asoodeh, Liao, Calmon, Kosut and Sankar 2021). s -> 0 gives lem:rdp_to_dp, and if
    ``epsilon <= divergence + log(1 - 1/alpha)`` the minimum is ``1 - exp(epsilon - divergence)``. Holds when the divergence is an upper
    bound for the order (P, Q). Label: Renyi, optimal.

    The search for s may only loosen the bound, because each s gives one. Proof: docs/derivations/renyi.md.
    """
    with np.errstate(all="ignore"):
        touching = _golden_section_minimum(lambda log_s: _touching_curve_bound(alpha, divergence, epsilon, log_s), np.shape(epsilon))
        bounds = [touching, _zero_slope_bound(alpha, divergence, epsilon), _full_mass_bound(alpha, divergence, epsilon)]
    return np.asarray(np.minimum.reduce(bounds))


def _zero_slope_bound(alpha: float, divergence: float, epsilon: Floats) -> Floats:
    """Return the limit s -> 0, rounded up: lem:rdp_to_dp."""
    log_limit = (alpha - 1.0) * (divergence - epsilon + np.log1p(-1.0 / alpha)) - np.log(alpha)
    log_limit += _ULPS * (alpha * (divergence + np.abs(epsilon) + 2.0) + 16.0)
    return np.where(log_limit < 0.0, np.exp(log_limit), 1.0)  # 1 also on overflow


def _full_mass_bound(alpha: float, divergence: float, epsilon: Floats) -> Floats:
    """Return ``1 - e^(epsilon - divergence)``, rounded up, if the best set has P-mass 1; otherwise 1."""
    value = -np.expm1(epsilon - divergence) + _ULPS * (1.0 + np.abs(epsilon) + divergence)
    return np.where(epsilon <= divergence + np.log1p(-1.0 / alpha), np.minimum(value, 1.0), 1.0)


def _touching_curve_bound(alpha: float, divergence: float, epsilon: Floats, log_s: Floats) -> Floats:
    """Return ``c0 - s + c M``, rounded up, for the curve with slope -s at 0 that touches 0 at x0 and ``x - a`` further on.

    With ``r = alpha c`` it is ``s (M r/s - 1 + (alpha-1)(x0 - 1))/alpha``, ``x0 = (s/r)^(1/(alpha-1))``. Touching both branches means
    ``r^(1/(alpha-1)) = ((1+s)^b - s^b)/(a b)`` with ``b = alpha/(alpha-1)``.
    """
    power, b = alpha - 1.0, alpha / (alpha - 1.0)
    one_more = np.logaddexp(0.0, log_s)  # log(1 + s)
    log_gap = b * one_more + np.log(-np.expm1(-b * np.logaddexp(0.0, -log_s)))
    log_x0 = log_s / power - log_gap - np.log1p(-1.0 / alpha) + epsilon
    above = power * (divergence - log_x0)  # log(M r/s)
    s, x0, high = np.exp(log_s), np.exp(log_x0), np.exp(np.minimum(log_s + above, _LARGEST_LOG))
    excess = np.where(above < 1.0, s * np.expm1(np.minimum(above, 1.0)), high - s)
    value = excess + power * s * np.expm1(log_x0)
    # A rounding error of log(x0) moves the other terms by that much, times the power.
    off = _ULPS * (b * (one_more + np.abs(log_s) + 2.0) + np.abs(log_gap) + np.abs(epsilon) + 2.0)
    slack = high * (power * off + _ULPS * (np.abs(above) + power * divergence + np.abs(log_s) + 2.0))
    slack += s * (power * (x0 + 1.0) * (off + _ULPS) + _ULPS)
    bound = (value + slack) / alpha
    # A result that overflows is not a bound.
    return np.where((log_s + above < _LARGEST_LOG) & np.isfinite(bound), bound, np.inf)


def _golden_section_minimum(bound: Callable[[Floats], Floats], shape: tuple[int, ...]) -> Floats:
    """Return the smallest value found by a golden-section search over log s; every evaluated value is a valid bound."""
    low, high = np.full(shape, _LOWEST_LOG_S), np.full(shape, _HIGHEST_LOG_S)
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = bound(left), bound(right)
    for _ in range(_ROUNDS):
        leftward = at_left <= at_right
        low, high = np.where(leftward, low, left), np.where(leftward, right, high)
        new = np.where(leftward, high - _GOLDEN * (high - low), low + _GOLDEN * (high - low))
        at_new = bound(new)
        left, right = np.where(leftward, new, right), np.where(leftward, left, new)
        at_left, at_right = np.where(leftward, at_new, at_right), np.where(leftward, at_left, at_new)
    return np.asarray(np.minimum(at_left, at_right))


def lem_rdp_to_dp(rdp: RenyiCurve, epsilon: ArrayLike) -> Floats:
    r"""Return delta at each epsilon >= 0 from a Renyi curve.

    Claim, for every order a > 1: ``delta(e) <= exp((a-1)(rdp(a) - e))/a (1 - 1/a)^(a-1)``. The minimum over a grid of orders is used.

    Holds when the curve is an upper bound for both orders of the neighbours. Label: lem:rdp_to_dp.
    """
    eps = check_array("epsilon", epsilon, NON_NEGATIVE)
    a, values = _finite_orders(rdp)
    if len(a) == 0:
        return np.ones(eps.shape)
    log_delta = (a - 1.0) * (values - eps[..., None] + np.log1p(-1.0 / a)) - np.log(a)
    rounding = 4e-16 * a * (values + eps[..., None] + 2.0) + 1e-14
    return np.asarray(np.exp(np.minimum((log_delta + rounding).min(axis=-1), 0.0)))


def lem_rdp_to_dp_epsilon(rdp: RenyiCurve, delta: float) -> float:
    """Return the smallest epsilon >= 0 at which :func:`lem_rdp_to_dp` gives delta, solved order by order."""
    target = check_number("delta", delta, OPEN_UNIT)
    a, values = _finite_orders(rdp)
    if len(a) == 0:
        return np.inf
    epsilon = values + np.log1p(-1.0 / a) - (np.log(target) + np.log(a)) / (a - 1.0)
    return max(float(epsilon.min()) * _UP + 1e-14, 0.0)


def _finite_orders(rdp: RenyiCurve) -> tuple[Floats, Floats]:
    values = suffix_minimum(rdp(ORDERS))
    finite = np.isfinite(values)
    return ORDERS[finite], values[finite]


def suffix_minimum(values: Floats) -> Floats:
    """Return, at each index, the minimum of the values from there on."""
    smallest: Floats = np.minimum.accumulate(values[::-1])[::-1]
    return smallest
