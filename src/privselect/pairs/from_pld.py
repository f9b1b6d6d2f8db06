"""dp-accounting's privacy loss distributions as a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.from_profile import pair_from_curve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]

_KNOTS = 6000
_UNIT_ROUNDOFF = 2.0**-53
_LOSS_ROUNDING = 4e-13  # of a loss on the lattice and of a knot, up to 700


def pair_from_pld(remove: Any, add: Any, times: int) -> DominatingPair:
    """One pair for the order "remove" (its reverse is "add") that dominates what two composed loss distributions say.

    ``remove`` and ``add`` are pessimistic dense pmfs of dp-accounting after ``times`` compositions. Each is trusted on losses
    >= 0 only, where its own tail is accurate, and enlarged there by a bound on the rounding of the Fourier transform.
    """
    spacing = float(remove._discretization)  # noqa: SLF001 - dp-accounting shows a loss distribution's masses nowhere else
    # Beyond the largest loss told apart, all that is left counts as infinite loss.
    highest = min(max(_highest_loss(remove), _highest_loss(add)), LARGEST_LOSS)
    stride = max(int(np.ceil(highest / spacing / _KNOTS)), 1)
    knots = np.minimum(spacing * np.arange(0, int(np.ceil(highest / spacing)) + stride + 1, stride, dtype=np.float64), LARGEST_LOSS)
    knots = np.unique(knots)
    return pair_from_curve(knots, _curve(remove, times, knots), _curve(add, times, knots))


def _highest_loss(pmf: Any) -> float:
    return float((pmf._lower_loss + len(pmf._probs)) * pmf._discretization)  # noqa: SLF001


def _curve(pmf: Any, times: int, knots: Floats) -> Floats:
    """Upper bounds on the hockey stick at the knots, from the pmf's losses above each."""
    probs = np.asarray(pmf._probs, dtype=np.float64)  # noqa: SLF001
    losses = (pmf._lower_loss + np.arange(len(probs))) * pmf._discretization  # noqa: SLF001
    error = _transform_error(probs, times)
    probs = np.maximum(probs, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        drift = float(np.log(max(np.sum(probs * np.exp(np.minimum(-losses, 700.0))), 1.0)))
    if not np.isfinite(drift + error):
        return np.ones_like(knots)
    # E e^-L above 1 cannot be: the losses came out too low by that factor. Move them up.
    losses = losses + drift
    p_tail = np.append(np.cumsum(probs[::-1])[::-1], 0.0)
    q_tail = np.append(np.cumsum((probs * np.exp(-np.maximum(losses, -700.0)))[::-1])[::-1], 0.0)
    first = np.searchsorted(losses, knots, side="right")
    above = len(probs) - first
    relative = (4 * len(probs) + 64) * _UNIT_ROUNDOFF + _LOSS_ROUNDING
    value = p_tail[first] * (1.0 + relative) - np.exp(knots) * q_tail[first]
    return np.asarray(np.clip(value, 0.0, 1.0) + error * above + pmf._infinity_mass, dtype=np.float64)  # noqa: SLF001


def _transform_error(probs: Floats, times: int) -> float:
    """A bound per entry on the rounding of ``ifft(fft(step)^times)``, from the spectrum of its result.

    A coefficient F of the step, right to ``log2(N)`` roundings, has ``F^times`` right to ``times |F|^(times-1)`` as much, and
    ``|F|^(times-1)`` is ``|F^times|`` to the power ``1 - 1/times``. Twice, for the transform back.
    """
    from scipy.fft import next_fast_len, rfft

    if len(probs) == 0:
        return 0.0
    size = next_fast_len(len(probs))  # as the composition did
    spectrum = np.abs(rfft(probs, size))
    mean = float(2.0 * np.sum(spectrum ** (1.0 - 1.0 / times)) / size)
    return float(2.0 * np.log2(size + 2.0) * _UNIT_ROUNDOFF * (times + 1) * mean)
