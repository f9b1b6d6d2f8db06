r"""Composition of lattice pairs by exponentially tilted Fourier transforms.

The masses q of one step on the lattice, tilted to ``q e^(t loss - K)`` and summed up to 1, are composed by the power of their discrete
Fourier transform; undoing the tilt brings the composed masses back. Rounding is relative to the largest tilted mass, so each tilt is
used only for losses within a few standard deviations of its mean, and a few tilts cover all losses that matter: every tail keeps its
relative digits. The error has three parts, each bounded here and proved in docs/derivations/composition.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from privselect.pairs.cumulants import Cumulants
from privselect.pairs.tilts import WRAPPED, Tilts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.lattice import LatticePair

    Floats = NDArray[np.float64]
    Part = tuple[LatticePair, int]

_UNIT_ROUNDOFF = 2.0**-53
_ERROR = 1e-4  # of a composed mass, relative, where its tilt is worst
_NEGLIGIBLE = -100.0  # log of a coefficient that is not worth its logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """Masses on all multiples ``first, first + 1, ...`` of the spacing.

    Above them the first law has at most ``lost_p``, below them the second at most ``lost_q``, and the other law less than that.
    """

    spacing: float
    first: int
    p: Floats
    q: Floats
    lost_p: float
    lost_q: float

    @property
    def last(self) -> int:
        """The greatest multiple."""
        return self.first + len(self.p) - 1


@dataclass(frozen=True, slots=True)
class _Window:
    """The indices from ``start`` to before ``stop``, served by one tilt."""

    tilt: float
    start: int
    stop: int


def convolved(parts: Sequence[Part], floor: float, most: float, side: int, log_count: float = 0.0) -> Dense | None:
    """Bounds, above (``side`` 1) or below (-1), on ``e^log_count`` times the composed masses; None where they are below ``floor``.

    Losses beyond ``most`` are left out, and so are those at either end that have less than ``floor`` in all.
    """
    if any(len(pair.q) == 0 for pair, _ in parts):
        return None
    spacing = parts[0][0].spacing
    cumulants = Cumulants([(np.log(pair.q), pair.losses, times) for pair, times in parts])
    depth = log_count - math.log(floor)
    if float(cumulants.at(np.array([0.0, 1.0]))[0].max()) < -depth:
        return None
    low, high = cumulants.low_end(depth), cumulants.high_end(depth)
    tilts = Tilts.of(cumulants, low, high)
    first, last = (sum(times * int(pair.index[end]) for pair, times in parts) for end in (0, -1))
    first, last = max(math.floor(low[1] / spacing), first), min(math.ceil(high[1] / spacing), last)
    lost_p, lost_q = floor, floor
    if last * spacing > most:
        last = math.floor(most / spacing)
        lost_p = tilts.mass_above(last * spacing, log_count)
    if first * spacing < -most:
        first = math.ceil(-most / spacing)
        lost_q = tilts.mass_below(first * spacing, log_count)
    if first > last:
        return Dense(spacing, 0, np.zeros(1), np.zeros(1), 1.0, 1.0)
    p, q = [], []
    for window in _windows(parts, tilts, first, last):
        masses, log_scale = _tilted(parts, window, tilts, side)
        losses = np.arange(window.start, window.stop) * spacing
        with np.errstate(under="ignore"):
            p.append(masses * np.exp(log_count + log_scale - (window.tilt - 1.0) * losses))
            q.append(masses * np.exp(log_count + log_scale - window.tilt * losses))
    return Dense(spacing, first, np.concatenate(p), np.concatenate(q), lost_p, lost_q)


def _windows(parts: Sequence[Part], tilts: Tilts, first: int, last: int) -> Iterator[_Window]:
    spacing, runs = parts[0][0].spacing, sum(times for _, times in parts)
    cost = math.log(_ERROR / (200.0 * _UNIT_ROUNDOFF * runs))
    chosen, hand_over = tilts.windows(first * spacing, last * spacing, min(max(cost, 4.0), 14.0))
    inner = np.clip(np.rint(hand_over / spacing), first, last + 1).astype(int).tolist()
    for tilt, start, stop in zip(chosen.tolist(), [first, *inner], [*inner, last + 1], strict=True):
        if start < stop:
            yield _Window(tilt, start, stop)


def _tilted(parts: Sequence[Part], window: _Window, tilts: Tilts, side: int) -> tuple[Floats, float]:
    """Bounds on the tilted masses of a window, and the log of what the tilt divided them by."""
    laws = [_TiltedLaw.of(pair, times, window.tilt) for pair, times in parts]
    log_scale = sum(law.times * law.log_scale for law in laws)
    offset = sum(law.times * law.centre for law in laws)
    size = _size(parts, tilts.reach(window.tilt, log_scale), window)
    # Each coefficient is a sum of the weights, which are 1 in all, times products of roots of unity, log2(size) to a product.
    tiny = (8.0 * math.log2(size) + 16.0) * _UNIT_ROUNDOFF + max(law.rounding for law in laws)
    kept = np.arange(size // 2 + 1)
    log_modulus, changes, log_power = np.zeros(len(kept)), np.ones(len(kept)), np.zeros(len(kept), dtype=np.complex128)
    for law in laws:
        spectrum = rfft(np.bincount(law.index % size, weights=law.weights, minlength=size))[kept]
        modulus = np.abs(spectrum) + tiny
        # Of a high power few coefficients are left; the others are not worth their logarithms.
        worth = np.flatnonzero(modulus > math.exp(_NEGLIGIBLE / law.times))
        kept, spectrum, modulus = kept[worth], spectrum[worth], modulus[worth]
        log_modulus = log_modulus[worth] + law.times * np.log(modulus)
        changes = changes[worth] + law.times / modulus
        log_power = log_power[worth] + law.times * np.log(np.where(spectrum == 0.0, tiny, spectrum))
    power = np.zeros(size // 2 + 1, dtype=np.complex128)
    power[kept] = np.exp(log_power)
    # Rounding of the transforms and the power, what wraps around, and (less than that) the coefficients left out.
    error = 2.0 * tiny * float(np.sum(np.exp(log_modulus) * changes)) / size + 2.0 * math.exp(-WRAPPED)
    masses = irfft(power, size)[(np.arange(window.start, window.stop) - offset) % size]
    scale_rounding = sum(law.times * (8.0 + 4.0 * abs(law.log_scale)) for law in laws) * _UNIT_ROUNDOFF
    return np.maximum(masses + side * error, 0.0) * (1.0 + side * scale_rounding), log_scale


@dataclass(frozen=True, slots=True, eq=False)
class _TiltedLaw:
    """The masses of one part, tilted and divided by ``e^log_scale`` to sum up to 1, around the index ``centre``."""

    weights: Floats
    index: NDArray[np.int64]
    times: int
    centre: int
    log_scale: float
    rounding: float

    @classmethod
    def of(cls, pair: LatticePair, times: int, tilt: float) -> _TiltedLaw:
        log_q, shift = np.log(pair.q), tilt * pair.losses
        exponents = log_q + shift
        top = float(exponents.max())
        with np.errstate(under="ignore"):
            weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        centre = round(float(weights @ pair.index))  # angles stay small for the coefficients that matter
        rounding = 4.0 * _UNIT_ROUNDOFF * float(weights @ (np.abs(log_q) + np.abs(shift)))
        return cls(weights, pair.index - centre, times, centre, top + math.log(total), rounding)


def _size(parts: Sequence[Part], reach: tuple[float, float], window: _Window) -> int:
    """A transform so long that what lies beyond ``reach`` is all that wraps around into the window."""
    spacing = parts[0][0].spacing
    whole = sum(times * int(pair.index[-1] - pair.index[0]) for pair, times in parts) + 1
    wanted = max(reach[1] - window.start * spacing, window.stop * spacing - reach[0]) / spacing
    return next_fast_len(max(whole if wanted >= whole else math.ceil(wanted) + 1, window.stop - window.start, 16), real=True)
