"""One approximate Gaussian DP above a whole curve."""

from __future__ import annotations

from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from privselect.certificates.number_models import Leaky

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.certificates.number_models import Point

_ROUNDING = 1e-11  # relative, of a normal tail and its product with e^epsilon: a hundred times what they are off
_SHARE = 0.1  # of delta that may leak outright: it costs epsilon little and frees mu from the far tail of the curve
_LEAST, _LARGEST = 1e-6, 60.0  # a mu outside says nothing that the curve does not
_TOLERANCE = 1e-7


def covers(leaky: Leaky, curve: Sequence[Point]) -> bool:
    r"""Whether ``delta(e) <= delta0 + (1 - delta0) G_mu(e)`` follows for every e >= 0 from the points of ``curve``.

    Write a = e^e. The true delta is convex in a, so between two points it lies below their chord. For every threshold z, the set of
    outcomes above it shows ``G_mu >= Phi(mu/2 - z) - a Phi(-mu/2 - z)``, a line in a: where such a line, scaled and raised by the
    leak, is above the chord at both of its ends, so is the Gaussian side above delta all along. The z tried is the one where the line
    touches G_mu in parallel to the chord; a poor z can only fail. Beyond the last point delta is at most its value there, which must
    not exceed delta0.
    """
    if curve[0].epsilon != 0.0 or curve[-1].delta > leaky.delta:
        return False
    epsilon, delta = np.array([point.epsilon for point in curve]), np.array([point.delta for point in curve])
    if len(curve) == 1:
        return True
    mu, clean = leaky.mu, 1.0 - leaky.delta
    with np.errstate(all="ignore"):  # what is no number is not above anything
        slope = -np.diff(delta) / np.diff(np.exp(epsilon))
        z = np.clip(-0.5 * mu - ndtri(np.clip(slope / clean, 0.0, 1.0)), epsilon[:-1] / mu, epsilon[1:] / mu)
        gain, log_cost = ndtr(0.5 * mu - z) * (1.0 - _ROUNDING), log_ndtr(-0.5 * mu - z)
        return all(
            bool(np.all(leaky.delta + clean * (gain - np.exp(at + log_cost) * (1.0 + _ROUNDING)) >= wanted))
            for at, wanted in ((epsilon[:-1], delta[:-1]), (epsilon[1:], delta[1:]))
        )


def fitted(curve: Sequence[Point], delta: float) -> Leaky | None:
    """The least mu found, rounded up, for a leak of a tenth of delta, or of what the curve itself ends at; None where none is found."""
    leak = max(_SHARE * delta, curve[-1].delta)
    low, high = _LEAST, 1.0
    while not covers(Leaky(mu=high, delta=leak), curve):
        low, high = high, 2.0 * high
        if high > _LARGEST:
            return None
    while high - low > _TOLERANCE * high:
        middle = 0.5 * (low + high)
        if covers(Leaky(mu=middle, delta=leak), curve):
            high = middle
        else:
            low = middle
    rounded = Leaky(mu=float(Context(prec=6, rounding=ROUND_CEILING).create_decimal_from_float(high)), delta=leak)
    return rounded if covers(rounded, curve) else Leaky(mu=high, delta=leak)
