r"""Logs of binomial and Poisson terms and tails, with errors of a few units in the last place for parameters up to 1e15.

scipy's ``betainc(2, 1e9, x)`` has an error of 5e-9 (1.17), and its tails underflow. Here a tail is its first term times a continued
fraction. A term is a function of its distance ``d`` from the mean, which the caller computes without cancellation:

    n! / (a! b!) x^a y^b,   n = a+b,  x+y = 1,  d = a - n x = n y - b
      = exp( a ell(-d/a) + b ell(d/b) + e(n) - e(a) - e(b) ) sqrt(n / (2 pi a b)),

with ``ell(t) = log(1+t) - t`` and ``e`` the error of Stirling's formula (C. Loader, "Fast and accurate computation of
binomial probabilities", 2000; his deviance is ``-a ell(-d/a)``). The fractions are those of DiDonato and Morris (ACM
TOMS 708, 1992) and of Legendre.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LOG_2PI = math.log(2.0 * math.pi)
_ENOUGH = 4e-16  # a continued fraction ends at a factor this close to 1
_MOST_TERMS = 1_000_000  # far more than the few thousand needed
_BROAD = 2000.0  # from this standard deviation on, sums are computed as integrals
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
# B_{2j} / (2j (2j-1)): for x >= 12 the first omitted term is below 1e-17.
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400)


def log1p_minus(t: Floats, one_plus_t: Floats) -> Floats:
    """Return ``log(1+t) - t`` without cancellation; ``1+t`` is an argument because near t = -1 the sum has lost its digits."""
    middle = (t > -0.5) & (t < 1.0)
    s = np.where(middle, t, 0.0)
    s = s / (2.0 + s)  # log(1+t) = 2 atanh(s), and 2 s - t = -t s
    square = s * s
    series = np.zeros_like(s)
    for odd in range(41, 1, -2):
        series = series * square + 2.0 / odd
    with np.errstate(divide="ignore"):
        return np.where(middle, s * (square * series - t), np.log(one_plus_t) - t)


def stirling_error(x: Floats) -> Floats:
    """Return ``e(x) = log Gamma(x+1) - (x + 1/2) log x + x - log(2 pi)/2``, for x > 0."""
    small = x < 12.0
    inverse = 1.0 / np.where(small, x + 12.0, x)
    series = np.zeros_like(inverse)
    for coefficient in reversed(_STIRLING):
        series = series * (inverse * inverse) + coefficient
    result = np.asarray(series * inverse)
    for i in range(12):  # e(x) - e(x+1) = (x + 1/2) log(1 + 1/x) - 1
        y = x[small] + i
        result[small] += (y + 0.5) * np.log1p(1.0 / y) - 1.0
    return result


def log_binomial_term(a: Floats, b: Floats, x: Floats, y: Floats, d: Floats) -> Floats:
    """Return ``log( Gamma(a+b+1)/(Gamma(a+1) Gamma(b+1)) x^a y^b )`` for a, b > 0, x + y = 1 and d = a - (a+b) x."""
    n = a + b
    deviance = a * log1p_minus(-d / a, n * x / a) + b * log1p_minus(d / b, n * y / b)
    return deviance + stirling_error(n) - stirling_error(a) - stirling_error(b) + 0.5 * (np.log(n / a / b) - _LOG_2PI)


def log_poisson_term(n: Floats, x: Floats, d: Floats) -> Floats:
    """Return ``log( x^n e^-x / Gamma(n+1) )`` for n > 0, x >= 0 and d = x - n."""
    return n * log1p_minus(d / n, x / n) - stirling_error(n) - 0.5 * (np.log(n) + _LOG_2PI)


def log_betainc(a: float, b: float, x: Floats, y: Floats, d: Floats) -> Floats:
    """Return ``log I_x(a, b)``, the log of the regularised incomplete beta function, for a, b > 0, x + y = 1 and d = a - (a+b) x.

    For integer b it is ``log P(Binomial(a+b-1, y) < b)``. If both a and b exceed 4e6, b must be an integer.
    """
    spread = np.sqrt((a + b) * x * y)
    near = (spread > _BROAD) & (np.abs(d) < spread)
    result = np.empty_like(d)
    result[~near] = _log_beta_tail(a, b, x[~near], y[~near], d[~near])

    def log_term(back: Floats) -> Floats:
        """Return the binomial term at t = b - back."""
        t, p, q = b - back, x[near, None], y[near, None]
        return log_binomial_term(a + back - 1.0, t, p, q, d[near, None] - q + back)

    slope = np.log1p(d[near] / b) - np.log1p(-d[near] / a)
    result[near] = _log_sum_below(log_term, slope, spread[near])
    return np.where(y == 0.0, 0.0, np.where(x == 0.0, -np.inf, result))


def log_gammaincc(n: float, x: Floats, d: Floats) -> Floats:
    """Return ``log Q(n, x) = log P(Poisson(x) < n)`` for n > 0, x >= 0 and d = x - n."""
    spread = np.sqrt(x)
    near = (spread > _BROAD) & (np.abs(d) < spread)
    above, under = ~near & (d >= 0.0), ~near & (d < 0.0)
    result = np.empty_like(d)
    # Each continued fraction converges fast on one side only.
    fraction = _lentz(_upper_gamma_fraction(n, d[above]))
    result[above] = np.minimum(_log_poisson_end(n, x[above], d[above]) - np.log(fraction), 0.0)
    fraction = _lentz(_lower_gamma_fraction(n, x[under], d[under]))
    with np.errstate(divide="ignore"):
        result[under] = np.log1p(-np.exp(np.minimum(_log_poisson_end(n, x[under], d[under]) - np.log(fraction), 0.0)))

    def log_term(back: Floats) -> Floats:
        """Return the Poisson term at t = n - back."""
        return log_poisson_term(n - back, x[near, None], d[near, None] + back)

    result[near] = _log_sum_below(log_term, np.log1p(d[near] / n), spread[near])
    return np.where(x == 0.0, 0.0, result)


def _log_beta_tail(a: float, b: float, x: Floats, y: Floats, d: Floats) -> Floats:
    left = d > (-0.5 if a <= b else 0.5)  # switch at the mean; for small a or b its own fraction converges faster there
    near, far = np.where(left, a, b), np.where(left, b, a)
    p, q, gap = np.where(left, x, y), np.where(left, y, x), np.where(left, d, -d)
    term = log_binomial_term(near, far, p, q, gap) + np.log(near / (near + far)) + np.log(far)
    tail = np.minimum(term - np.log(_lentz(_beta_fraction(near, far, p, q, gap))), 0.0)  # rounding may exceed probability 1
    with np.errstate(divide="ignore"):
        return np.asarray(np.where(left, tail, np.log1p(-np.exp(tail))), dtype=np.float64)


def _log_poisson_end(n: float, x: Floats, d: Floats) -> Floats:
    return log_poisson_term(np.full_like(d, n), x, d) + math.log(n)


def _log_sum_below(log_term: Callable[[Floats], Floats], slope: Floats, spread: Floats) -> Floats:
    """Return ``log sum_{t = 1, 2, ...} f(n - t)`` for a broad bell f, for which a fraction would need about ``spread`` terms.

    By the midpoint rule of Euler and Maclaurin, the sum is the integral of f below n - 1/2, minus f'/24 there; the next term is
    smaller by spread^2. ``slope`` is f'/f there. The integral omits e^-60 of the bell.
    """
    back = 0.5 + spread[:, None] * (5.5 * (1.0 + _NODES))
    logs = log_term(back)
    end = log_term(np.full((len(spread), 1), 0.5))[:, 0]
    top = logs.max(axis=1, initial=-np.inf)
    area = 5.5 * spread * (np.exp(logs - top[:, None]) @ _WEIGHTS)
    return np.asarray(top + np.log(area - np.exp(end - top) * slope / 24.0), dtype=np.float64)


def _beta_fraction(a: Floats, b: Floats, x: Floats, y: Floats, d: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield the continued fraction of ``x^a y^b / (B(a,b) I_x(a,b))``, which converges fast for d >= 0."""
    yield np.zeros_like(d), a / (a + 1.0) * (d + 1.0)
    for m in itertools.count(1):
        # Factors are paired to avoid overflow: a and b may be 1e300 each.
        middle = a + (2 * m - 1)
        over = (b - m) * x
        top = (a + (m - 1)) / middle * ((a + b + (m - 1)) * x / middle) * m * over
        yield top, m + m * over / middle + (a + m) / (a + (2 * m + 1)) * (d + 1.0 + m * (1.0 + y))


def _lower_gamma_fraction(n: float, x: Floats, d: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield the continued fraction of ``x^n e^-x / (Gamma(n) P(n,x))``, fast for d = x - n <= 0: the limit of the one above."""
    yield np.zeros_like(d), n / (n + 1.0) * (1.0 - d)
    for m in itertools.count(1):
        middle = n + (2 * m - 1)
        yield (n + (m - 1)) / middle * (x / middle) * m * x, m + m * x / middle + (n + m) / (n + (2 * m + 1)) * (2 * m + 1 - d)


def _upper_gamma_fraction(n: float, d: Floats) -> Iterator[tuple[Floats, Floats]]:
    """Yield the continued fraction of ``x^n e^-x / (Gamma(n) Q(n,x))``, fast for d = x - n >= 0."""
    yield np.zeros_like(d), d + 1.0
    for m in itertools.count(1):
        yield np.full_like(d, m * (n - m)), d + (2 * m + 1)


def _lentz(fraction: Iterator[tuple[Floats, Floats]]) -> Floats:
    """Evaluate ``b0 + a1/(b1 + a2/(b2 + ...))`` by the modified Lentz method; the first pair is (0, b0)."""
    _, value = next(fraction)
    c, d = value, np.zeros_like(value)
    going = np.ones(value.shape, dtype=bool)
    for a, b in itertools.islice(fraction, _MOST_TERMS):
        d = 1.0 / (b + a * d)
        c = b + a / c
        factor = c * d
        value = np.where(going, value * factor, value)
        going &= np.abs(factor - 1.0) > _ENOUGH  # permanently: later factors differ from 1 only by rounding
        if not going.any():
            break
    return value
