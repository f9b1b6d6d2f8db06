"""Moment generating function of a composed loss, its tail bounds, and the choice of tilts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair
    from privselect.pairs.loss_lattice import LatticePair

    AnyPair = DominatingPair | LatticePair
    Floats = NDArray[np.float64]
    Part = tuple[Floats, Floats, int]  # logs of the masses, losses, number of runs

_ZERO_SLOPE = 1e-200  # smaller slopes count as 0
_TILT_TOLERANCE = 0.05  # a tilt is accepted this close to the best one, in units of the depth


class Cumulants:
    """``K(t) = log E e^(t L)`` and its derivatives, for the sum L of independent losses under the second distribution.

    With ``rare`` parts, L also includes the large losses that occur, given that at least one occurs. A rare part with generating
    function R(t) and n runs contributes a factor ``(1 + R)^n``; all of them contribute ``prod (1 + R)^n - 1``.
    Tilts beyond ``steepest`` are useless: the tilted distribution is concentrated on its last outcome.
    """

    def __init__(self, parts: Sequence[Part], rare: Sequence[Part] = (), *, steepest: float = 1e12) -> None:
        self._parts, self._rare, self._steepest = parts, rare, steepest

    @classmethod
    def of(cls, pairs: Iterable[tuple[AnyPair, int]], rare: Iterable[tuple[AnyPair, int]] = (), *, steepest: float = 1e12) -> Cumulants:
        """Create from pairs, on a lattice or not, with their number of runs."""
        parts, large = ([(np.log(pair.q), pair.losses, times) for pair, times in some if len(pair.q)] for some in (pairs, rare))
        return cls(parts, large, steepest=steepest)

    def at(self, tilts: Floats) -> tuple[Floats, Floats, Floats]:
        """Return K, K' (the tilted mean) and K'' (the tilted variance) at each tilt."""
        value, mean, variance = np.zeros_like(tilts), np.zeros_like(tilts), np.zeros_like(tilts)
        for part in self._parts:
            log_sum, first, second = _moments(part, tilts)
            value += part[2] * log_sum
            mean += part[2] * first
            variance += part[2] * second
        if not self._rare:
            return value, mean, variance
        found = [(*_moments(part, tilts), math.log(part[2])) for part in self._rare]
        # A = sum n log(1 + R), in logs because R may underflow: log(log(1 + e^x)) is x for very negative x.
        shares = [log_sum - np.logaddexp(0.0, log_sum) for log_sum, _, _, _ in found]
        each = [log_n + _log_log1p(log_sum) for log_sum, _, _, log_n in found]
        log_rate = np.logaddexp.reduce(each)
        rate = np.exp(log_rate)
        with np.errstate(under="ignore", invalid="ignore", divide="ignore"):
            # rate / (1 - e^-rate): expected number of large losses, given that there is one.
            given = np.where(rate < 1e-12, 1.0, rate / -np.expm1(-rate))
            weights = [np.exp(log_n + share - log_rate) for share, (_, _, _, log_n) in zip(shares, found, strict=True)]
            first = given * sum(w * m for w, (_, m, _, _) in zip(weights, found, strict=True))
            second = given * sum(w * (v - np.expm1(share) * m**2) for w, share, (_, m, v, _) in zip(weights, shares, found, strict=True))
            spread = second - first**2 * np.exp(-rate)
        return value + rate + log_rate - np.log(given), mean + first, variance + np.maximum(spread, 0.0)

    def high_end(self, depth: float) -> tuple[float, float]:
        """Return a tilt and the loss x above which it proves that both distributions have mass at most ``e^-depth``.

        Chernoff: above x the first distribution has mass at most ``exp(K(t) - (t-1) x)`` for any t > 1, the second at most
        ``exp(K(t) - t x)`` for any t > 0. Above loss 0 the first has more mass.
        """
        first = self._end(depth, 1.0, 1)
        return first if first[1] >= 0.0 else max(first, self._end(depth, 0.0, 1), key=lambda one: one[1])

    def low_end(self, depth: float) -> tuple[float, float]:
        """Return a tilt and the loss x below which it proves mass at most ``e^-depth``: t < 0 for the second distribution, else t < 1."""
        second = self._end(depth, 0.0, -1)
        return second if second[1] <= 0.0 else min(second, self._end(depth, 1.0, -1), key=lambda one: one[1])

    def _end(self, depth: float, base: float, sign: int) -> tuple[float, float]:
        variance = float(self.at(np.array([base]))[2][0])
        step = min(0.5 * math.sqrt(2.0 * depth / max(variance, 1e-12)), self._steepest)
        found, too_small, too_large = (base, sign * math.inf), 0.0, math.inf
        for _ in range(60):
            value, mean, variance = (float(one[0]) for one in self.at(np.array([base + sign * step])))
            # The rounding of a sum of thousands of terms is far smaller than this.
            margin = 1e-9 * (1.0 + abs(value))
            bound = sign * (value + margin + depth) / step
            found = min(found, (base + sign * step, bound), key=lambda one: sign * one[1])
            # The best step has sign * step * mean = value + depth: Newton steps between bounds that are too small and too large.
            excess, slope = sign * step * mean - value - depth, step * variance
            if abs(excess) < _TILT_TOLERANCE * depth or (excess < 0.0 and (slope <= 0.0 or step >= self._steepest)):
                break
            too_small, too_large = (step, too_large) if excess < 0.0 else (too_small, step)
            newton, most = step - excess / slope if slope > _ZERO_SLOPE else 0.0, min(too_large, 2.0 * step)
            step = newton if too_small < newton < most else 2.0 * step if math.isinf(too_large) else 0.5 * (too_small + too_large)
            step = min(step, self._steepest)
        return found


def _moments(part: Part, tilts: Floats) -> tuple[Floats, Floats, Floats]:
    """Return, for one run, the log of ``sum q e^(t loss)`` and the mean and variance of the loss under the tilted masses."""
    log_q, losses, _ = part
    exponents = log_q + tilts[:, None] * losses
    top = exponents.max(axis=1, keepdims=True)
    with np.errstate(under="ignore"):
        weights = np.exp(exponents - top)
        total = weights.sum(axis=1)
        first = weights @ losses / total
        second = np.einsum("ij,ij->i", weights, (losses - first[:, None]) ** 2) / total
    return np.log(total) + top[:, 0], first, second


def _log_log1p(log_x: Floats) -> Floats:
    """Return ``log(log(1 + x))`` from log x."""
    with np.errstate(divide="ignore"):
        return np.where(log_x < -36.0, log_x, np.log(np.logaddexp(0.0, log_x)))


_MAX_MEAN_MOVE = 1.5  # largest change of the mean between neighbouring tilts, in standard deviations
_REFINEMENTS, _MAX_TILTS, _EXTRA_TILTS = 40, 1000, 16  # of the table; largest size of the table; tilts beyond either end
WRAP_DEPTH = 46.0  # minus the log of the tilted mass that may wrap around the transform


@dataclass(frozen=True, slots=True, eq=False)
class Tilts:
    """Table of K at ascending tilts, with the mean and deviation of the tilted distribution."""

    tilts: Floats
    value: Floats
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, cumulants: Cumulants, low: tuple[float, float], high: tuple[float, float]) -> Tilts:
        """Tabulate K from tilt ``low`` to ``high``, dense enough that the mean moves by few deviations from one tilt to the next."""
        (low_tilt, low_loss), (high_tilt, high_loss) = low, high
        tilts = np.concatenate([np.linspace(low_tilt, 0.0, 9), [0.5], np.linspace(1.0, high_tilt, 9)])
        grid = cls._at(cumulants, tilts)
        for _ in range(_REFINEMENTS):
            between = (grid.mean[1:] > low_loss) & (grid.mean[:-1] < high_loss)
            wide = np.flatnonzero((grid.mean_moves() > _MAX_MEAN_MOVE) & between)
            if len(wide) == 0 or len(grid.tilts) + len(wide) > _MAX_TILTS:
                break
            grid = grid.merged_with(cls._at(cumulants, 0.5 * (grid.tilts[wide] + grid.tilts[wide + 1])))
        # Further tilts at both ends, for the bounds on wrap-around.
        room = np.minimum(10.0 / np.maximum(grid.deviation[[0, -1]], 1e-150), high_tilt - low_tilt)
        steps = np.arange(1, _EXTRA_TILTS + 1) / _EXTRA_TILTS
        return grid.merged_with(cls._at(cumulants, np.concatenate([low_tilt - room[0] * steps, high_tilt + room[1] * steps])))

    @classmethod
    def _at(cls, cumulants: Cumulants, tilts: Floats) -> Tilts:
        value, mean, variance = cumulants.at(tilts)
        return cls(tilts, value, mean, np.sqrt(np.maximum(variance, 0.0)))

    def merged_with(self, more: Tilts) -> Tilts:
        """Return the union of both tables, sorted, each tilt once."""
        _, order = np.unique(np.concatenate([self.tilts, more.tilts]), return_index=True)
        columns = ((self.tilts, more.tilts), (self.value, more.value), (self.mean, more.mean), (self.deviation, more.deviation))
        return Tilts(*(np.concatenate(column)[order] for column in columns))

    def mean_moves(self) -> Floats:
        """Return the change of the mean from each tilt to the next, in deviations."""
        return np.diff(self.mean) / np.maximum(0.5 * (self.deviation[1:] + self.deviation[:-1]), 1e-300)

    def mass_above(self, loss: float, log_count: float) -> float:
        """Return a bound on the first distribution's mass above a loss: ``exp(K(t) - (t-1) loss)`` for any t > 1."""
        exponents = (log_count + self.value - (self.tilts - 1.0) * loss)[self.tilts > 1.0]
        return float(np.exp(min(exponents.min(initial=0.0), 0.0)))

    def mass_below(self, loss: float, log_count: float) -> float:
        """Return a bound on the second distribution's mass below a loss: ``exp(K(t) - t loss)`` for any t < 0."""
        exponents = (log_count + self.value - self.tilts * loss)[self.tilts < 0.0]
        return float(np.exp(min(exponents.min(initial=0.0), 0.0)))

    def range_of_tilt(self, tilt: float, log_scale: float) -> tuple[float, float]:
        """Return losses below and above which the tilted distribution has mass at most e^-46 each."""
        above, below = self.tilts > tilt, self.tilts < tilt
        highest = ((self.value[above] - log_scale + WRAP_DEPTH) / (self.tilts[above] - tilt)).min(initial=math.inf)
        lowest = ((log_scale - self.value[below] - WRAP_DEPTH) / (tilt - self.tilts[below])).max(initial=-math.inf)
        return float(lowest), float(highest)

    def cover_losses(self, low: float, high: float, cost: float) -> tuple[Floats, Floats]:
        """Return tilts that cover the losses from ``low`` to ``high``, and the losses at which one tilt hands over to the next.

        The rounding error of tilt t at loss x is proportional to ``exp(K(t) - t x)``. Two tilts have the same error at the loss where
        the lines ``K(t) - t x`` cross: one hands over to the other there. The next tilt is the furthest whose error there is at most
        ``e^cost`` times the smallest.
        """
        middle = slice(_EXTRA_TILTS // 2, len(self.tilts) - _EXTRA_TILTS // 2)  # `range_of_tilt` needs further tilts on both sides
        inside = np.flatnonzero((self.mean[middle] > low) & (self.mean[middle] < high)) + middle.start
        if len(inside) == 0:
            inside = np.array([middle.start + int(np.argmin(np.abs(self.mean[middle] - low)))])
        last = int(inside[-1])
        chosen = [self._furthest_within_cost(np.arange(inside[0], last + 1), np.full(last + 1 - inside[0], low), cost)]
        handover_losses = []
        while chosen[-1] < last and self._excess_cost(np.array(chosen[-1:]), np.array([high]))[0] > cost:
            here, later = chosen[-1], np.arange(chosen[-1] + 1, last + 1)
            meet = (self.value[later] - self.value[here]) / (self.tilts[later] - self.tilts[here])
            chosen.append(self._furthest_within_cost(later, meet, cost))
            handover_losses.append(float(meet[chosen[-1] - later[0]]))
        return self.tilts[chosen], np.array(handover_losses)

    def _furthest_within_cost(self, places: NDArray[np.int64], losses: Floats, cost: float) -> int:
        """Return the last of these tilts before the first one whose error at its loss is too large; at least the first tilt."""
        too_costly = np.flatnonzero(self._excess_cost(places, losses) > cost)
        return int(places[max(int(too_costly[0]) - 1, 0)] if len(too_costly) else places[-1])

    def _excess_cost(self, places: NDArray[np.int64], losses: Floats) -> Floats:
        """Return the log of each tilt's error at its loss, relative to the smallest error of all tilts."""
        smallest = (self.value[:, None] - self.tilts[:, None] * losses).min(axis=0)
        return np.asarray(self.value[places] - self.tilts[places] * losses - smallest)
