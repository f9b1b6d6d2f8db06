"""The Renyi baselines: Papernot and Steinke's bounds for selection.

An ``rdp`` curve is a function from an array of orders alpha > 1 to upper bounds on the base's Renyi divergence, the greater of the two
orders of the neighbours, infinite where nothing is known.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import Range, check_array
from privselect.counts import Poisson
from privselect.counts.truncated_negative_binomial import Truncated
from privselect.errors import NotCoveredError
from privselect.mechanisms.renyi_to_dp import ORDERS, least_from_here_on
from privselect.pairs.compose import ACCURACY
from privselect.selection.bounds.paper_bounds import covered
from privselect.selection.safe_search import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count
    from privselect.mechanisms.base import Mechanism

    Floats = NDArray[np.float64]
    Curve = Callable[[Floats], Floats]

_UP = 1.0 + 1e-12
# Fractional orders are cheap while they are small, whole ones when they are large.
_ASKED = np.unique(np.where(ORDERS > 64.0, np.round(ORDERS), ORDERS)[ORDERS < 1e4][::2])
_SPARSE = 3  # of them, where that is enough


def thm_rdp_negbin(rdp: Curve, count: Count, alpha: ArrayLike) -> Floats:
    r"""The selection's Renyi divergence of order alpha for K ~ D(eta, gamma).

    Claim: ``rdp(a) + (1+eta) (1 - 1/ah) rdp(ah) + (1+eta) log(1/gamma)/ah + log(m)/(a-1)`` for every order ah >= 1. The least over ah is
    taken, and, as Renyi divergences grow with the order, the least over all orders from alpha on.

    Holds when K ~ D(eta, gamma) without a cap and the curve covers both orders of the neighbours. Label: thm:rdp_negbin.
    """
    law = covered(count, Truncated, "thm:rdp_negbin", "truncated negative binomial laws")
    hat = np.concatenate([[1.0], ORDERS])
    base = np.concatenate([[0.0], least_from_here_on(rdp(ORDERS))])  # at ah = 1 the factor 1 - 1/ah leaves nothing
    constant = (1.0 + law.eta) * np.min((1.0 - 1.0 / hat) * base - np.log(law.resolved_gamma) / hat)
    log_mean = np.log(law.expected())
    return _over_larger_orders(lambda a: (rdp(a) + constant + log_mean / (a - 1.0)) * _UP, alpha)


def thm_rdp_poisson(rdp: Curve, profile: Curve, count: Count, alpha: ArrayLike) -> Floats:
    r"""The selection's Renyi divergence of order alpha for K ~ Poisson(m).

    Claim: ``rdp(a) + m dh + log(m)/(a-1)`` if the base is (eh, dh)-DP and ``exp(eh) <= 1 + 1/(a-1)``. The greatest such eh is used, and
    dh is read off the base's profile, not off its Renyi curve.

    The claim leaves out the outcome of K = 0, which both data sets give with chance ``exp(-m)``; for m < 1 it cannot hold without it
    (see docs/errata.md). Here that outcome is counted: ``log( exp((a-1)(rdp(a) + m dh)) m + exp(-m) )/(a-1)``.

    Holds when K ~ Poisson(m) without a cap, and curve and profile cover both orders. Label: thm:rdp_poisson.
    """
    law = covered(count, Poisson, "thm:rdp_poisson", "Poisson laws")

    def at(orders: Floats) -> Floats:
        allowed = profile(np.nextafter(np.log1p(1.0 / (orders - 1.0)), -np.inf))
        winner = (orders - 1.0) * (rdp(orders) + law.mean * allowed) + np.log(law.mean)
        return np.asarray(np.logaddexp(winner, -law.mean) / (orders - 1.0) * _UP)

    return _over_larger_orders(at, alpha)


def curve_through(orders: ArrayLike, values: ArrayLike) -> Curve:
    """A curve for all orders from upper bounds at some: ``(a-1) D_a`` is convex in a and 0 at a = 1, so its chords lie above it.

    Infinite beyond the last order given, and wherever a bound is infinite.
    """
    known = np.concatenate([[1.0], _checked_orders(orders)])
    moments = np.concatenate([[0.0], (known[1:] - 1.0) * np.asarray(values, dtype=np.float64)])
    finite = np.isfinite(moments)
    known, moments = known[finite], moments[finite]

    def curve(alpha: Floats) -> Floats:
        between = np.interp(alpha, known, moments, right=np.inf)
        return np.asarray(between / (alpha - 1.0) * _UP)

    return curve


@lru_cache(maxsize=32)
def curve_of(mechanism: Mechanism, accuracy: float = ACCURACY) -> Curve:
    """The mechanism's Renyi curve, from orders up to where ``D_a`` alone outweighs all that a larger one can save (about 100/(a-1)).

    Chords of orders further apart lie higher, by the square of their distance: where less ``accuracy`` will do, fewer orders are asked.
    """
    orders, divergences, seen = [], [], False
    for block in np.array_split(_ASKED if accuracy <= ACCURACY else _ASKED[::_SPARSE], 24):
        values = mechanism.renyi_at(block)
        orders.append(block)
        divergences.append(values)
        # At the smallest orders a series may not converge, which tells nothing about the larger ones.
        seen = seen or bool(np.isfinite(values).any())
        if seen and not values[-1] < min(LARGEST_EPSILON, 1e4 / (block[-1] - 1.0)):
            break
    return curve_through(np.concatenate(orders), np.concatenate(divergences))


def selection_curve(mechanism: Mechanism, count: Count, accuracy: float = ACCURACY) -> Curve:
    """The selection's Renyi curve, by the theorem for its law of K."""
    if count.cap is not None:
        raise NotCoveredError("no Renyi bound is known for a capped law of K")
    if isinstance(count, Truncated):
        return lambda alpha: thm_rdp_negbin(curve_of(mechanism, accuracy), count, alpha)
    if isinstance(count, Poisson):
        return lambda alpha: thm_rdp_poisson(curve_of(mechanism, accuracy), profile_of(mechanism, accuracy), count, alpha)
    raise NotCoveredError(f"no Renyi bound is known for {count.text_name} K")


def profile_of(mechanism: Mechanism, accuracy: float = ACCURACY) -> Curve:
    """The mechanism's privacy profile, the greater of the two orders of the neighbours, rounded up."""
    pairs = [bracket.upper for bracket in mechanism.brackets_within(accuracy)]
    return lambda epsilon: np.maximum.reduce([pair.hockey_stick(epsilon, side=1) for pair in pairs])


def _over_larger_orders(bound: Curve, alpha: ArrayLike) -> Floats:
    """``bound`` at each order, or at a larger one of the grid where that is less."""
    orders = _checked_orders(alpha)
    beyond = np.append(least_from_here_on(bound(ORDERS)), np.inf)
    return np.asarray(np.minimum(bound(orders), beyond[np.searchsorted(ORDERS, orders)]))


def _checked_orders(alpha: ArrayLike) -> Floats:
    return check_array("alpha", alpha, Range(1.0, np.inf, low_open=True))
