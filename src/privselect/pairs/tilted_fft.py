r"""Composition of lattice pairs by exponentially tilted Fourier transforms.

The masses q of one step on the lattice, tilted to ``q e^(t loss - K)`` and summed up to 1, are composed by the power of their discrete
Fourier transform; undoing the tilt brings the composed masses back. Rounding is relative to the largest tilted mass, so each tilt is
used only for losses within a few standard deviations of its mean, and a few tilts cover all losses that matter: every tail keeps its
relative digits. The error has three parts, each bounded here and proved in docs/derivations/composition.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from privselect.pairs.cumulants import Cumulants
from privselect.pairs.tilt_choice import WRAPPED, Tilts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.loss_lattice import LatticePair

    Floats = NDArray[np.float64]
    Part = tuple[LatticePair, int]

FLOOR = 1e-45  # mass at either end of the composed losses that is not looked into
LARGEST = 520.0  # of a composed loss: the second law's mass there, 1e-45 e^-520, is still a proper float
_UNIT_ROUNDOFF = 2.0**-53
_ERROR = 1e-4  # of a composed mass, relative, where its tilt is worst
_SINGLE = 1e-13  # expected number of rare outcomes below which only a single one is looked at
_STEEPEST = 60.0  # of a tilt times the spacing
_NEGLIGIBLE = -100.0  # log of a coefficient that is not worth its logarithm


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """Masses on all multiples ``first, first + 1, ...`` of the spacing.

    Above them either law has at most ``lost_p``, below them at most ``lost_q``.
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


def convolved(parts: Sequence[Part], side: int, rare: Sequence[Part] = (), log_count: float = 0.0) -> Dense:
    """Bounds, above (``side`` 1) or below (-1), on ``e^log_count`` times the composed masses.

    With ``rare`` parts: on the sums of all parts and of at least one outcome of a rare part, each of which may come, besides nothing,
    as many times as it says. Losses beyond LARGEST are left out, and so are those at either end that have less than FLOOR in all.
    """
    spacing = (parts or rare)[0][0].spacing
    cumulants = Cumulants.of(parts, rare, steepest=_STEEPEST / spacing)
    depth = log_count - math.log(FLOOR)
    # A sum needs an outcome of each part, and one of a rare part.
    if any(len(pair.q) == 0 for pair, _ in parts) or (rare and not any(len(pair.q) for pair, _ in rare)):
        return _nothing(spacing)
    if float(cumulants.at(np.array([0.0, 1.0]))[0].max()) < -depth:
        return _nothing(spacing)
    low, high = cumulants.low_end(depth), cumulants.high_end(depth)
    tilts = Tilts.of(cumulants, low, high)
    first, last = math.floor(low[1] / spacing), math.ceil(high[1] / spacing)
    if not rare:
        ends = [sum(times * int(pair.index[end]) for pair, times in parts) for end in (0, -1)]
        first, last = max(first, ends[0]), min(last, ends[1])
    lost_p, lost_q = FLOOR, FLOOR
    if last * spacing > LARGEST:
        last = math.floor(LARGEST / spacing)
        lost_p = tilts.mass_above(last * spacing, log_count)
    if first * spacing < -LARGEST:
        first = math.ceil(-LARGEST / spacing)
        lost_q = tilts.mass_below(first * spacing, log_count)
    if first > last:
        return replace(_nothing(spacing), lost_p=2.0 * max(lost_p, lost_q), lost_q=2.0 * max(lost_p, lost_q))
    p, q = [], []
    for window in _windows(parts, rare, tilts, first, last):
        masses, log_scale = _Transform(parts, rare, window, tilts).masses(side)
        losses = np.arange(window.start, window.stop) * spacing
        # Of the exponents that undo the tilt: it may be steep.
        rounding = 4.0 * _UNIT_ROUNDOFF * (abs(log_count) + abs(log_scale) + (abs(window.tilt) + 1.0) * np.abs(losses))
        masses *= np.maximum(1.0 + side * rounding, 0.0)
        with np.errstate(under="ignore"):
            p.append(masses * np.exp(log_count + log_scale - (window.tilt - 1.0) * losses))
            q.append(masses * np.exp(log_count + log_scale - window.tilt * losses))
    return Dense(spacing, first, np.concatenate(p), np.concatenate(q), lost_p, lost_q)


def _nothing(spacing: float) -> Dense:
    """No mass, or none worth a look."""
    return Dense(spacing, 0, np.zeros(1), np.zeros(1), 2.0 * FLOOR, 2.0 * FLOOR)


def _windows(parts: Sequence[Part], rare: Sequence[Part], tilts: Tilts, first: int, last: int) -> Iterator[_Window]:
    spacing, runs = (parts or rare)[0][0].spacing, max(sum(times for _, times in parts), 1)
    cost = math.log(_ERROR / (200.0 * _UNIT_ROUNDOFF * runs))
    chosen, hand_over = tilts.windows(first * spacing, last * spacing, min(max(cost, 4.0), 14.0))
    inner = np.clip(np.rint(hand_over / spacing), first, last + 1).astype(int).tolist()
    for tilt, start, stop in zip(chosen.tolist(), [first, *inner], [*inner, last + 1], strict=True):
        if start < stop:
            yield _Window(tilt, start, stop)


class _Transform:
    """The spectrum of the composed law under one tilt."""

    def __init__(self, parts: Sequence[Part], rare: Sequence[Part], window: _Window, tilts: Tilts) -> None:
        self.window = window
        self.laws = [_TiltedLaw.of(pair, times, window.tilt) for pair, times in parts]
        self.rare = [_TiltedLaw.of(pair, times, window.tilt) for pair, times in rare if len(pair.q)]
        self.log_scale = sum(law.times * law.log_scale for law in self.laws)
        if self.rare:
            # The sums with a rare outcome have e^rate - 1 times the tilted mass of those without.
            self.rate = sum(law.times * float(np.logaddexp(0.0, law.log_scale)) for law in self.rare)
            self.log_first = float(np.logaddexp.reduce([math.log(law.times) + law.log_scale for law in self.rare]))
            self.log_scale += self.log_first if self.rate < _SINGLE else self.rate + math.log(-math.expm1(-self.rate))
        self.size = self._size(parts, rare, tilts.reach(window.tilt, self.log_scale))
        # Each coefficient is a sum of the weights, which are 1 in all, times products of roots of unity, log2(size) to a product.
        self.tiny = (8.0 * math.log2(self.size) + 16.0) * _UNIT_ROUNDOFF + max(law.rounding for law in (*self.laws, *self.rare))

    def masses(self, side: int) -> tuple[Floats, float]:
        """Bounds on the tilted masses of the window, and the log of what the tilt divided them by."""
        kept = np.arange(self.size // 2 + 1)
        log_modulus, changes, log_power = np.zeros(len(kept)), np.ones(len(kept)), np.zeros(len(kept), dtype=np.complex128)
        for law in self.laws:
            spectrum = law.spectrum(self.size, law.centre)[kept]
            modulus = np.abs(spectrum) + self.tiny
            # Of a high power few coefficients are left; the others are not worth their logarithms.
            worth = np.flatnonzero(modulus > math.exp(_NEGLIGIBLE / law.times))
            kept, spectrum, modulus = kept[worth], spectrum[worth], modulus[worth]
            log_modulus = log_modulus[worth] + law.times * np.log(modulus)
            changes = changes[worth] + law.times / modulus
            log_power = log_power[worth] + law.times * np.log(np.where(spectrum == 0.0, self.tiny, spectrum))
        power = np.exp(log_power)
        if self.rare:
            factor, unsure, most = self._rare_factor(kept)
            power, changes = power * factor, changes * most + unsure
        # Rounding of the transforms and the power, what wraps around, and (less than that) the coefficients left out.
        error = 2.0 * self.tiny * float(np.sum(np.exp(log_modulus) * changes)) / self.size + 2.0 * math.exp(-WRAPPED)
        composed = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        composed[kept] = power
        offset = sum(law.times * law.centre for law in self.laws)
        masses = irfft(composed, self.size)[(np.arange(self.window.start, self.window.stop) - offset) % self.size]
        scale_rounding = sum(law.times * law.scale_rounding for law in self.laws)
        if self.rare:
            # Given that there is a rare outcome, there are 1 + rate of them at most.
            scale_rounding += (1.0 + self.rate) * max(law.scale_rounding for law in self.rare)
        return np.maximum(masses + side * error, 0.0) * (1.0 + side * scale_rounding), self.log_scale

    def _rare_factor(self, kept: NDArray[np.int64]) -> tuple[NDArray[np.complex128], Floats, Floats]:
        """``(prod (1 + R)^n - 1)`` over its value at angle 0, how far off it is in units of ``tiny``, and a bound on its modulus.

        R is small where the rare outcomes are: no digit of ``n log(1 + R)`` is lost, however large n is.
        """
        exponent, unsure = np.zeros(len(kept), dtype=np.complex128), np.zeros(len(kept))
        if self.rate < _SINGLE:
            # One rare outcome, as far as can be told: more of them have at most this share.
            shares = [math.exp(math.log(law.times) + law.log_scale - self.log_first) for law in self.rare]
            exponent += sum(share * law.spectrum(self.size, 0)[kept] for share, law in zip(shares, self.rare, strict=True))
            return exponent, unsure + 4.0 + 2.0 * self.rate / self.tiny, np.minimum(np.abs(exponent) + 8.0 * self.tiny, 1.0)
        log_modulus = np.full(len(kept), -self.rate)
        for law in self.rare:
            # 1 + R over its scale, where that is large; R itself keeps its digits where it is small.
            scale, one = math.exp(min(law.log_scale, 0.0)), math.exp(-max(law.log_scale, 0.0))
            bump = scale * law.spectrum(self.size, 0)[kept]
            modulus = np.abs(one + bump) + 4.0 * self.tiny * scale
            inside = 2.0 * bump.real + np.abs(bump) ** 2  # |1 + R|^2 - 1
            log_real = np.where(inside > -0.5, 0.5 * np.log1p(np.maximum(inside, -0.5)), np.log(modulus)) if one == 1.0 else np.log(modulus)
            exponent += law.times * (max(law.log_scale, 0.0) + log_real + 1j * np.arctan2(bump.imag, one + bump.real))
            log_modulus += law.times * (max(law.log_scale, 0.0) + np.log(modulus))
            unsure += law.times * 4.0 * scale / modulus
        some = -math.expm1(-self.rate)
        factor = np.asarray((np.exp(exponent - self.rate) - math.exp(-self.rate)) / some, dtype=np.complex128)
        small = np.abs(exponent) < 0.5
        factor[small] = _expm1(exponent[small]) * (math.exp(-self.rate) / some)
        unsure = (unsure * np.exp(log_modulus) + 4.0 * np.exp(np.minimum(exponent.real - self.rate, 0.0)) * np.abs(exponent)) / some
        # Its modulus is greatest at angle 0, as all its terms are positive there.
        return factor, unsure, np.minimum(np.abs(factor) + self.tiny * unsure, 1.0)

    def _size(self, parts: Sequence[Part], rare: Sequence[Part], reach: tuple[float, float]) -> int:
        """A transform so long that what lies beyond ``reach`` is all that wraps around into the window."""
        spacing = (parts or rare)[0][0].spacing
        wanted = max(reach[1] - self.window.start * spacing, self.window.stop * spacing - reach[0]) / spacing
        if not rare:
            wanted = min(wanted, float(sum(times * int(pair.index[-1] - pair.index[0]) for pair, times in parts)))
        return next_fast_len(max(math.ceil(wanted) + 1, self.window.stop - self.window.start, 16), real=True)


@dataclass(frozen=True, slots=True, eq=False)
class _TiltedLaw:
    """The masses of one part, tilted and divided by ``e^log_scale`` to sum up to 1."""

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
        centre = round(float(weights @ pair.index))
        rounding = 4.0 * _UNIT_ROUNDOFF * float(weights @ (np.abs(log_q) + np.abs(shift)))
        return cls(weights, pair.index, times, centre, top + math.log(total), rounding)

    @property
    def scale_rounding(self) -> float:
        """Of ``log_scale``: of the sum of the weights, whose own rounding is apart, and of its logarithm."""
        return (8.0 + 2.0 * math.log2(len(self.weights)) + 4.0 * abs(self.log_scale)) * _UNIT_ROUNDOFF

    def spectrum(self, size: int, centre: int) -> NDArray[np.complex128]:
        """The discrete Fourier transform, around a centre: so angles stay small for the coefficients that matter."""
        return np.asarray(rfft(np.bincount((self.index - centre) % size, weights=self.weights, minlength=size)))


def _expm1(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """``e^z - 1`` for small complex z: ``(e^x - 1) cos y - 2 sin^2(y/2) + i e^x sin y``."""
    real = np.expm1(z.real) * np.cos(z.imag) - 2.0 * np.sin(0.5 * z.imag) ** 2
    return np.asarray(real + 1j * np.exp(z.real) * np.sin(z.imag))
