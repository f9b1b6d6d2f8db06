"""Theorems that only tests use: exact divergences of one score order, and closed forms."""

import math

import numpy as np

from privselect._util.safe_search import solve_epsilon
from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, check_number
from privselect.counts import Binomial, Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError
from privselect.pairs import DominatingPair
from privselect.pairs.dominating_pair import renyi_of_pair
from privselect.selection.bounds.paper_bounds import cor_pointwise
from privselect.selection.bounds.ratio import g_vertices
from privselect.selection.exact.weight_bounds import Weight
from research.theorems.main_theorem import Power

_GAUSS_NODES, _GAUSS_WEIGHTS = np.polynomial.legendre.leggauss(8)


def selection_divergence(f, p, q, count):
    """Compute ``H_f(A||A')`` for this score order, by quadrature of phi' (relative error below 1e-12, not rounded to either side)."""
    DominatingPair.from_masses(p, q)  # validates the masses
    none = np.array([count.probability_of_zero()])
    terms = f.perspective(selected_masses(p, count), selected_masses(q, count))
    return float(np.sum(terms) + f.perspective(none, none)[0])


def selected_masses(masses, count):
    """Return the winner's distribution over the same outcomes, best score first; the mass missing to 1 is P(K=0)."""
    given = np.asarray(masses, dtype=np.float64)
    edges = np.concatenate([[0.0], np.minimum(np.cumsum(given)[:-1], 1.0), [1.0]])
    cuts = np.unique(np.concatenate([edges, Weight(count, 0.0).equal_declines(0.1)]))
    half = 0.5 * np.diff(cuts)
    values = np.exp(count.log_dpgf((cuts[:-1] + half)[:, None] + half[:, None] * _GAUSS_NODES))
    pieces = half * (values @ _GAUSS_WEIGHTS)
    owner = np.searchsorted(edges, cuts[:-1], side="right") - 1
    return np.bincount(owner, weights=pieces, minlength=len(given))[: len(given)].astype(np.float64)


def lemma_7(p, q, count, alpha):
    r"""Return the Renyi bound that ``thm:main_thm`` yields for ``f(z) = z^alpha``: Lemma 7 of Papernot and Steinke (2022).

    Claim: ``D_alpha(A||A') <= D_alpha(Q||Q') + 1/(alpha-1) sup log( phi'(q)^alpha phi'(q')^(1-alpha) )``, over all (q, q') that one
    post-processing makes of Q and Q'. With u = 1-q given, v = 1-q' is at most g(u).

    Holds when K >= 1.
    """
    pair = DominatingPair.from_masses(p, q)
    return float(renyi_of_pair(pair, alpha)) + Power(alpha).log_penalty(*g_vertices(pair), count) / (alpha - 1.0)


def cor_pointwise_epsilon(profile, count, delta):
    """Return epsilon by ``cor:pointwise`` at one delta, from the base's point at ``delta/m``."""
    base_delta = check_number("delta", delta, OPEN_UNIT) / (count.expected() * (1.0 + 1e-12))
    base_epsilon = solve_epsilon(lambda e: float(profile(np.asarray(e))), base_delta)
    return cor_pointwise(base_epsilon, base_delta, count)[0] if math.isfinite(base_epsilon) else math.inf


def pure_ratio_epsilon(epsilon, count):
    r"""Return epsilon of the selection by **Ratio** over an epsilon-DP base, in closed form.

    With ``s = exp(e)/(1+exp(e))``:

    - D(eta, gamma): ``e + (eta+1) log((exp(e) + gamma)/(1 + gamma exp(e)))``
    - Poisson(m): ``e + m tanh(e/2)``
    - Binomial(n, p): ``e + (n-1) log((1 - p + p s)/(1 - p s))``

    Holds when every trial is epsilon-DP and K follows one of these distributions, without a cap. Tight: randomised response attains it.
    """
    e = check_number("epsilon", epsilon, NON_NEGATIVE)
    if count.cap is not None:
        raise NotCoveredError(f"Ratio has no closed form for a capped law of K, got {count}")
    if isinstance(count, TruncatedNegativeBinomial):
        log_gamma = math.log(count.resolved_gamma)
        return e + (count.eta + 1.0) * float(np.logaddexp(e, log_gamma) - np.logaddexp(0.0, log_gamma + e))
    if isinstance(count, Poisson):
        return e + count.mean * math.tanh(0.5 * e)
    if isinstance(count, Binomial):
        low = 1.0 / (1.0 + math.exp(e)) if e < 700.0 else math.exp(-e)  # 1 - s, without cancellation
        return e + (count.n - 1) * (math.log1p(-count.p * low) - math.log(1.0 - count.p + count.p * low))
    raise NotCoveredError(f"Ratio has a closed form for D(eta, gamma), Poisson and binomial K only, got {count}")
