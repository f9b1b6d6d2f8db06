"""Private test on the distance to the nearest bad data set: an integer that one record changes by at most 1."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from scipy.special import log_ndtr, ndtri

from privselect._util.safe_search import smallest_integer_where
from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Callable

Noise = DiscreteLaplace | DiscreteGaussian

_DIGITS = 40
_SLACK = Decimal("1e-30")
_ROUNDING = 1e-10  # of the log of a normal tail, far more than scipy's error
_LARGEST = 10**15  # integers up to here, and these minus one half, are floats


def check_noise(name: str, noise: Any) -> Noise:
    """Return ``noise`` if it can be sampled exactly on the integers, or raise ``ParameterError``."""
    if not isinstance(noise, Noise):
        raise ParameterError(f"`{name}` must be discrete_laplace or discrete_gaussian noise on a distance, got {format_value(noise)}")
    return noise


@lru_cache(maxsize=64)
def threshold(noise: Noise, failure: float) -> int:
    """Return an integer t >= 1 with ``Pr(noise >= t) <= failure``.

    A distance of 0 then passes the test, by reaching t, with at most this probability. The threshold is the smallest one for discrete
    Laplace noise. For discrete Gaussian noise it is the smallest one by the bound of :func:`_gaussian_tail_fits`, which is nearly exact.
    """
    if isinstance(noise, DiscreteLaplace):
        return _smallest_integer(lambda t: _laplace_tail_fits(noise.scale, t, failure), -noise.scale * math.log(failure))
    return _smallest_integer(lambda t: _gaussian_tail_fits(noise.sigma, t, failure), -noise.sigma * float(ndtri(failure)))


def _smallest_integer(fits: Callable[[int], bool], guess: float) -> int:
    """Return the smallest t >= 1 that fits, by doubling and bisection from a guess, given that larger ones fit too."""
    high = max(math.ceil(min(guess, _LARGEST)), 1)
    while not fits(high):
        high *= 2
        if high > _LARGEST:
            raise ParameterError(f"`test` has too much noise: its threshold exceeds {_LARGEST:g}. Use less noise or a greater `failure`.")
    return smallest_integer_where(fits, 0, high)


def _laplace_tail_fits(scale: float, t: int, failure: float) -> bool:
    """Check ``Pr(noise >= t) = q^t/(1+q) <= failure``, with ``q = exp(-1/scale)``, for t >= 1."""
    with localcontext() as context:
        context.prec = _DIGITS
        tail = (-t / Decimal(scale)).exp() / (1 + (-1 / Decimal(scale)).exp())
        return tail * (1 + _SLACK) <= Decimal(failure)


def _gaussian_tail_fits(sigma: float, t: int, failure: float) -> bool:
    """Check the tail of a discrete Gaussian by a bound that holds for ``t - 1/2 >= sigma``; smaller t do not fit.

    Claim: ``Pr(noise >= t) <= Phi(-(t - 1/2)/sigma)`` if ``t - 1/2 >= sigma``.

    Proof: ``w(x) = exp(-x^2/(2 sigma^2))`` is convex from sigma on. So each w(k) there is at most the mean of w over [k - 1/2, k + 1/2],
    and the sum over k >= t is at most the integral from t - 1/2 on. The sum over all k is at least the integral of w over the line:
    by Poisson summation they differ by positive terms.
    """
    z = (t - 0.5) / sigma
    return z >= 1.0 + 1e-15 and float(log_ndtr(-z)) * (1.0 - _ROUNDING) <= math.log(failure)
