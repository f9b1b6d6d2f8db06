"""A private test by the distance to the nearest bad data set: a whole number that one record moves by at most 1."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from scipy.special import log_ndtr, ndtri

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.mechanisms import DiscreteGaussian, DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Callable

Noise = DiscreteLaplace | DiscreteGaussian

_DIGITS = 40
_SLACK = Decimal("1e-30")
_ROUNDING = 1e-10  # of a logarithm of a normal tail, far more than scipy's
_FARTHEST = 10**15  # a whole number up to here is a float, and so is half of one more


def check_noise(name: str, noise: Any) -> Noise:
    """``noise`` if it is of a kind that can be drawn exactly on the whole numbers."""
    if not isinstance(noise, Noise):
        raise ParameterError(f"`{name}` must be discrete_laplace or discrete_gaussian noise on a distance, got {format_value(noise)}")
    return noise


@lru_cache(maxsize=64)
def threshold(noise: Noise, failure: float) -> int:
    """A whole number t >= 1 with ``Pr(noise >= t) <= failure``: a distance of 0 passes, by reaching t, with at most that chance.

    The least one for discrete Laplace noise. For a discrete Gaussian it is the least one by the bound of :func:`_gaussian_tail_fits`,
    which is nearly exact.
    """
    if isinstance(noise, DiscreteLaplace):
        return _first(lambda t: _laplace_tail_fits(noise.scale, t, failure), -noise.scale * math.log(failure))
    return _first(lambda t: _gaussian_tail_fits(noise.sigma, t, failure), -noise.sigma * float(ndtri(failure)))


def _first(fits: Callable[[int], bool], guess: float) -> int:
    """The least t >= 1 that fits, by steps and halving from a guess: what fits stays so further out."""
    high = max(math.ceil(min(guess, _FARTHEST)), 1)
    while not fits(high):
        high *= 2
        if high > _FARTHEST:
            raise ParameterError(
                f"the noise of the test is too broad for a threshold below {_FARTHEST:g}; use less noise or a greater `failure`"
            )
    low = 0  # fits not, or is not asked
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _laplace_tail_fits(scale: float, t: int, failure: float) -> bool:
    """``Pr(noise >= t) = q^t/(1+q)``, with ``q = exp(-1/scale)``, for t >= 1."""
    with localcontext() as context:
        context.prec = _DIGITS
        tail = (-t / Decimal(scale)).exp() / (1 + (-1 / Decimal(scale)).exp())
        return tail * (1 + _SLACK) <= Decimal(failure)


def _gaussian_tail_fits(sigma: float, t: int, failure: float) -> bool:
    """Claim: ``Pr(noise >= t) <= Phi(-(t - 1/2)/sigma)`` where ``t - 1/2 >= sigma``; below, it is not asked, and nothing fits.

    Proof: ``w(x) = exp(-x^2/(2 sigma^2))`` is convex from sigma on, so there each w(k) is at most the mean of w over k - 1/2 to k + 1/2:
    the sum over k >= t is at most the integral from t - 1/2 on. The sum over all k is at least the integral of w over the line, as by
    Poisson summation they differ by positive terms.
    """
    place = (t - 0.5) / sigma
    return place >= 1.0 + 1e-15 and float(log_ndtr(-place)) * (1.0 - _ROUNDING) <= math.log(failure)
