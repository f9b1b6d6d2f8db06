r"""Composition of lattice pairs by exponentially tilted Fourier transforms.

The masses q of one step on the lattice are tilted to ``q e^(t loss - K)``, which sum to 1, and composed by a power of their discrete
Fourier transform. Undoing the tilt gives the composed masses. Rounding is relative to the largest tilted mass, so each tilt is used only
for losses within a few standard deviations of its mean. A few tilts cover all relevant losses, and every tail keeps its relative
precision. The error has three parts, each bounded here and proved in docs/derivations/composition.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft

from privselect.pairs.cumulants import WRAP_DEPTH, Cumulants, Tilts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.loss_lattice import LatticePair

    Floats = NDArray[np.float64]
    Part = tuple[LatticePair, int]

FLOOR = 1e-45  # mass of each tail of the composed loss that is left out
LARGEST_COMPOSED_LOSS = 520.0  # composed losses beyond it are left out: the mass 1e-45 e^-520 is still a normal float
_UNIT_ROUNDOFF = 2.0**-53
_RELATIVE_ERROR = 1e-4  # largest relative error of a composed mass, where tilts hand over
_SINGLE_RATE = 1e-13  # expected number of rare outcomes below which only a single one is counted
_MAX_TILT_PER_CELL = 60.0  # largest tilt times the spacing
_NEGLIGIBLE_LOG = -100.0  # log of a coefficient that is left out


@dataclass(frozen=True, slots=True, eq=False)
class DenseDistribution:
    """Masses of both distributions on the multiples ``first, first + 1, ...`` of the spacing.

    Above them each distribution has mass at most ``lost_p``, below them at most ``lost_q``.
    """

    spacing: float
    first: int
    p: Floats
    q: Floats
    lost_p: float
    lost_q: float

    @property
    def last(self) -> int:
        """Largest multiple."""
        return self.first + len(self.p) - 1


@dataclass(frozen=True, slots=True)
class _Window:
    """Indices from ``start`` to before ``stop``, computed with one tilt."""

    tilt: float
    start: int
    stop: int


def compose_on_lattice(parts: Sequence[Part], side: int, rare: Sequence[Part] = (), log_count: float = 0.0) -> DenseDistribution:
    """Return bounds, upper (``side`` 1) or lower (-1), on ``e^log_count`` times the composed masses.

    With ``rare`` parts, each composed outcome contains at least one outcome of a rare part: each run of a rare part contributes one
    of its outcomes or nothing. Losses beyond LARGEST_COMPOSED_LOSS, and tails with mass below FLOOR, are left out.
    """
    spacing = (parts or rare)[0][0].spacing
    cumulants = Cumulants.of(parts, rare, steepest=_MAX_TILT_PER_CELL / spacing)
    depth = log_count - math.log(FLOOR)
    # A composed outcome needs one of each part, and one of a rare part.
    if any(len(pair.q) == 0 for pair, _ in parts) or (rare and not any(len(pair.q) for pair, _ in rare)):
        return _empty(spacing)
    if float(cumulants.at(np.array([0.0, 1.0]))[0].max()) < -depth:
        return _empty(spacing)
    low, high = cumulants.low_end(depth), cumulants.high_end(depth)
    tilts = Tilts.of(cumulants, low, high)
    first, last = math.floor(low[1] / spacing), math.ceil(high[1] / spacing)
    if not rare:
        ends = [sum(times * int(pair.index[end]) for pair, times in parts) for end in (0, -1)]
        first, last = max(first, ends[0]), min(last, ends[1])
    lost_p, lost_q = FLOOR, FLOOR
    if last * spacing > LARGEST_COMPOSED_LOSS:
        last = math.floor(LARGEST_COMPOSED_LOSS / spacing)
        lost_p = tilts.mass_above(last * spacing, log_count)
    if first * spacing < -LARGEST_COMPOSED_LOSS:
        first = math.ceil(-LARGEST_COMPOSED_LOSS / spacing)
        lost_q = tilts.mass_below(first * spacing, log_count)
    if first > last:
        return replace(_empty(spacing), lost_p=2.0 * max(lost_p, lost_q), lost_q=2.0 * max(lost_p, lost_q))
    p, q = [], []
    for window in _windows(parts, rare, tilts, first, last):
        masses, log_scale = _Transform(parts, rare, window, tilts).masses(side)
        losses = np.arange(window.start, window.stop) * spacing
        # Rounding of the exponents that undo the tilt, which may be large.
        rounding = 4.0 * _UNIT_ROUNDOFF * (abs(log_count) + abs(log_scale) + (abs(window.tilt) + 1.0) * np.abs(losses))
        masses *= np.maximum(1.0 + side * rounding, 0.0)
        with np.errstate(under="ignore"):
            p.append(masses * np.exp(log_count + log_scale - (window.tilt - 1.0) * losses))
            q.append(masses * np.exp(log_count + log_scale - window.tilt * losses))
    return DenseDistribution(spacing, first, np.concatenate(p), np.concatenate(q), lost_p, lost_q)


def _empty(spacing: float) -> DenseDistribution:
    """Return no masses, with all mass counted as left out."""
    return DenseDistribution(spacing, 0, np.zeros(1), np.zeros(1), 2.0 * FLOOR, 2.0 * FLOOR)


def _windows(parts: Sequence[Part], rare: Sequence[Part], tilts: Tilts, first: int, last: int) -> Iterator[_Window]:
    spacing, runs = (parts or rare)[0][0].spacing, max(sum(times for _, times in parts), 1)
    cost = math.log(_RELATIVE_ERROR / (200.0 * _UNIT_ROUNDOFF * runs))
    chosen, handover_losses = tilts.cover_losses(first * spacing, last * spacing, min(max(cost, 4.0), 14.0))
    inner = np.clip(np.rint(handover_losses / spacing), first, last + 1).astype(int).tolist()
    for tilt, start, stop in zip(chosen.tolist(), [first, *inner], [*inner, last + 1], strict=True):
        if start < stop:
            yield _Window(tilt, start, stop)


class _Transform:
    """Spectrum of the composed distribution under one tilt."""

    def __init__(self, parts: Sequence[Part], rare: Sequence[Part], window: _Window, tilts: Tilts) -> None:
        self.window = window
        self.usual = [_TiltedDistribution.of(pair, times, window.tilt) for pair, times in parts]
        self.rare = [_TiltedDistribution.of(pair, times, window.tilt) for pair, times in rare if len(pair.q)]
        self.log_scale = sum(tilted.times * tilted.log_scale for tilted in self.usual)
        if self.rare:
            # Sums with a rare outcome have e^rate - 1 times the tilted mass of those without.
            self.rate = sum(tilted.times * float(np.logaddexp(0.0, tilted.log_scale)) for tilted in self.rare)
            self.log_first = float(np.logaddexp.reduce([math.log(tilted.times) + tilted.log_scale for tilted in self.rare]))
            self.log_scale += self.log_first if self.rate < _SINGLE_RATE else self.rate + math.log(-math.expm1(-self.rate))
        self.size = self._transform_size(parts, rare, tilts.range_of_tilt(window.tilt, self.log_scale))
        # A coefficient is a sum of weights (1 in total) times products of log2(size) roots of unity.
        self.coefficient_error = (8.0 * math.log2(self.size) + 16.0) * _UNIT_ROUNDOFF + max(
            tilted.rounding for tilted in (*self.usual, *self.rare)
        )

    def masses(self, side: int) -> tuple[Floats, float]:
        """Return bounds on the tilted masses of the window, and the log of the tilt's normalizer."""
        kept = np.arange(self.size // 2 + 1)
        log_modulus, changes, log_power = np.zeros(len(kept)), np.ones(len(kept)), np.zeros(len(kept), dtype=np.complex128)
        for tilted in self.usual:
            spectrum = tilted.spectrum(self.size, tilted.centre)[kept]
            modulus = np.abs(spectrum) + self.coefficient_error
            # A high power leaves few coefficients; skip the logarithms of the others.
            worth = np.flatnonzero(modulus > math.exp(_NEGLIGIBLE_LOG / tilted.times))
            kept, spectrum, modulus = kept[worth], spectrum[worth], modulus[worth]
            log_modulus = log_modulus[worth] + tilted.times * np.log(modulus)
            changes = changes[worth] + tilted.times / modulus
            log_power = log_power[worth] + tilted.times * np.log(np.where(spectrum == 0.0, self.coefficient_error, spectrum))
        power = np.exp(log_power)
        if self.rare:
            factor, factor_error, most = self._rare_factor(kept)
            power, changes = power * factor, changes * most + factor_error
        # Rounding of the transforms and the power, wrap-around, and (smaller than that) the coefficients left out.
        error = 2.0 * self.coefficient_error * float(np.sum(np.exp(log_modulus) * changes)) / self.size + 2.0 * math.exp(-WRAP_DEPTH)
        composed = np.zeros(self.size // 2 + 1, dtype=np.complex128)
        composed[kept] = power
        offset = sum(tilted.times * tilted.centre for tilted in self.usual)
        masses = irfft(composed, self.size)[(np.arange(self.window.start, self.window.stop) - offset) % self.size]
        scale_rounding = sum(tilted.times * tilted.scale_rounding for tilted in self.usual)
        if self.rare:
            # Given at least one rare outcome, their expected number is at most 1 + rate.
            scale_rounding += (1.0 + self.rate) * max(tilted.scale_rounding for tilted in self.rare)
        return np.maximum(masses + side * error, 0.0) * (1.0 + side * scale_rounding), self.log_scale

    def _rare_factor(self, kept: NDArray[np.int64]) -> tuple[NDArray[np.complex128], Floats, Floats]:
        """Return ``prod (1 + R)^n - 1`` over its value at angle 0, its error in units of ``coefficient_error``, and a bound on its modulus.

        R is small for rare outcomes: no digit of ``n log(1 + R)`` is lost, however large n is.
        """
        exponent, factor_error = np.zeros(len(kept), dtype=np.complex128), np.zeros(len(kept))
        if self.rate < _SINGLE_RATE:
            # Count a single rare outcome only. More of them have at most the share added to the error.
            shares = [math.exp(math.log(tilted.times) + tilted.log_scale - self.log_first) for tilted in self.rare]
            exponent += sum(share * tilted.spectrum(self.size, 0)[kept] for share, tilted in zip(shares, self.rare, strict=True))
            return (
                exponent,
                factor_error + 4.0 + 2.0 * self.rate / self.coefficient_error,
                np.minimum(np.abs(exponent) + 8.0 * self.coefficient_error, 1.0),
            )
        log_modulus = np.full(len(kept), -self.rate)
        for tilted in self.rare:
            # Divide 1 + R by its scale if R is large; a small R keeps its digits.
            scale, one = math.exp(min(tilted.log_scale, 0.0)), math.exp(-max(tilted.log_scale, 0.0))
            bump = scale * tilted.spectrum(self.size, 0)[kept]
            modulus = np.abs(one + bump) + 4.0 * self.coefficient_error * scale
            inside = 2.0 * bump.real + np.abs(bump) ** 2  # |1 + R|^2 - 1
            log_real = np.where(inside > -0.5, 0.5 * np.log1p(np.maximum(inside, -0.5)), np.log(modulus)) if one == 1.0 else np.log(modulus)
            exponent += tilted.times * (max(tilted.log_scale, 0.0) + log_real + 1j * np.arctan2(bump.imag, one + bump.real))
            log_modulus += tilted.times * (max(tilted.log_scale, 0.0) + np.log(modulus))
            factor_error += tilted.times * 4.0 * scale / modulus
        some = -math.expm1(-self.rate)
        factor = np.asarray((np.exp(exponent - self.rate) - math.exp(-self.rate)) / some, dtype=np.complex128)
        small = np.abs(exponent) < 0.5
        factor[small] = _expm1(exponent[small]) * (math.exp(-self.rate) / some)
        factor_error = (
            factor_error * np.exp(log_modulus) + 4.0 * np.exp(np.minimum(exponent.real - self.rate, 0.0)) * np.abs(exponent)
        ) / some
        # The modulus is largest at angle 0, because all terms are positive there.
        return factor, factor_error, np.minimum(np.abs(factor) + self.coefficient_error * factor_error, 1.0)

    def _transform_size(self, parts: Sequence[Part], rare: Sequence[Part], tilt_range: tuple[float, float]) -> int:
        """Return a transform length for which only mass beyond ``tilt_range`` wraps around into the window."""
        spacing = (parts or rare)[0][0].spacing
        needed = max(tilt_range[1] - self.window.start * spacing, self.window.stop * spacing - tilt_range[0]) / spacing
        if not rare:
            needed = min(needed, float(sum(times * int(pair.index[-1] - pair.index[0]) for pair, times in parts)))
        return next_fast_len(max(math.ceil(needed) + 1, self.window.stop - self.window.start, 16), real=True)


@dataclass(frozen=True, slots=True, eq=False)
class _TiltedDistribution:
    """Masses of one part, tilted and divided by ``e^log_scale`` so they sum to 1."""

    weights: Floats
    index: NDArray[np.int64]
    times: int
    centre: int
    log_scale: float
    rounding: float

    @classmethod
    def of(cls, pair: LatticePair, times: int, tilt: float) -> _TiltedDistribution:
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
        """Rounding of ``log_scale``: of the sum of the weights and of its logarithm. The rounding of the weights is separate."""
        return (8.0 + 2.0 * math.log2(len(self.weights)) + 4.0 * abs(self.log_scale)) * _UNIT_ROUNDOFF

    def spectrum(self, size: int, centre: int) -> NDArray[np.complex128]:
        """Return the discrete Fourier transform around a centre, so the angles of relevant coefficients stay small."""
        return np.asarray(rfft(np.bincount((self.index - centre) % size, weights=self.weights, minlength=size)))


def _expm1(z: NDArray[np.complex128]) -> NDArray[np.complex128]:
    """Return ``e^z - 1`` for small complex z: ``(e^x - 1) cos y - 2 sin^2(y/2) + i e^x sin y``."""
    real = np.expm1(z.real) * np.cos(z.imag) - 2.0 * np.sin(0.5 * z.imag) ** 2
    return np.asarray(real + 1j * np.exp(z.real) * np.sin(z.imag))
