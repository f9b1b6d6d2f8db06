r"""The bounds of "Privacy Profiles for Private Selection" (ICML 2024) that shift the base's profile, each under its label.

Notation: K the number of trials, m its mean, ``delta(e)`` the base's privacy profile, both orders of the neighbours. A ``profile`` is a
function from an array of real epsilons to upper bounds on delta, such as ``lambda e: pair.hockey_stick(e, side=1)``; where it knows
nothing, below 0 say, it may answer 1.

A function with the name of a result gives delta at an array of epsilons, or turns base points into points of the selection;
its companion ``..._epsilon`` gives the least epsilon found at one delta. Where a result is free to choose ``e_1``, any choice is
valid, so a poor search can only loosen the answer.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, POSITIVE, UNIT, check_array, check_number
from privselect.counts import Binomial, Poisson
from privselect.counts.truncated_negative_binomial import Truncated
from privselect.errors import NotCoveredError
from privselect.selection.safe_search import LARGEST_EPSILON, least, solve_epsilon

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]
    Profile = Callable[[Floats], Floats]

Law = TypeVar("Law", Truncated, Poisson, Binomial)

_UP = 1.0 + 1e-12  # more than every formula here can lose
_FIRST_EPSILONS = np.concatenate([[0.0], np.geomspace(1e-6, LARGEST_EPSILON, 300)])


def covered(count: Count, law: type[Law], label: str, name: str) -> Law:
    """``count`` as the uncapped law that a result is about, or one sentence saying that it is not."""
    if not isinstance(count, law) or count.cap is not None:
        raise NotCoveredError(f"{label} covers {name} without a cap, got {count}")
    return count


def _negbin(count: Count, label: str) -> Truncated:
    return covered(count, Truncated, label, "truncated negative binomial laws")


def _shifted_delta(profile: Profile, mean: float, shift: float, epsilon: ArrayLike) -> Floats:
    """``m delta(e - shift)``, rounded up."""
    eps = check_array("epsilon", epsilon, NON_NEGATIVE)
    return np.minimum(mean * _UP * profile(np.nextafter(eps - shift, -np.inf)), 1.0)


def _shifted_epsilon(profile: Profile, mean: float, shift: float, delta: float) -> float:
    wanted = check_number("delta", delta, OPEN_UNIT)
    return solve_epsilon(lambda e: float(_shifted_delta(profile, mean, shift, e)), wanted)


# -- truncated negative binomial K ---------------------------------------------------------------------------------------


def thm_negbin(profile: Profile, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Delta of the selection for K ~ D(eta, gamma).

    Claim, for every e_1 >= 0: ``delta_A(e) <= m delta(e - (eta+1) log(exp(e_1) + (1-gamma)/gamma delta(e_1)))``. The least over e_1 is
    taken; it does not depend on e.

    Holds when K ~ D(eta, gamma) without a cap, e >= 0, and the profile covers both orders of the neighbours. Label: thm:negbin.
    """
    law = _negbin(count, "thm:negbin")
    return _shifted_delta(profile, law.expected(), _negbin_shift(profile, law), epsilon)


def thm_negbin_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """The least epsilon found at which :func:`thm_negbin` is at most delta."""
    law = _negbin(count, "thm:negbin")
    return _shifted_epsilon(profile, law.expected(), _negbin_shift(profile, law), delta)


def _negbin_shift(profile: Profile, law: Truncated) -> float:
    def shift(first: Floats) -> Floats:
        odds = (1.0 - law.resolved_gamma) / law.resolved_gamma
        # log(e^a + b) = a + log(1 + b e^-a): e^700 times anything would overflow.
        return (law.eta + 1.0) * (first + np.log1p(odds * profile(first) * np.exp(-first)))

    best = least(shift, _FIRST_EPSILONS)
    return float(shift(np.array([best]))[0]) * _UP


def cor_adjust(epsilon_1: float, delta_1: float, epsilon_hat: float, count: Count) -> float:
    r"""Epsilon of the selection from two points of the base, chosen before the candidates are.

    Claim: a base that is ``(e_1, d_1)``-DP and ``(e_hat, delta/m)``-DP gives a selection that is ``(e, delta)``-DP with
    ``e = e_hat + (eta+1) log(exp(e_1) + (1-gamma)/gamma d_1)``.

    Holds when K ~ D(eta, gamma) without a cap and every candidate keeps both points. Label: cor:adjust.
    """
    law = _negbin(count, "cor:adjust")
    first, hat = check_number("epsilon_1", epsilon_1, NON_NEGATIVE), check_number("epsilon_hat", epsilon_hat, NON_NEGATIVE)
    leak = (1.0 - law.resolved_gamma) / law.resolved_gamma * check_number("delta_1", delta_1, UNIT)
    return (hat + (law.eta + 1.0) * (first + math.log1p(leak * math.exp(-first)))) * _UP


def cor_pointwise0(epsilon: float, count: Count) -> float:
    """Epsilon of the selection over a pure base.

    Claim: an e-DP base gives an ``(eta+2) e``-DP selection; with eta = 1 the 3e of Liu and Talwar.

    Holds when K ~ D(eta, gamma) without a cap. Label: cor:pointwise0.
    """
    law = _negbin(count, "cor:pointwise0")
    return (law.eta + 2.0) * check_number("epsilon", epsilon, NON_NEGATIVE) * _UP


def cor_pointwise(epsilon: float, delta: float, count: Count) -> tuple[float, float]:
    r"""One point of the selection from one point of the base.

    Claim: an ``(e, d)``-DP base gives a selection that is ``((eta+2) e + (eta+1) d/gamma, m d)``-DP.

    The printed statement has ``d/gamma`` without the factor ``eta+1``, which its proof does not give: see docs/errata.md.

    Holds when K ~ D(eta, gamma) without a cap. Label: cor:pointwise.
    """
    law = _negbin(count, "cor:pointwise")
    e, d = check_number("epsilon", epsilon, NON_NEGATIVE), check_number("delta", delta, UNIT)
    return ((law.eta + 2.0) * e + (law.eta + 1.0) * d / law.resolved_gamma) * _UP, min(law.expected() * d * _UP, 1.0)


def cor_pointwise_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """Epsilon by :func:`cor_pointwise` at one delta, from the base's point at ``delta/m``."""
    law = _negbin(count, "cor:pointwise")
    base_delta = check_number("delta", delta, OPEN_UNIT) / (law.expected() * _UP)
    base_epsilon = solve_epsilon(lambda e: float(profile(np.asarray(e))), base_delta)
    return cor_pointwise(base_epsilon, base_delta, law)[0] if math.isfinite(base_epsilon) else math.inf


def lem_gdp(sigma: float, count: Count, delta: float) -> float:
    r"""Epsilon of the selection over a Gaussian base, in closed form.

    Claim: with noise sigma on sensitivity 1 the selection is ``(e, delta)``-DP for
    ``e = (eta+2) (1/(2 sigma^2) + sqrt(2 log(m/delta))/sigma) + (eta+1) delta/(gamma m)``.

    The printed statement has ``1/gamma`` in place of m under the logarithm, and the last term is a bare ``delta``: see
    docs/errata.md. The argument is ``thm:negbin`` with e_1 the bracket, at which the Gaussian profile is at most ``delta/m``.

    Holds when K ~ D(eta, gamma) without a cap, and the Gaussian mechanism dominates the base. Label: lem:GDP.
    """
    law = _negbin(count, "lem:GDP")
    noise, wanted = check_number("sigma", sigma, POSITIVE), check_number("delta", delta, OPEN_UNIT)
    mean = law.expected()
    first = 0.5 / noise**2 + math.sqrt(2.0 * math.log(mean / wanted)) / noise
    return ((law.eta + 2.0) * first + (law.eta + 1.0) * wanted / (law.resolved_gamma * mean)) * _UP


# -- binomial and Poisson K ----------------------------------------------------------------------------------------------


def thm_hs_bin(profile: Profile, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Delta of the selection for K ~ Binomial(n, p).

    Claim: ``delta_A(e) <= m delta(e - (n-1) log(1 + p (exp(e_1) - 1) + p delta(e_1)))`` for every e_1 >= 0 with
    ``exp(e_1) >= 1 + p/(1-p) delta(e_1)``.

    In ``a = exp(e_1)`` the profile's slope is at least -1, so ``a + delta`` never falls: the least allowed e_1 is the best. There the
    shift is ``(n-1) e_1``; the quotient of lem:aux0 is constant.

    Holds when K ~ Binomial(n, p) without a cap, p < 1, e >= 0, and the profile covers both orders. Label: thm:hs_bin.
    """
    law = _binomial(count)
    return _shifted_delta(profile, law.expected(), _binomial_shift(profile, law), epsilon)


def thm_hs_bin_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """The least epsilon found at which :func:`thm_hs_bin` is at most delta."""
    law = _binomial(count)
    return _shifted_epsilon(profile, law.expected(), _binomial_shift(profile, law), delta)


def _binomial(count: Count) -> Binomial:
    law = covered(count, Binomial, "thm:hs_bin", "binomial laws")
    if law.p >= 1.0:
        raise NotCoveredError(f"thm:hs_bin covers binomial laws with p < 1, got {law}")
    return law


def _binomial_shift(profile: Profile, law: Binomial) -> float:
    odds = law.p / (1.0 - law.p)

    def surplus(first: float) -> float:
        """At most 1 where e_1 is allowed."""
        leak = odds * float(profile(np.asarray(first)))
        return leak / math.expm1(first) if first > 0.0 else math.inf if leak > 0.0 else 0.0

    first = solve_epsilon(surplus, 1.0)
    if math.isinf(first):
        return math.inf
    allowed = law.p * (math.expm1(first) + float(profile(np.asarray(first))))
    return (law.n - 1) * math.log1p(allowed) * _UP


def cor_binomial_to_poisson(profile: Profile, count: Count, epsilon: ArrayLike) -> Floats:
    r"""Delta of the selection for K ~ Poisson(m).

    Claim: ``delta_A(e) <= m delta(e - m (exp(e_1) - 1) - m delta(e_1))`` for every e_1 >= 0. As ``exp(e_1) + delta(e_1)`` never falls,
    e_1 = 0 is always the best: the shift is m times the total variation distance.

    Holds when K ~ Poisson(m) without a cap, e >= 0, and the profile covers both orders. Label: cor:binomial_to_poisson.
    """
    law = covered(count, Poisson, "cor:binomial_to_poisson", "Poisson laws")
    return _shifted_delta(profile, law.mean, _poisson_shift(profile, law), epsilon)


def cor_binomial_to_poisson_epsilon(profile: Profile, count: Count, delta: float) -> float:
    """The least epsilon found at which :func:`cor_binomial_to_poisson` is at most delta."""
    law = covered(count, Poisson, "cor:binomial_to_poisson", "Poisson laws")
    return _shifted_epsilon(profile, law.mean, _poisson_shift(profile, law), delta)


def _poisson_shift(profile: Profile, law: Poisson) -> float:
    return law.mean * float(profile(np.asarray(0.0))) * _UP
