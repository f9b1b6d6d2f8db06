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

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from privselect.pairs.lattice import LatticePair

    Floats = NDArray[np.float64]
    Part = tuple[LatticePair, int]

_UNIT_ROUNDOFF = 2.0**-53
_ERROR = 1e-4  # of a composed mass, relative, where its tilt is worst
_WRAPPED = 46.0  # minus the log of the tilted mass that may wrap around
_NEGLIGIBLE = -100.0  # log of a coefficient that is not worth its sine and cosine
_MOVE = 1.5  # standard deviations that the mean may move from one tabulated tilt to the next
_ROUNDS, _ROOM = 40, 16  # of refining the table of tilts; tilts beyond either end


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


def convolved(parts: Sequence[Part], floor: float, most: float, side: int, log_count: float = 0.0) -> Dense | None:
    """Bounds, above (``side`` 1) or below (-1), on ``e^log_count`` times the composed masses; None where they are below ``floor``.

    Losses beyond ``most`` are left out, and so are those at either end that have less than ``floor`` in all.
    """
    if any(len(pair.q) == 0 for pair, _ in parts):
        return None
    spacing = parts[0][0].spacing
    cumulants = Cumulants([(np.log(pair.q), pair.index * pair.spacing, times) for pair, times in parts])
    depth = log_count - math.log(floor)
    if float(cumulants.at(np.array([0.0, 1.0]))[0].max()) < -depth:
        return None
    low, high = cumulants.low_end(depth), cumulants.high_end(depth)
    first, last = (sum(times * int(pair.index[end]) for pair, times in parts) for end in (0, -1))
    first, last = max(math.floor(low[1] / spacing), first), min(math.ceil(high[1] / spacing), last)
    grid = _Grid.of(cumulants, low, high)
    lost_p, lost_q = floor, floor
    if last * spacing > most:
        last = math.floor(most / spacing)
        lost_p = grid.mass_above(last * spacing, log_count)
    if first * spacing < -most:
        first = math.ceil(-most / spacing)
        lost_q = grid.mass_below(first * spacing, log_count)
    if first > last:
        return Dense(spacing, 0, np.zeros(1), np.zeros(1), 1.0, 1.0)
    cost = math.log(_ERROR / (200.0 * _UNIT_ROUNDOFF * sum(times for _, times in parts)))
    tilts, hand_over = _windows(grid, first * spacing, last * spacing, min(max(cost, 4.0), 14.0))
    edges = [first, *np.clip(np.rint(hand_over / spacing), first, last + 1).astype(int).tolist(), last + 1]
    p, q = [], []
    for tilt, start, stop in zip(tilts.tolist(), edges[:-1], edges[1:], strict=True):
        masses, log_scale = _tilted(parts, tilt, grid, start, stop, side)
        log_scale += log_count
        losses = np.arange(start, stop) * spacing
        with np.errstate(under="ignore"):
            p.append(masses * np.exp(log_scale - (tilt - 1.0) * losses))
            q.append(masses * np.exp(log_scale - tilt * losses))
    return Dense(spacing, first, np.concatenate(p), np.concatenate(q), lost_p, lost_q)


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """The log K of the moment generating function, with mean and deviation of the tilted law, at ascending tilts."""

    tilts: Floats
    value: Floats
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, cumulants: Cumulants, low: tuple[float, float], high: tuple[float, float]) -> _Grid:
        """From the tilts and losses of the two ends: so many tilts that the mean moves by no more than a few deviations between two."""
        (low_tilt, low_loss), (high_tilt, high_loss) = low, high
        tilts = np.concatenate([np.linspace(low_tilt, 0.0, 9), [0.5], np.linspace(1.0, high_tilt, 9)])
        grid = cls._at(cumulants, tilts)
        for _ in range(_ROUNDS):
            between = (grid.mean[1:] > low_loss) & (grid.mean[:-1] < high_loss)
            wide = np.flatnonzero((grid.moves() > _MOVE) & between)
            if len(wide) == 0:
                break
            grid = grid.with_more(cls._at(cumulants, 0.5 * (grid.tilts[wide] + grid.tilts[wide + 1])))
        # Room at both ends for the bounds on what wraps around.
        room = np.minimum(10.0 / np.maximum(grid.deviation[[0, -1]], 1e-150), high_tilt - low_tilt)
        steps = np.arange(1, _ROOM + 1) / _ROOM
        return grid.with_more(cls._at(cumulants, np.concatenate([low_tilt - room[0] * steps, high_tilt + room[1] * steps])))

    @classmethod
    def _at(cls, cumulants: Cumulants, tilts: Floats) -> _Grid:
        value, mean, variance = cumulants.at(tilts)
        return cls(tilts, value, mean, np.sqrt(np.maximum(variance, 0.0)))

    def with_more(self, more: _Grid) -> _Grid:
        """Both, sorted."""
        order = np.argsort(np.concatenate([self.tilts, more.tilts]), kind="stable")
        columns = ((self.tilts, more.tilts), (self.value, more.value), (self.mean, more.mean), (self.deviation, more.deviation))
        return _Grid(*(np.concatenate(column)[order] for column in columns))

    def least(self, losses: Floats) -> Floats:
        """The least of ``K(t) - t loss`` over the tilts."""
        return np.asarray((self.value[:, None] - self.tilts[:, None] * losses).min(axis=0))

    def moves(self) -> Floats:
        """By how many deviations the mean moves from each tilt to the next."""
        return np.diff(self.mean) / np.maximum(0.5 * (self.deviation[1:] + self.deviation[:-1]), 1e-300)

    def mass_above(self, loss: float, log_count: float) -> float:
        """A bound on the first law's mass of losses above: ``exp(K(t) - (t-1) loss)`` for any t > 1."""
        exponents = (log_count + self.value - (self.tilts - 1.0) * loss)[self.tilts > 1.0]
        return float(np.exp(min(exponents.min(initial=0.0), 0.0)))

    def mass_below(self, loss: float, log_count: float) -> float:
        """A bound on the second law's mass of losses below: ``exp(K(t) - t loss)`` for any t < 0."""
        exponents = (log_count + self.value - self.tilts * loss)[self.tilts < 0.0]
        return float(np.exp(min(exponents.min(initial=0.0), 0.0)))

    def reach(self, tilt: float, log_scale: float) -> tuple[float, float]:
        """Losses below and above which the tilted law has no more than e^-46 each."""
        above, below = self.tilts > tilt, self.tilts < tilt
        highest = ((self.value[above] - log_scale + _WRAPPED) / (self.tilts[above] - tilt)).min(initial=math.inf)
        lowest = ((log_scale - self.value[below] - _WRAPPED) / (tilt - self.tilts[below])).max(initial=-math.inf)
        return float(lowest), float(highest)


def _windows(grid: _Grid, low: float, high: float, cost: float) -> tuple[Floats, Floats]:
    """Tilts that serve the losses from ``low`` to ``high``, and the losses at which one hands over to the next.

    Rounding under a tilt t costs, at a loss x, in proportion to ``exp(K(t) - t x)``. Two tilts cost the same where their lines meet:
    there one hands over to the other, and the next tilt is the furthest that costs at most ``e^cost`` times the least there.
    """
    inside = np.flatnonzero((grid.mean > low) & (grid.mean < high))
    start, end = (int(inside[0]), int(inside[-1])) if len(inside) else (int(np.argmin(np.abs(grid.mean - low))),) * 2
    chosen, hand_over = [_furthest(grid, start, end, low, cost)], []
    while chosen[-1] < end:
        last = chosen[-1]
        later = np.arange(last + 1, end + 1)
        meet = (grid.value[later] - grid.value[last]) / (grid.tilts[later] - grid.tilts[last])
        excess = grid.value[last] - grid.tilts[last] * meet - grid.least(meet)
        fits = int(np.argmin(np.append(excess <= cost, False)))  # the first that does not
        place = max(fits - 1, 0)
        # The last tilt need not reach further than it must.
        chosen.append(int(later[place]))
        hand_over.append(float(meet[place]))
        if grid.value[chosen[-1]] - grid.tilts[chosen[-1]] * high - grid.least(np.array([high]))[0] <= cost:
            break
    return grid.tilts[chosen], np.array(hand_over)


def _furthest(grid: _Grid, start: int, end: int, low: float, cost: float) -> int:
    """The last tilt that still serves the lowest loss."""
    places = np.arange(start, end + 1)
    excess = grid.value[places] - grid.tilts[places] * low - grid.least(np.array([low]))[0]
    fits = int(np.argmin(np.append(excess <= cost, False)))
    return int(places[max(fits - 1, 0)])


def _tilted(parts: Sequence[Part], tilt: float, grid: _Grid, start: int, stop: int, side: int) -> tuple[Floats, float]:
    """Bounds on the tilted masses from index ``start`` to ``stop``, and the log of what the tilt divided them by."""
    tilted, offset, log_scale, scale_rounding, weight_rounding = [], 0, 0.0, 0.0, 0.0
    for pair, times in parts:
        log_q, shift = np.log(pair.q), tilt * pair.spacing * pair.index
        exponents = log_q + shift
        top = float(exponents.max())
        with np.errstate(under="ignore"):
            weights = np.exp(exponents - top)
        total = float(weights.sum())
        weights /= total
        weight_rounding = max(weight_rounding, 4.0 * _UNIT_ROUNDOFF * float(weights @ (np.abs(log_q) + np.abs(shift))))
        scale_rounding += times * (8.0 + 4.0 * abs(top)) * _UNIT_ROUNDOFF
        centre = round(float(weights @ pair.index))  # angles stay small for the coefficients that matter
        tilted.append((weights, pair.index - centre, times))
        offset += times * centre
        log_scale += times * (top + math.log(total))
    size = _size(parts, grid.reach(tilt, log_scale), start, stop)
    # Each coefficient is a sum of the weights, which are 1 in all, times products of roots of unity, log2(size) to a product.
    tiny = (8.0 * math.log2(size) + 16.0) * _UNIT_ROUNDOFF + weight_rounding
    kept = np.arange(size // 2 + 1)
    log_modulus, changes, power = 0.0, 1.0, 0.0
    for weights, index, times in tilted:
        spectrum = rfft(np.bincount(index % size, weights=weights, minlength=size))[kept]
        modulus = np.abs(spectrum) + tiny
        # Of a high power few coefficients are left; the others are not worth their logarithms.
        worth = np.flatnonzero(modulus > math.exp(_NEGLIGIBLE / times))
        kept, modulus = kept[worth], modulus[worth]
        log_modulus, changes, power = (sums if np.ndim(sums) == 0 else sums[worth] for sums in (log_modulus, changes, power))
        log_modulus = log_modulus + times * np.log(modulus)
        changes = changes + times / modulus
        power = power + times * np.log(np.where(spectrum[worth] == 0.0, tiny, spectrum[worth]))
    composed = np.zeros(size // 2 + 1, dtype=np.complex128)
    composed[kept] = np.exp(power)
    error = 2.0 * tiny * float(np.sum(np.exp(log_modulus) * changes)) / size + 2.0 * math.exp(-_WRAPPED)
    # The skipped coefficients, at most e^-100 each, are less than the last term.
    masses = irfft(composed, size)[(np.arange(start, stop) - offset) % size]
    return np.maximum(masses + side * error, 0.0) * (1.0 + side * scale_rounding), log_scale


def _size(parts: Sequence[Part], reach: tuple[float, float], start: int, stop: int) -> int:
    """A transform so long that what lies beyond ``reach`` is all that wraps around into the indices asked for."""
    spacing = parts[0][0].spacing
    whole = sum(times * int(pair.index[-1] - pair.index[0]) for pair, times in parts) + 1
    wanted = max(reach[1] - start * spacing, stop * spacing - reach[0]) / spacing
    return next_fast_len(max(whole if wanted >= whole else math.ceil(wanted) + 1, stop - start, 16), real=True)
