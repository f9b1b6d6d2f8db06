"""Pairs from privacy loss distributions of dp-accounting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_profile import pair_from_profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_MAX_KNOTS = 6000
_UNIT_ROUNDOFF = 2.0**-53
_LOSS_ROUNDING = 4e-13  # of losses and knots up to 700


def pair_from_pld(remove: Any, add: Any, times: int) -> DominatingPair:
    """Return a pair for the order "remove" (its reverse is "add") that dominates two composed privacy loss distributions.

    ``remove`` and ``add`` are pessimistic dense pmfs of dp-accounting after ``times`` compositions. Each is used only on losses
    >= 0, where its tail is accurate, and enlarged by a bound on the rounding of the Fourier transform.
    """
    spacing = float(remove._discretization)  # noqa: SLF001 - dp-accounting has no public access to the masses
    # Losses beyond the largest knot count as infinite.
    highest = min(max(_highest_loss(remove), _highest_loss(add)), LARGEST_LOSS)
    stride = max(int(np.ceil(highest / spacing / _MAX_KNOTS)), 1)
    knots = np.minimum(spacing * np.arange(0, int(np.ceil(highest / spacing)) + stride + 1, stride, dtype=np.float64), LARGEST_LOSS)
    knots = np.unique(knots)
    return pair_from_profile(knots, _profile_upper(remove, times, knots), _profile_upper(add, times, knots))


def _highest_loss(pmf: Any) -> float:
    return float((pmf._lower_loss + len(pmf._probs)) * pmf._discretization)  # noqa: SLF001


def _profile_upper(pmf: Any, times: int, knots: Floats) -> Floats:
    """Return upper bounds on the hockey stick at the knots, from the masses of the losses above each knot."""
    probs = np.asarray(pmf._probs, dtype=np.float64)  # noqa: SLF001
    losses = (pmf._lower_loss + np.arange(len(probs))) * pmf._discretization  # noqa: SLF001
    error = _transform_error(probs, times)
    probs = np.maximum(probs, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        drift = float(np.log(max(np.sum(probs * np.exp(np.minimum(-losses, 700.0))), 1.0)))
    if not np.isfinite(drift + error):
        return np.ones_like(knots)
    # E e^-L cannot exceed 1: the losses are too low by that factor, so move them up.
    losses = losses + drift
    p_tail = np.append(np.cumsum(probs[::-1])[::-1], 0.0)
    q_tail = np.append(np.cumsum((probs * np.exp(-np.maximum(losses, -700.0)))[::-1])[::-1], 0.0)
    first = np.searchsorted(losses, knots, side="right")
    above = len(probs) - first
    relative = (4 * len(probs) + 64) * _UNIT_ROUNDOFF + _LOSS_ROUNDING
    value = p_tail[first] * (1.0 + relative) - np.exp(knots) * q_tail[first]
    return np.asarray(np.clip(value, 0.0, 1.0) + error * above + pmf._infinity_mass, dtype=np.float64)  # noqa: SLF001


def _transform_error(probs: Floats, times: int) -> float:
    """Return a bound on the rounding of each entry of ``ifft(fft(step)^times)``, from the spectrum of the result.

    If a coefficient F of the step has an error of ``log2(N)`` roundings, ``F^times`` has ``times |F|^(times-1)`` times that error,
    and ``|F|^(times-1)`` is ``|F^times|`` to the power ``1 - 1/times``. The factor 2 covers the inverse transform.
    """
    from scipy.fft import next_fast_len, rfft

    if len(probs) == 0:
        return 0.0
    size = next_fast_len(len(probs))  # as in the composition
    spectrum = np.abs(rfft(probs, size))
    mean = float(2.0 * np.sum(spectrum ** (1.0 - 1.0 / times)) / size)
    return float(2.0 * np.log2(size + 2.0) * _UNIT_ROUNDOFF * (times + 1) * mean)
