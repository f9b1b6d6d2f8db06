"""The moment generating function of a composed loss, and the tails that it bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_CLOSE = 0.05  # a tilt is good enough if it is this near the best, in units of the depth


class Cumulants:
    """``K(t) = log E e^(t L)`` for L the sum of independent losses under the second law, with two derivatives.

    Each part is given by the logs of its masses, its losses, and how many times it comes.
    """

    def __init__(self, parts: Sequence[tuple[Floats, Floats, int]]) -> None:
        self._parts = parts

    def at(self, tilts: Floats) -> tuple[Floats, Floats, Floats]:
        """K, K' (the tilted mean) and K'' (the tilted variance) at each tilt."""
        value, mean, variance = np.zeros_like(tilts), np.zeros_like(tilts), np.zeros_like(tilts)
        for log_q, losses, times in self._parts:
            exponents = log_q + tilts[:, None] * losses
            top = exponents.max(axis=1, keepdims=True)
            with np.errstate(under="ignore"):
                weights = np.exp(exponents - top)
                total = weights.sum(axis=1)
                first = weights @ losses / total
                second = np.einsum("ij,ij->i", weights, (losses - first[:, None]) ** 2) / total
            value += times * (np.log(total) + top[:, 0])
            mean += times * first
            variance += times * second
        return value, mean, variance

    def high_end(self, depth: float) -> tuple[float, float]:
        """A tilt t > 1, and the loss x above which it proves that the first law has at most ``e^-depth``.

        Chernoff: the first law has at most ``exp(K(t) - (t-1) x)`` there.
        """
        return self._end(depth, 1.0, 1)

    def low_end(self, depth: float) -> tuple[float, float]:
        """A tilt t < 0, and the loss x below which the second law has at most ``e^-depth``: it has ``exp(K(t) - t x)`` at most."""
        return self._end(depth, 0.0, -1)

    def _end(self, depth: float, base: float, sign: int) -> tuple[float, float]:
        variance = float(self.at(np.array([base]))[2][0])
        step = 0.5 * math.sqrt(2.0 * depth / max(variance, 1e-12))
        found, too_small, too_large = (base, sign * math.inf), 0.0, math.inf
        for _ in range(60):
            value, mean, variance = (float(one[0]) for one in self.at(np.array([base + sign * step])))
            # A sum of thousands of terms is right to far less than this.
            margin = 1e-9 * (1.0 + abs(value))
            bound = sign * (value + margin + depth) / step
            found = min(found, (base + sign * step, bound), key=lambda one: sign * one[1])
            # The best step has sign * step * mean = value + depth: Newton, kept between steps known to be too small and too large.
            excess, slope = sign * step * mean - value - depth, step * variance
            if slope <= 0.0 or abs(excess) < _CLOSE * depth:
                break
            too_small, too_large = (step, too_large) if excess < 0.0 else (too_small, step)
            wanted, most = step - excess / slope, min(too_large, 2.0 * step)
            step = wanted if too_small < wanted < most else 2.0 * step if math.isinf(too_large) else 0.5 * (too_small + too_large)
        return found
