r"""One posterior sample with and without one row: the hockey sticks in closed form.

For a row (x, y) and the records without it: ``h = x'H^-1 x`` (the *leverage*), ``r = y - x'th``, and ``rho = precision r^2`` (the
*signal*). All that tells the two posteriors apart is ``V = (y - x'theta) sqrt(precision/h)``: without the row ``V ~ N(nu, 1)`` with
``nu = sqrt(rho/h)``, with it ``V ~ N(nu/(1+h), 1/(1+h))``, and the log ratio of the densities, with over without, is ``C - h V^2/2``,
``C = log(1+h)/2 + rho/(2(1+h))``. So the most telling sets are ``|V| <= v`` and ``|V| >= v``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import erfcx, ndtr

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Floats = NDArray[np.float64]

_MILLS = math.sqrt(math.pi / 2.0)
_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_ROUNDING = 1e-14  # of each term, and that times the square of its argument: a rounded argument moves a density by so much
_SUM = 1e-15  # of the summands of the loss at v: it is off by so much, and e^e times a term by as much of it
_LEAST = 1e-300  # below the least floats nothing is claimed


def with_over_without(leverage: ArrayLike, signal: ArrayLike, epsilon: ArrayLike, *, side: int = 0) -> Floats:
    """``delta_{with||without}(e) = Pr_with(|V| <= v) - e^e Pr_without(|V| <= v)``, ``v^2 = 2(C - e)/h``, for e >= 0; 0 where C <= e.

    ``side`` +1 or -1 rounds it outward, up or down.
    """
    h, rho, eps = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (leverage, signal, epsilon)))
    grown, shift, nu = np.sqrt(1.0 + h), np.sqrt(rho * h / (1.0 + h)), np.sqrt(rho / h)
    total = np.log1p(h) + 2.0 * eps + rho / (1.0 + h)
    reach = (total - 4.0 * eps) / h
    v = np.sqrt(np.maximum(reach, 0.0))
    # v - nu, without the loss of digits where both are large: (v^2 - nu^2)/(v + nu).
    x = np.where(reach > 0.0, (np.log1p(h) - 2.0 * eps) / h - rho / (1.0 + h), 0.0) / np.where(reach > 0.0, v + nu, 1.0)
    y, far = grown * x + shift, grown * v + nu / grown
    first, second = _below(y), grown * _at(y, x)
    # The part of both laws below -v, which is not in the set.
    other = _DENSITY * np.exp(-0.5 * far * far) * _MILLS * (erfcx(_HALF * far) - grown * erfcx(_HALF * (v + nu)))
    # Of a great leverage the second term may be the larger one by far: what lies below -v is in it, times e^e.
    found = np.where(reach > 0.0, _rounded(first - second - other, np.maximum(first, second), (y, _size(h, rho, eps)), side), 0.0)
    if side > 0:
        # Where v may be above 0 by rounding alone: the integral of (1 - e^(e - loss)) over |V| <= v, with v^2 <= 2 slack/h. The first
        # factor is at most slack, a third less on average, and the density with the row at most grown/sqrt(2 pi).
        slack = _SUM * total
        found = np.where(np.abs(reach * h) <= slack, np.maximum(found, slack * np.sqrt(slack / h) * grown), found)
    return np.asarray(found)


def without_over_with(leverage: ArrayLike, signal: ArrayLike, epsilon: ArrayLike, *, side: int = 0) -> Floats:
    """``delta_{without||with}(e) = Pr_without(|V| >= v) - e^e Pr_with(|V| >= v)``, ``v^2 = 2(C + e)/h``, for e >= 0."""
    h, rho, eps = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (leverage, signal, epsilon)))
    grown, shift, nu = np.sqrt(1.0 + h), np.sqrt(rho * h / (1.0 + h)), np.sqrt(rho / h)
    v = np.sqrt((np.log1p(h) + 2.0 * eps + rho / (1.0 + h)) / h)
    x = ((np.log1p(h) + 2.0 * eps) / h - rho / (1.0 + h)) / (v + nu)
    y, far = grown * x + shift, v + nu
    near = _below(-x) - _at(-x, -y) / grown
    other = _DENSITY * np.exp(-0.5 * far * far) * _MILLS * (erfcx(_HALF * far) - erfcx(_HALF * (grown * v + nu / grown)) / grown)
    return _rounded(near + other, _below(-x), (x, _size(h, rho, eps)), side)


def _below(z: Floats) -> Floats:
    return np.asarray(ndtr(z))


def _at(z: Floats, w: Floats) -> Floats:
    """``phi(z) Phi(w)/phi(w)``, with no overflow: both arguments are large together."""
    low = _DENSITY * np.exp(-0.5 * z * z) * _MILLS * erfcx(-_HALF * np.minimum(w, 0.0))
    high = np.exp(np.minimum(0.5 * (w - z) * (w + z), 700.0)) * ndtr(w)
    return np.asarray(np.where(w <= 0.0, low, high))


def _size(h: Floats, rho: Floats, eps: Floats) -> Floats:
    """Of the summands of the loss at v: v - nu is off by the last digits of its two summands over v + nu, the loss by h v times that."""
    return np.asarray(np.log1p(h) + 2.0 * eps + rho * h / (1.0 + h))


def _rounded(value: Floats, term: Floats, sizes: tuple[Floats, Floats], side: int) -> Floats:
    """``sizes`` are those of the term's argument and of the loss."""
    if side:
        argument, loss = sizes
        value = value + side * ((_ROUNDING * (1.0 + argument * argument) + _SUM * loss) * term + _LEAST)
    return np.clip(value, 0.0, 1.0)
