r"""Privacy profile of one posterior sample with and without one row, in closed form.

Let (x, y) be the row, and H and th those of the records without it. The row has ``h = x'H^-1 x`` (its *leverage*), ``r = y - x'th`` and
``rho = precision r^2`` (its *signal*). The two posteriors differ only in ``V = (y - x'theta) sqrt(precision/h)``:

- without the row, ``V ~ N(nu, 1)`` with ``nu = sqrt(rho/h)``;
- with the row, ``V ~ N(nu/(1+h), 1/(1+h))``.

The log ratio of the densities, with over without, is ``C - h V^2/2`` with ``C = log(1+h)/2 + rho/(2(1+h))``. So the hockey-stick
divergences are attained on the sets ``|V| <= v`` and ``|V| >= v``.
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
_SQRT_HALF = math.sqrt(0.5)
_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)
_TERM_ERROR = 1e-14  # relative error of each term, also per square of its argument: a rounded argument moves a density
_LOSS_ERROR = 1e-15  # relative error of the summands of the loss at v; it moves e^epsilon times a term by the same amount
_ABSOLUTE_ERROR = 1e-300  # nothing is claimed below the smallest floats


def with_over_without(leverage: ArrayLike, signal: ArrayLike, epsilon: ArrayLike, *, side: int = 0) -> Floats:
    """Return ``delta_{with||without}(e) = Pr_with(|V| <= v) - e^e Pr_without(|V| <= v)`` for e >= 0.

    Here ``v^2 = 2(C - e)/h``, and delta is 0 if C <= e. ``side`` +1 or -1 rounds up or down.
    """
    h, rho, eps = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (leverage, signal, epsilon)))
    scale, shift, nu = np.sqrt(1.0 + h), np.sqrt(rho * h / (1.0 + h)), np.sqrt(rho / h)
    total = np.log1p(h) + 2.0 * eps + rho / (1.0 + h)
    v_squared = (total - 4.0 * eps) / h
    v = np.sqrt(np.maximum(v_squared, 0.0))
    # v - nu without cancellation if both are large: (v^2 - nu^2)/(v + nu).
    x = np.where(v_squared > 0.0, (np.log1p(h) - 2.0 * eps) / h - rho / (1.0 + h), 0.0) / np.where(v_squared > 0.0, v + nu, 1.0)
    y, far = scale * x + shift, scale * v + nu / scale
    first, second = _normal_cdf(y), scale * _scaled_cdf(y, x)
    # The part of both distributions below -v is not in the set.
    tail = _DENSITY * np.exp(-0.5 * far * far) * _MILLS * (erfcx(_SQRT_HALF * far) - scale * erfcx(_SQRT_HALF * (v + nu)))
    # At a large leverage the second term may dominate: it holds the part below -v, times e^e.
    delta = np.where(v_squared > 0.0, _outward(first - second - tail, np.maximum(first, second), (y, _loss_size(h, rho, eps)), side), 0.0)
    if side > 0:
        # If v > 0 only by rounding: delta is the integral of (1 - e^(e - loss)) over |V| <= v, with v^2 <= 2 slack/h. The first factor
        # is at most slack, a third less on average, and the density with the row is at most scale/sqrt(2 pi).
        slack = _LOSS_ERROR * total
        delta = np.where(np.abs(v_squared * h) <= slack, np.maximum(delta, slack * np.sqrt(slack / h) * scale), delta)
    return np.asarray(delta)


def without_over_with(leverage: ArrayLike, signal: ArrayLike, epsilon: ArrayLike, *, side: int = 0) -> Floats:
    """Return ``delta_{without||with}(e) = Pr_without(|V| >= v) - e^e Pr_with(|V| >= v)``, ``v^2 = 2(C + e)/h``, for e >= 0.

    ``side`` +1 or -1 rounds up or down.
    """
    h, rho, eps = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (leverage, signal, epsilon)))
    scale, shift, nu = np.sqrt(1.0 + h), np.sqrt(rho * h / (1.0 + h)), np.sqrt(rho / h)
    v = np.sqrt((np.log1p(h) + 2.0 * eps + rho / (1.0 + h)) / h)
    x = ((np.log1p(h) + 2.0 * eps) / h - rho / (1.0 + h)) / (v + nu)
    y, far = scale * x + shift, v + nu
    near = _normal_cdf(-x) - _scaled_cdf(-x, -y) / scale
    tail = _DENSITY * np.exp(-0.5 * far * far) * _MILLS * (erfcx(_SQRT_HALF * far) - erfcx(_SQRT_HALF * (scale * v + nu / scale)) / scale)
    return _outward(near + tail, _normal_cdf(-x), (x, _loss_size(h, rho, eps)), side)


def _normal_cdf(z: Floats) -> Floats:
    return np.asarray(ndtr(z))


def _scaled_cdf(z: Floats, w: Floats) -> Floats:
    """Return ``phi(z) Phi(w)/phi(w)`` without overflow: both arguments are large together."""
    low = _DENSITY * np.exp(-0.5 * z * z) * _MILLS * erfcx(-_SQRT_HALF * np.minimum(w, 0.0))
    high = np.exp(np.minimum(0.5 * (w - z) * (w + z), 700.0)) * ndtr(w)
    return np.asarray(np.where(w <= 0.0, low, high))


def _loss_size(h: Floats, rho: Floats, eps: Floats) -> Floats:
    """Return the magnitude of the summands of the loss at v.

    The error of v - nu is the rounding of its two summands over v + nu; the error of the loss is h v times that.
    """
    return np.asarray(np.log1p(h) + 2.0 * eps + rho * h / (1.0 + h))


def _outward(value: Floats, term: Floats, magnitudes: tuple[Floats, Floats], side: int) -> Floats:
    """Move the value up or down by its rounding error; ``magnitudes`` are those of the term's argument and of the loss."""
    if side:
        argument, loss = magnitudes
        value = value + side * ((_TERM_ERROR * (1.0 + argument * argument) + _LOSS_ERROR * loss) * term + _ABSOLUTE_ERROR)
    return np.clip(value, 0.0, 1.0)
