"""The moment generating function of a composed loss, and the tails that it bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair
    from privselect.pairs.loss_lattice import LatticePair

    Law = DominatingPair | LatticePair
    Floats = NDArray[np.float64]
    Part = tuple[Floats, Floats, int]  # logs of the masses, losses, and how many times it comes

_FLAT = 1e-200  # a slope that is none
_CLOSE = 0.05  # a tilt is good enough if it is this near the best, in units of the depth


class Cumulants:
    """``K(t) = log E e^(t L)`` for L the sum of independent losses under the second law, with two derivatives.

    With ``rare`` parts, L is the sum of the others and of those large losses that came, given that at least one did: a part of
    generating function R(t) that may come at each of n runs brings in the factor ``(1 + R)^n``, all of them ``prod (1 + R)^n - 1``.
    Tilts beyond ``steepest`` are of no use: there the tilted law is all at its end.
    """

    def __init__(self, parts: Sequence[Part], rare: Sequence[Part] = (), *, steepest: float = 1e12) -> None:
        self._parts, self._rare, self._steepest = parts, rare, steepest

    @classmethod
    def of(cls, laws: Iterable[tuple[Law, int]], rare: Iterable[tuple[Law, int]] = (), *, steepest: float = 1e12) -> Cumulants:
        """Of pairs, on a lattice or not, and how many times each comes."""
        parts, large = ([(np.log(law.q), law.losses, times) for law, times in some if len(law.q)] for some in (laws, rare))
        return cls(parts, large, steepest=steepest)

    def at(self, tilts: Floats) -> tuple[Floats, Floats, Floats]:
        """K, K' (the tilted mean) and K'' (the tilted variance) at each tilt."""
        value, mean, variance = np.zeros_like(tilts), np.zeros_like(tilts), np.zeros_like(tilts)
        for part in self._parts:
            log_sum, first, second = _moments(part, tilts)
            value += part[2] * log_sum
            mean += part[2] * first
            variance += part[2] * second
        if not self._rare:
            return value, mean, variance
        found = [(*_moments(part, tilts), math.log(part[2])) for part in self._rare]
        # A = sum n log(1 + R), in logs, as R may be too small for a float: log(log(1 + e^x)) is x where that is tiny.
        shares = [log_sum - np.logaddexp(0.0, log_sum) for log_sum, _, _, _ in found]
        each = [log_n + _log_log1p(log_sum) for log_sum, _, _, log_n in found]
        log_rate = np.logaddexp.reduce(each)
        rate = np.exp(log_rate)
        with np.errstate(under="ignore", invalid="ignore", divide="ignore"):
            # A / (1 - e^-A): how many large losses there are, given that there is one, over A itself.
            given = np.where(rate < 1e-12, 1.0, rate / -np.expm1(-rate))
            weights = [np.exp(log_n + share - log_rate) for share, (_, _, _, log_n) in zip(shares, found, strict=True)]
            first = given * sum(w * m for w, (_, m, _, _) in zip(weights, found, strict=True))
            second = given * sum(w * (v - np.expm1(share) * m**2) for w, share, (_, m, v, _) in zip(weights, shares, found, strict=True))
            spread = second - first**2 * np.exp(-rate)
        return value + rate + log_rate - np.log(given), mean + first, variance + np.maximum(spread, 0.0)

    def high_end(self, depth: float) -> tuple[float, float]:
        """A tilt, and the loss x above which it proves that either law has at most ``e^-depth``.

        Chernoff: the first law has at most ``exp(K(t) - (t-1) x)`` above x for any t > 1, the second ``exp(K(t) - t x)`` for any t > 0.
        Above 0 the first has more.
        """
        first = self._end(depth, 1.0, 1)
        return first if first[1] >= 0.0 else max(first, self._end(depth, 0.0, 1), key=lambda one: one[1])

    def low_end(self, depth: float) -> tuple[float, float]:
        """The same below x, with t < 0 for the second law, which has more below 0, and t < 1 for the first."""
        second = self._end(depth, 0.0, -1)
        return second if second[1] <= 0.0 else min(second, self._end(depth, 1.0, -1), key=lambda one: one[1])

    def _end(self, depth: float, base: float, sign: int) -> tuple[float, float]:
        variance = float(self.at(np.array([base]))[2][0])
        step = min(0.5 * math.sqrt(2.0 * depth / max(variance, 1e-12)), self._steepest)
        found, too_small, too_large = (base, sign * math.inf), 0.0, math.inf
        for _ in range(60):
            value, mean, variance = (float(one[0]) for one in self.at(np.array([base + sign * step])))
            # A sum of thousands of terms is right to far less than this.
            margin = 1e-9 * (1.0 + abs(value))
            bound = sign * (value + margin + depth) / step
            found = min(found, (base + sign * step, bound), key=lambda one: sign * one[1])
            # The best step has sign * step * mean = value + depth: Newton, kept between steps known to be too small and too large.
            excess, slope = sign * step * mean - value - depth, step * variance
            if abs(excess) < _CLOSE * depth or (excess < 0.0 and (slope <= 0.0 or step >= self._steepest)):
                break
            too_small, too_large = (step, too_large) if excess < 0.0 else (too_small, step)
            wanted, most = step - excess / slope if slope > _FLAT else 0.0, min(too_large, 2.0 * step)
            step = wanted if too_small < wanted < most else 2.0 * step if math.isinf(too_large) else 0.5 * (too_small + too_large)
            step = min(step, self._steepest)
        return found


def _moments(part: Part, tilts: Floats) -> tuple[Floats, Floats, Floats]:
    """Of one run: the log of ``sum q e^(t loss)``, and mean and variance of the loss under the tilted masses."""
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
    """``log(log(1 + x))`` from log x."""
    with np.errstate(divide="ignore"):
        return np.where(log_x < -36.0, log_x, np.log(np.logaddexp(0.0, log_x)))
