r"""The bounds of "Privacy Profiles for Private Selection" (ICML 2024) that shift the base's profile, each under its label.

Notation: K is the number of trials, m its mean, ``delta(e)`` the base's privacy profile for both orders of the neighbours. A
``profile`` is a function from an array of real epsilons to upper bounds on delta, such as ``lambda e: pair.hockey_stick(e, side=1)``.
It may return 1 where nothing is known, for example below 0.

A function named after a result returns delta at an array of epsilons, or maps points of the base to points of the selection.
Its companion ``..._epsilon`` returns the smallest epsilon found at one delta. If a result leaves ``e_1`` free, any choice is
valid: a poor search can only loosen the bound.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON, grid_argmin, solve_epsilon
from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, POSITIVE, UNIT, check_array, check_number
from privselect.counts import Binomial, Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]
    Profile = Callable[[Floats], Floats]

Family = TypeVar("Family", TruncatedNegativeBinomial, Poisson, Binomial)

_UP = 1.0 + 1e-12  # exceeds the rounding error of every formula here
_FIRST_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-6, LARGEST_EPSILON, 300)])


def require_uncapped(count: Count, family: type[Family], label: str, name: str) -> Family:
    """Return ``count`` if it is an uncapped member of the family that a result covers; raise NotCoveredError otherwise."""
    if not isinstance(count, family) or count.cap is not None:
        raise NotCoveredError(f"{label} covers {name} K without a cap, got {count}")
    return count


def _require_negative_binomial(count: Count, label: str) -> TruncatedNegativeBinomial:
    return require_uncapped(count, TruncatedNegativeBinomial, label, "truncated negative binomial")


def _shifted_delta(profile: Profile, mean: float, shift: float, epsilon: ArrayLike) -> Floats:
    """Return ``m delta(e - shift)``, rounded up."""
    eps = check_array("epsilon", epsilon, NON_NEGATIVE)
    return np.minimum(mean * _UP * profile(np.nextafter(eps - shift, -np.inf)), 1.0)


def _shifted_epsilon(profile: Profile, mean: float, shift: float, delta: float) -> float:
    target = check_number("delta", delta, OPEN_UNIT)
    return solve_epsilon(lambda e: float(_shifted_delta(profile, mean, shift, e)), target)


# -- truncated negative binomial K ---------------------------------------------------------------------------------------


def thm_negbin(profile: Profile, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Return delta of the selection for K ~ D(eta, gamma).

    Claim, for every e_1 >= 0: ``delta_A(e) <= m delta(e - (eta+1) log(exp(e_1) + (1-gamma)/gamma delta(e_1)))``. The minimum over e_1
    is used; it does not depend on e.

    Holds when K ~ D(eta, gamma) without a cap, e >= 0, and the profile covers both orders of the neighbours. Label: thm:negbin.
    """
    negbin = _require_negative_binomial(count, "thm:negbin")
    return _shifted_delta(profile, negbin.expected(), _negbin_shift(profile, negbin), epsilon)


def thm_negbin_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """Return the smallest epsilon found at which :func:`thm_negbin` is at most delta."""
    negbin = _require_negative_binomial(count, "thm:negbin")
    return _shifted_epsilon(profile, negbin.expected(), _negbin_shift(profile, negbin), delta)


def _negbin_shift(profile: Profile, negbin: TruncatedNegativeBinomial) -> float:
    def shift(first: Floats) -> Floats:
        odds = (1.0 - negbin.resolved_gamma) / negbin.resolved_gamma
        # log(e^a + b) = a + log(1 + b e^-a): a multiple of e^700 would overflow.
        return (negbin.eta + 1.0) * (first + np.log1p(odds * profile(first) * np.exp(-first)))

    best = grid_argmin(shift, _FIRST_EPSILONS)
    return float(shift(np.array([best]))[0]) * _UP


def cor_adjust(epsilon_1: float, delta_1: float, epsilon_hat: float, count: Count) -> float:
    r"""Return epsilon of the selection from two points of the base that are fixed before the candidates are chosen.

    Claim: a base that is ``(e_1, d_1)``-DP and ``(e_hat, delta/m)``-DP gives a selection that is ``(e, delta)``-DP with
    ``e = e_hat + (eta+1) log(exp(e_1) + (1-gamma)/gamma d_1)``.

    Holds when K ~ D(eta, gamma) without a cap and every candidate satisfies both points. Label: cor:adjust.
    """
    negbin = _require_negative_binomial(count, "cor:adjust")
    first, hat = check_number("epsilon_1", epsilon_1, NON_NEGATIVE), check_number("epsilon_hat", epsilon_hat, NON_NEGATIVE)
    leak = (1.0 - negbin.resolved_gamma) / negbin.resolved_gamma * check_number("delta_1", delta_1, UNIT)
    return (hat + (negbin.eta + 1.0) * (first + math.log1p(leak * math.exp(-first)))) * _UP


def cor_pointwise0(epsilon: float, count: Count) -> float:
    """Return epsilon of the selection over a pure base.

    Claim: an e-DP base gives an ``(eta+2) e``-DP selection; for eta = 1 this is the 3e of Liu and Talwar.

    Holds when K ~ D(eta, gamma) without a cap. Label: cor:pointwise0.
    """
    negbin = _require_negative_binomial(count, "cor:pointwise0")
    return (negbin.eta + 2.0) * check_number("epsilon", epsilon, NON_NEGATIVE) * _UP


def cor_pointwise(epsilon: float, delta: float, count: Count) -> tuple[float, float]:
    r"""Return one point of the selection from one point of the base.

    Claim: an ``(e, d)``-DP base gives a selection that is ``((eta+2) e + (eta+1) d/gamma, m d)``-DP.

    The printed statement has ``d/gamma`` without the factor ``eta+1``, but its proof does not give that: see docs/errata.md.

    Holds when K ~ D(eta, gamma) without a cap. Label: cor:pointwise.
    """
    negbin = _require_negative_binomial(count, "cor:pointwise")
    e, d = check_number("epsilon", epsilon, NON_NEGATIVE), check_number("delta", delta, UNIT)
    return ((negbin.eta + 2.0) * e + (negbin.eta + 1.0) * d / negbin.resolved_gamma) * _UP, min(negbin.expected() * d * _UP, 1.0)


def lem_gdp(sigma: float, count: Count, delta: float) -> float:
    r"""Return epsilon of the selection over a Gaussian base, in closed form.

    Claim: with noise sigma on sensitivity 1 the selection is ``(e, delta)``-DP for
    ``e = (eta+2) (1/(2 sigma^2) + sqrt(2 log(m/delta))/sigma) + (eta+1) delta/(gamma m)``.

    The printed statement has ``1/gamma`` instead of m under the logarithm, and its last term is ``delta``: see
    docs/errata.md. The argument is ``thm:negbin`` with e_1 the bracket, at which the Gaussian profile is at most ``delta/m``.

    Holds when K ~ D(eta, gamma) without a cap, and the Gaussian mechanism dominates the base. Label: lem:GDP.
    """
    negbin = _require_negative_binomial(count, "lem:GDP")
    noise, target = check_number("sigma", sigma, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    mean = negbin.expected()
    first = 0.5 / noise**2 + math.sqrt(2.0 * math.log(mean / target)) / noise
    return ((negbin.eta + 2.0) * first + (negbin.eta + 1.0) * target / (negbin.resolved_gamma * mean)) * _UP


# -- binomial and Poisson K ----------------------------------------------------------------------------------------------


def thm_hs_bin(profile: Profile, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Return delta of the selection for K ~ Binomial(n, p).

    Claim: ``delta_A(e) <= m delta(e - (n-1) log(1 + p (exp(e_1) - 1) + p delta(e_1)))`` for every e_1 >= 0 with
    ``exp(e_1) >= 1 + p/(1-p) delta(e_1)``.

    As a function of ``a = exp(e_1)`` the profile has slope at least -1, so ``a + delta`` never falls: the smallest allowed e_1 is the
    best. There the shift is ``(n-1) e_1``; the quotient of lem:aux0 is constant.

    Holds when K ~ Binomial(n, p) without a cap, p < 1, e >= 0, and the profile covers both orders. Label: thm:hs_bin.
    """
    binomial = _require_binomial(count)
    return _shifted_delta(profile, binomial.expected(), _binomial_shift(profile, binomial), epsilon)


def thm_hs_bin_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """Return the smallest epsilon found at which :func:`thm_hs_bin` is at most delta."""
    binomial = _require_binomial(count)
    return _shifted_epsilon(profile, binomial.expected(), _binomial_shift(profile, binomial), delta)


def _require_binomial(count: Count) -> Binomial:
    binomial = require_uncapped(count, Binomial, "thm:hs_bin", "binomial")
    if binomial.p >= 1.0:
        raise NotCoveredError(f"thm:hs_bin covers binomial K with p < 1, got {binomial}")
    return binomial


def _binomial_shift(profile: Profile, binomial: Binomial) -> float:
    odds = binomial.p / (1.0 - binomial.p)

    def constraint(first: float) -> float:
        """Return a value that is at most 1 exactly if e_1 is allowed."""
        leak = odds * float(profile(np.asarray(first)))
        return leak / math.expm1(first) if first > 0.0 else math.inf if leak > 0.0 else 0.0

    first = solve_epsilon(constraint, 1.0)
    if math.isinf(first):
        return math.inf
    excess = binomial.p * (math.expm1(first) + float(profile(np.asarray(first))))
    return (binomial.n - 1) * math.log1p(excess) * _UP


def cor_binomial_to_poisson(profile: Profile, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Return delta of the selection for K ~ Poisson(m).

    Claim: ``delta_A(e) <= m delta(e - m (exp(e_1) - 1) - m delta(e_1))`` for every e_1 >= 0. Because ``exp(e_1) + delta(e_1)`` never
    falls, e_1 = 0 is always the best: the shift is m times the total variation distance.

    Holds when K ~ Poisson(m) without a cap, e >= 0, and the profile covers both orders. Label: cor:binomial_to_poisson.
    """
    poisson = _require_poisson(count)
    return _shifted_delta(profile, poisson.mean, _poisson_shift(profile, poisson), epsilon)


def cor_binomial_to_poisson_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """Return the smallest epsilon found at which :func:`cor_binomial_to_poisson` is at most delta."""
    poisson = _require_poisson(count)
    return _shifted_epsilon(profile, poisson.mean, _poisson_shift(profile, poisson), delta)


def _require_poisson(count: Count) -> Poisson:
    return require_uncapped(count, Poisson, "cor:binomial_to_poisson", "Poisson")


def _poisson_shift(profile: Profile, poisson: Poisson) -> float:
    return poisson.mean * float(profile(np.asarray(0.0))) * _UP
