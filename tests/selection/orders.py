"""The exact delta of an order of the outcomes, from the generating function of K only: nothing here uses the engine under test."""

import itertools

import mpmath
import numpy as np

from privselect.counts import Binomial, Finite, Fixed, Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial

DIGITS = 40


def pgf(count, u, lib=np):
    """``phi(1-u) = E (1-u)^K``, in floats with ``lib=numpy`` (error below 1e-14) or with any number of digits with ``lib=mpmath``."""
    number = float if lib is np else mpmath.mpf
    if count.cap is not None or isinstance(count, (Fixed, Finite)):
        return sum(share * (1 - u) ** k for k, share in _table(count, number))
    if isinstance(count, Poisson):
        return lib.exp(-number(count.mean) * u)
    if isinstance(count, Binomial):
        return (1 - number(count.p) * u) ** count.n
    if not isinstance(count, TruncatedNegativeBinomial):
        raise TypeError(count)
    gamma, eta = number(count.resolved_gamma), number(count.eta)
    rest = gamma + (1 - gamma) * u
    if gamma == 1:
        return 1 - u
    if eta == 0:
        return lib.log(rest) / lib.log(gamma)
    return (rest**-eta - 1) / (gamma**-eta - 1)


def _table(count, number):
    if isinstance(count, Fixed):
        return [(count.k, number(1))]
    if isinstance(count, Finite):
        kept = [(k, number(weight)) for k, weight in count.pmf if count.cap is None or k <= count.cap]
    elif isinstance(count, TruncatedNegativeBinomial) and count.eta == 1:
        kept = [(k, (1 - number(count.resolved_gamma)) ** k) for k in range(1, count.cap + 1)]
    else:
        raise TypeError(count)
    total = sum(weight for _, weight in kept)
    return [(k, weight / total) for k, weight in kept]


def leak(count, p, q, epsilon):
    """The hockey stick at any real epsilon of the selection over pieces ranked best first, of exact masses p and q."""
    gains, costs = (selected_masses(count, masses) for masses in (p, q))
    factor = mpmath.exp(mpmath.mpf(epsilon))
    nothing = pgf(count, mpmath.mpf(1), mpmath)  # K = 0
    return sum(max(a - factor * b, 0) for a, b in zip(gains, costs, strict=True)) + max(nothing * (1 - factor), 0)


def selected_masses(count, masses):
    """The probability of each piece, ranked best first, to be released; without K = 0."""
    above = [mpmath.mpf(0), *itertools.accumulate(masses)]
    values = [pgf(count, u, mpmath) for u in above]
    return [before - after for before, after in itertools.pairwise(values)]


def leaks(count, p, q, epsilon):
    """The same in floats for many orders at once, one per row: the error is below 1e-12 times ``1 + e^epsilon``."""

    def chances(masses):
        above = np.concatenate([np.zeros((len(masses), 1)), np.cumsum(masses, axis=1)], axis=1)
        return -np.diff(pgf(count, np.clip(above, 0.0, 1.0)), axis=1)

    counted = np.maximum(chances(p) - np.exp(epsilon) * chances(q), 0.0).sum(axis=1)
    return counted + pgf(count, 1.0) * max(-np.expm1(epsilon), 0.0)


def worst_of(count, p, q, orders, epsilon):
    """The largest delta over the orders of outcomes with masses p and q (fractions): found in floats, then computed in full precision."""
    found = leaks(count, np.array(p, dtype=float)[orders], np.array(q, dtype=float)[orders], epsilon)
    worst = orders[int(np.argmax(found))]
    with mpmath.workdps(DIGITS):
        return leak(count, [exact(p[i]) for i in worst], [exact(q[i]) for i in worst], epsilon)


def exact(fraction):
    return mpmath.mpf(fraction.numerator) / fraction.denominator


def worst_split(count, p, q, epsilon, size):
    """The largest delta over orders whose pieces lie on a lattice of about ``size`` cuts each way, by dynamic programming in floats.

    Low losses from the top on one axis, high losses on the other; each way through the lattice is an order with split outcomes.
    """
    with np.errstate(divide="ignore"):
        falling = np.argsort(-(np.log(p) - np.log(q)), kind="stable")
    y_at, k_at = (np.concatenate([[0.0], np.cumsum(masses[falling])]) for masses in (p, q))
    x_at, g_at = 1.0 - y_at[::-1], 1.0 - k_at[::-1]
    y, k = _cut(y_at, k_at, size)
    x, g = _cut(x_at, g_at, size)
    value, factor = np.zeros(len(x)), np.exp(epsilon)
    for i in range(len(y) - 1):
        gain = pgf(count, np.minimum(x + y[i], 1.0)) - pgf(count, np.minimum(x + y[i + 1], 1.0))
        cost = pgf(count, np.minimum(g + k[i], 1.0)) - pgf(count, np.minimum(g + k[i + 1], 1.0))
        fits = (x + y[i + 1] <= 1.0 + 1e-12) & (g + k[i + 1] <= 1.0 + 1e-12)
        value = np.maximum.accumulate(value) + np.where(fits, np.maximum(gain - factor * cost, 0.0), 0.0)
    return float(value.max())


def _cut(at, other, size):
    """The path (at, other) cut at its corners and at ``size`` more points, which are dense near the top, where K's weight is steep."""
    length = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(at), np.diff(other)))])
    places = np.union1d(length, length[-1] * np.linspace(0.0, 1.0, size) ** 3)
    return np.interp(places, length, at), np.interp(places, length, other)
