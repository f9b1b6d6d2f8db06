"""Laws of K in mpmath, from their definitions and the exact float parameters, without code of the package."""

from fractions import Fraction
from functools import lru_cache

import mpmath as mp

from privselect.counts import Binomial, Finite, Fixed, Poisson

DIGITS = 50
_BITS = 200  # of fixed-point sums of positive terms, each at most 1
_SHORT = 3000  # smaller supports are summed term by term


def exact(x):
    x = Fraction(x)
    return mp.mpf(x.numerator) / x.denominator


def log_dpgf(law, u):
    """Return ``log sum_k k P(k) (1-u)^(k-1)``."""
    with mp.workdps(DIGITS):
        value = _dpgf(law, Fraction(u))
        return mp.log(value) if value else -mp.inf


def _dpgf(law, u):
    top = law.largest
    if top is not None and top <= _SHORT:
        total, weights = _weights(law)
        z, power, at, terms = exact(1 - u), mp.mpf(1), 1, []
        for k, w in weights:
            if k:
                power, at = power * z ** (k - at), k
                terms.append(k * w * power)
        return mp.fsum(terms) / total
    for kind, formula in ((Poisson, _poisson), (Binomial, _binomial), (Fixed, _fixed)):
        if isinstance(law, kind):
            return formula(law, u)
    return _truncated(law, u)


@lru_cache(maxsize=64)
def _weights(law):
    """Return all weights up to a factor, by the ratios of neighbours in the definition, with 50 digits."""
    if isinstance(law, Finite):
        weights = [(k, mp.mpf(w)) for k, w in law.pmf if law.cap is None or k <= law.cap]
    elif isinstance(law, Fixed):
        weights = [(law.k, mp.mpf(1))]
    elif isinstance(law, Poisson):
        weights = _walk(0, law.largest, lambda k: exact(law.mean) / (k + 1))
    elif isinstance(law, Binomial):
        odds = exact(law.p) / exact(1 - Fraction(law.p)) if law.p < 1 else None
        weights = [(law.n, mp.mpf(1))] if odds is None else _walk(0, law.largest, lambda k: odds * (law.n - k) / (k + 1))
    else:
        q = exact(1 - Fraction(law.resolved_gamma))
        weights = _walk(1, law.largest, lambda k: q * (k + exact(law.eta)) / (k + 1))
    return mp.fsum(w for _, w in weights), weights


def _walk(first, last, ratio):
    weights = [(first, mp.mpf(1))]
    for k in range(first, last):
        weights.append((k + 1, weights[-1][1] * ratio(k)))
    return weights


def _fixed(law, u):
    return law.k * exact(1 - u) ** (law.k - 1)


def _poisson(law, u):
    m = exact(law.mean)
    whole = m * mp.exp(-m * exact(u))
    if law.cap is None:
        return whole
    return whole * poisson_below(law.cap, Fraction(law.mean) * (1 - u)) / poisson_below(law.cap + 1, Fraction(law.mean))


def _binomial(law, u):
    p, n = Fraction(law.p), law.n
    whole = n * exact(p) * exact(1 - p * u) ** (n - 1)
    if law.cap is None or law.cap >= n:
        return whole
    return whole * binomial_below(law.cap, n - 1, p * (1 - u) / (1 - p * u)) / binomial_below(law.cap + 1, n, p)


def _truncated(law, u):
    gamma, eta = Fraction(law.resolved_gamma), Fraction(law.eta)
    tilted = gamma + (1 - gamma) * u
    whole = truncated_mean(law) * (exact(gamma) / exact(tilted)) ** exact(eta + 1)
    if law.cap is None:
        return whole
    return whole * beta(exact(eta + 1), mp.mpf(law.cap), exact(tilted)) / truncated_below(law, law.cap)


def truncated_mean(law):
    gamma, eta = exact(law.resolved_gamma), exact(law.eta)
    if gamma == 1:
        return mp.mpf(1)
    shape = eta / -mp.expm1(eta * mp.log(gamma)) if eta else -1 / mp.log(gamma)
    return (1 - gamma) / gamma * shape


@lru_cache(maxsize=64)
def truncated_below(law, n):
    """Return ``P(K <= n) = (I_gamma(eta+1, n+1) - gamma^eta (1 - (1-gamma)^(n+1) Gamma(n+1+eta)/(Gamma(1+eta) n!))) / (1 - gamma^eta)``.

    At eta = 0 the limit is taken at eta = 1e-60 with digits to spare for the cancellation.
    """
    with mp.workdps(5 * DIGITS):
        gamma, eta = exact(law.resolved_gamma), exact(law.eta) or mp.mpf(10) ** -60
        growth = mp.exp(mp.loggamma(n + 1 + eta) - mp.loggamma(1 + eta) - mp.loggamma(n + 1))
        lost = gamma**eta * (1 - (1 - gamma) ** (n + 1) * growth)
        return (beta(eta + 1, mp.mpf(n + 1), gamma) - lost) / (1 - gamma**eta)


def beta(a, b, x):
    """Return ``I_x(a, b)`` by its series of positive terms."""
    if b * x > 2000 + 20 * a:  # the error is below e^-1000
        return mp.mpf(1)
    total, term, i = mp.mpf(0), mp.mpf(1), 0
    while term > total * mp.mpf(10) ** (-mp.mp.dps - 5) or (a + b + i) * x > a + 1 + i:
        total += term
        term *= (a + b + i) / (a + 1 + i) * x
        i += 1
    return total * mp.exp(a * mp.log(x) + b * mp.log1p(-x) + mp.loggamma(a + b) - mp.loggamma(a + 1) - mp.loggamma(b))


@lru_cache(maxsize=64)
def poisson_below(n, x):
    """Return ``P(Poisson(x) < n)``: the sum from its last term downwards, or 1 minus the complement from its first term upwards."""
    if not x:
        return mp.mpf(1)
    x = _shortened(x)
    with mp.workdps(2 * DIGITS):
        if x >= n:
            total = _fixed_point_sum(lambda i: ((n - 1 - i) * x.denominator, x.numerator))
            return total * mp.exp((n - 1) * mp.log(exact(x)) - exact(x) - mp.loggamma(n))
        total = _fixed_point_sum(lambda i: (x.numerator, (n + 1 + i) * x.denominator))
        return 1 - total * mp.exp(n * mp.log(exact(x)) - exact(x) - mp.loggamma(n + 1))


@lru_cache(maxsize=64)
def binomial_below(c, n, y):
    """Return ``P(Binomial(n, y) < c)``, in the same way."""
    if not y:
        return mp.mpf(1)
    y = _shortened(y)
    odds = y / (1 - y)
    with mp.workdps(2 * DIGITS):
        lower = y * n >= c
        start = c - 1 if lower else c
        head = mp.loggamma(n + 1) - mp.loggamma(start + 1) - mp.loggamma(n - start + 1)
        head = mp.exp(head + start * mp.log(exact(y)) + (n - start) * mp.log(exact(1 - y)))
        if lower:
            return head * _fixed_point_sum(lambda i: ((start - i) * odds.denominator, (n - start + i + 1) * odds.numerator))
        return 1 - head * _fixed_point_sum(lambda i: ((n - start - i) * odds.numerator, (start + i + 1) * odds.denominator))


def _shortened(x):
    """Round x to 75 digits: a tiny u gives fractions of a thousand digits, too slow for a million terms."""
    bits = 250 - x.numerator.bit_length() + x.denominator.bit_length()
    return Fraction(round(x * 2**bits), 2**bits) if bits > 0 else x


def _fixed_point_sum(ratio):
    """Return ``1 + r_0 + r_0 r_1 + ...`` for ratios of integers that are at most 1."""
    term, total, i = 1 << _BITS, 0, 0
    while term > 0:
        total += term
        top, bottom = ratio(i)
        term = term * top // bottom
        i += 1
    return mp.mpf(total) / (1 << _BITS)
