"""The Renyi baselines: Papernot and Steinke's bounds for selection.

An ``rdp`` curve is a function from an array of orders alpha > 1 to upper bounds on the base's Renyi divergence, the maximum over both
orders of the neighbours. It is infinite where nothing is known.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import Range, check_array
from privselect.counts import Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError
from privselect.mechanisms.renyi import ORDERS, suffix_minimum
from privselect.pairs.compose import ACCURACY
from privselect.selection.bounds.paper_bounds import require_uncapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count
    from privselect.mechanisms.base import Mechanism

    Floats = NDArray[np.float64]
    RenyiCurve = Callable[[Floats], Floats]
    Profile = Callable[[Floats], Floats]

_UP = 1.0 + 1e-12
# Fractional orders are cheap if they are small, integer orders if they are large.
_SAMPLED_ORDERS = np.unique(np.where(ORDERS > 64.0, np.round(ORDERS), ORDERS)[ORDERS < 1e4][::2])
_SPARSE = 3  # use every third of these orders if a lower accuracy is enough


def thm_rdp_negbin(rdp: RenyiCurve, count: Count, alpha: ArrayLike) -> Floats:
    r"""Return the selection's Renyi divergence of order alpha for K ~ D(eta, gamma).

    Claim: ``rdp(a) + (1+eta) (1 - 1/ah) rdp(ah) + (1+eta) log(1/gamma)/ah + log(m)/(a-1)`` for every order ah >= 1. The minimum over ah
    is used. Because Renyi divergences grow with the order, so is the minimum over all orders from alpha on.

    Holds when K ~ D(eta, gamma) without a cap and the curve covers both orders of the neighbours. Label: thm:rdp_negbin.
    """
    negbin = require_uncapped(count, TruncatedNegativeBinomial, "thm:rdp_negbin", "truncated negative binomial")
    hat = np.concatenate([[1.0], ORDERS])
    base = np.concatenate([[0.0], suffix_minimum(rdp(ORDERS))])  # at ah = 1 the factor 1 - 1/ah is 0
    constant = (1.0 + negbin.eta) * np.min((1.0 - 1.0 / hat) * base - np.log(negbin.resolved_gamma) / hat)
    log_mean = np.log(negbin.expected())
    return _minimum_over_larger_orders(lambda a: (rdp(a) + constant + log_mean / (a - 1.0)) * _UP, alpha)


def thm_rdp_poisson(rdp: RenyiCurve, profile: Profile, count: Count, alpha: ArrayLike) -> Floats:
    r"""Return the selection's Renyi divergence of order alpha for K ~ Poisson(m).

    Claim: ``rdp(a) + m dh + log(m)/(a-1)`` if the base is (eh, dh)-DP and ``exp(eh) <= 1 + 1/(a-1)``. The largest such eh is used, and
    dh comes from the base's profile, not from its Renyi curve.

    The claim leaves out the outcome of K = 0, which both data sets give with probability ``exp(-m)``; for m < 1 it cannot hold without
    it (see docs/errata.md). Here that outcome is counted: ``log( exp((a-1)(rdp(a) + m dh)) m + exp(-m) )/(a-1)``.

    Holds when K ~ Poisson(m) without a cap, and curve and profile cover both orders. Label: thm:rdp_poisson.
    """
    poisson = require_uncapped(count, Poisson, "thm:rdp_poisson", "Poisson")

    def bound(orders: Floats) -> Floats:
        base_delta = profile(np.nextafter(np.log1p(1.0 / (orders - 1.0)), -np.inf))
        winner = (orders - 1.0) * (rdp(orders) + poisson.mean * base_delta) + np.log(poisson.mean)
        return np.asarray(np.logaddexp(winner, -poisson.mean) / (orders - 1.0) * _UP)

    return _minimum_over_larger_orders(bound, alpha)


def interpolate_renyi_curve(orders: ArrayLike, values: ArrayLike) -> RenyiCurve:
    """Return a curve for all orders from upper bounds at some: ``(a-1) D_a`` is convex in a and 0 at a = 1, so its chords lie above it.

    The curve is infinite beyond the last order given, and wherever a bound is infinite.
    """
    known = np.concatenate([[1.0], _check_orders(orders)])
    moments = np.concatenate([[0.0], (known[1:] - 1.0) * np.asarray(values, dtype=np.float64)])
    finite = np.isfinite(moments)
    known, moments = known[finite], moments[finite]

    def curve(alpha: Floats) -> Floats:
        between = np.interp(alpha, known, moments, right=np.inf)
        return np.asarray(between / (alpha - 1.0) * _UP)

    return curve


@lru_cache(maxsize=32)
def renyi_curve_of(mechanism: Mechanism, accuracy: float = ACCURACY) -> RenyiCurve:
    """Return the mechanism's Renyi curve, up to orders at which ``D_a`` exceeds all that a larger order can save (about 100/(a-1)).

    Chords between distant orders lie higher, by the square of the distance. A lower ``accuracy`` therefore uses fewer orders.
    """
    orders, divergences, seen = [], [], False
    for block in np.array_split(_SAMPLED_ORDERS if accuracy <= ACCURACY else _SAMPLED_ORDERS[::_SPARSE], 24):
        values = mechanism.renyi_at(block)
        orders.append(block)
        divergences.append(values)
        # A series may diverge at the smallest orders and still converge at larger ones.
        seen = seen or bool(np.isfinite(values).any())
        if seen and not values[-1] < min(LARGEST_EPSILON, 1e4 / (block[-1] - 1.0)):
            break
    return interpolate_renyi_curve(np.concatenate(orders), np.concatenate(divergences))


def selection_renyi_curve(mechanism: Mechanism, count: Count, accuracy: float = ACCURACY) -> RenyiCurve:
    """Return the selection's Renyi curve, by the theorem for its law of K."""
    if count.cap is not None:
        raise NotCoveredError("no Renyi bound is known for a capped law of K")
    if isinstance(count, TruncatedNegativeBinomial):
        return lambda alpha: thm_rdp_negbin(renyi_curve_of(mechanism, accuracy), count, alpha)
    if isinstance(count, Poisson):
        return lambda alpha: thm_rdp_poisson(renyi_curve_of(mechanism, accuracy), privacy_profile_of(mechanism, accuracy), count, alpha)
    raise NotCoveredError(f"no Renyi bound is known for {count.text_name} K")


def privacy_profile_of(mechanism: Mechanism, accuracy: float = ACCURACY) -> Profile:
    """Return the mechanism's privacy profile, the maximum over both orders of the neighbours, rounded up."""
    pairs = [bracket.upper for bracket in mechanism.brackets_within(accuracy)]
    return lambda epsilon: np.maximum.reduce([pair.hockey_stick(epsilon, side=1) for pair in pairs])


def _minimum_over_larger_orders(bound: RenyiCurve, alpha: ArrayLike) -> Floats:
    """Return ``bound`` at each order, or at a larger order of the grid if that is smaller."""
    orders = _check_orders(alpha)
    beyond = np.append(suffix_minimum(bound(ORDERS)), np.inf)
    return np.asarray(np.minimum(bound(orders), beyond[np.searchsorted(ORDERS, orders)]))


def _check_orders(alpha: ArrayLike) -> Floats:
    return check_array("alpha", alpha, Range(1.0, np.inf, low_open=True))
