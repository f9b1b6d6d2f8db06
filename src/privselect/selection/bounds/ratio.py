"""**Ratio**: the law of K moves every outcome's chances by at most one factor, the exact supremum of that factor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import NON_NEGATIVE, check_array, check_number
from privselect.counts import Binomial, Poisson
from privselect.counts.truncated_negative_binomial import Truncated
from privselect.errors import NotCoveredError
from privselect.selection.safe_search import greatest_along, solve_epsilon

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

# log phi' is right to 1e-12, relative where it is large; expected() to less.
_LOG_ROUNDING = 1e-12


def log_ratio(pair: DominatingPair, count: Count) -> float:
    """An upper bound on ``log sup_u phi'(1-u)/phi'(1-g(u))``: how much a mass u ranked above, seen as g(u), can shift the odds.

    g is made of straight pieces. For an uncapped D(eta, gamma) and binomial, ``phi'(1-u)/phi'(1-v)`` is a power of a quotient of
    linear functions, for a Poisson law the exponential of a linear one: along a piece it is monotone, so the supremum is at a
    vertex and the bound is exact but for rounding. For any other law it is bounded piece by piece.
    """
    u, v = vertices(pair)
    top, bottom = count.log_dpgf(u), count.log_dpgf(v)
    if count.cap is None and isinstance(count, (Truncated, Poisson, Binomial)):
        with np.errstate(invalid="ignore"):
            gap = top - bottom + _LOG_ROUNDING * (1.0 + np.abs(top) + np.abs(bottom))
        # Where both chances are nil, at (1, 1), the quotient tends to its value at the vertex before.
        return float(np.nanmax(gap))
    depth = np.abs(bottom[np.isfinite(bottom)]).max(initial=abs(float(top[0])))
    return float(greatest_along(count.log_dpgf, (u, v)) + _LOG_ROUNDING * (1.0 + 2.0 * depth))


def ratio_delta(pair: DominatingPair, count: Count, epsilon: ArrayLike) -> Floats:
    r"""An upper bound on the selection's hockey stick from one shift of the base's.

    Claim: ``delta_A(e) <= m delta_{P||P'}(e - r)`` with ``r = log sup_u phi'(1-u)/phi'(1-g(u))``. For K ~ D(eta, gamma)
    this r is ``(eta+1) e*``, where ``delta_{P'||P}(e*) = gamma/(1-gamma) (exp(e*) - 1)``.

    Holds when the pair dominates the base mechanism in this order of the neighbours, the law of K is public and
    independent of the data, and e >= 0 (so that the outcome of K = 0 adds nothing). Label: **Ratio**.
    """
    eps = check_array("epsilon", epsilon, NON_NEGATIVE)
    shifted = np.nextafter(eps - log_ratio(pair, count), -np.inf)
    return np.minimum(count.expected() * (1.0 + 1e-12) * pair.hockey_stick(shifted, side=1), 1.0)


def ratio_epsilon(pair: DominatingPair, count: Count, delta: float) -> float:
    """The least epsilon with :func:`ratio_delta` at most delta."""
    shift = log_ratio(pair, count)
    if math.isinf(shift):
        return solve_epsilon(lambda _: float(ratio_delta(pair, count, 0.0)), delta)
    mean = count.expected() * (1.0 + 1e-12)
    base = float(pair.epsilon_at(min(delta / mean, 1.0), side=1))
    shifted = math.nextafter(base + shift, math.inf)
    if base > 0.0:
        return shifted
    return min(solve_epsilon(lambda e: mean * float(pair.hockey_stick(np.nextafter(e - shift, -np.inf), side=1)), delta), shifted)


def pure_ratio_epsilon(epsilon: float, count: Count) -> float:
    r"""**Ratio** for an epsilon-DP base, in closed form: the selection is pure DP with the epsilon returned.

    With ``s = exp(e)/(1+exp(e))``:

    - D(eta, gamma): ``e + (eta+1) log((exp(e) + gamma)/(1 + gamma exp(e)))``
    - Poisson(m): ``e + m tanh(e/2)``
    - Binomial(n, p): ``e + (n-1) log((1 - p + p s)/(1 - p s))``

    Holds when every trial is epsilon-DP and the law of K is one of these, without a cap. Tight: randomised response attains it.
    """
    e = check_number("epsilon", epsilon, NON_NEGATIVE)
    if count.cap is not None:
        raise NotCoveredError(f"Ratio has no closed form for a capped law, got {count}")
    if isinstance(count, Truncated):
        log_gamma = math.log(count.resolved_gamma)
        return e + (count.eta + 1.0) * float(np.logaddexp(e, log_gamma) - np.logaddexp(0.0, log_gamma + e))
    if isinstance(count, Poisson):
        return e + count.mean * math.tanh(0.5 * e)
    if isinstance(count, Binomial):
        low = 1.0 / (1.0 + math.exp(e)) if e < 700.0 else math.exp(-e)  # 1 - s, with its digits
        return e + (count.n - 1) * (math.log1p(-count.p * low) - math.log(1.0 - count.p + count.p * low))
    raise NotCoveredError(f"Ratio has a closed form for D(eta, gamma), Poisson and binomial laws only, got {count}")


def vertices(pair: DominatingPair) -> tuple[Floats, Floats]:
    """The vertices (u, g(u)) of g, u rounded down and g(u) up."""
    x, g = pair.low_nodes
    u = np.minimum(x * (1.0 - pair.relative_rounding), 1.0)
    v = np.minimum(g * (1.0 + pair.relative_rounding), 1.0)
    if pair.p_only == 0.0:
        u[-1] = v[-1] = 1.0  # all the mass there is
    else:
        v[-1] = 1.0
    return u, v
