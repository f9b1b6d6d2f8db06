"""``w(u) = phi'(1-u)/m``: the share of an outcome's chances that survives a mass u ranked above it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count

    Floats = NDArray[np.float64]

# log_dpgf is right to 1e-12 relative, exp and the products around it to a few units more; this covers both, many times over.
_VALUE_ROUNDING = 2e-11
_SMALLEST = 1e-290
_TINY = 1e-300  # a float below this loses digits, and then all of them
_FROM_HALF, _NEAR_ONE = np.linspace(1.0, 0.0, 900), 1.0 - np.geomspace(0.5, 1e-6, 300)[1:]
DEEPEST = 100.0  # w below e^-100 is not worth resolving: bounds there stay valid, they only stop being tight


class Weight:
    """The law of K as the accountant sees it: decreasing and convex from w(0) = 1, for every law of K.

    ``above`` and ``below`` are rounded outward in their value and in their argument, whose relative error is at
    most ``argument_rounding``.
    """

    def __init__(self, count: Count, argument_rounding: float) -> None:
        self._log_dpgf = count.log_dpgf_inside
        self.log_scale = float(count.log_dpgf(np.zeros(1))[0])
        self.scale = math.exp(self.log_scale)
        self.argument_rounding = argument_rounding + 1e-15

    def at(self, u: Floats) -> Floats:
        """w(u), u beyond 1 counting as 1."""
        return np.exp(self._log_dpgf(np.minimum(u, 1.0)) - self.log_scale)

    def above(self, u: Floats) -> Floats:
        """An upper bound on w(u)."""
        return np.maximum(self.at(u * (1.0 - self.argument_rounding)) * (1.0 + _VALUE_ROUNDING), _TINY)

    def below(self, u: Floats) -> Floats:
        """A lower bound on w(u)."""
        value = self.at(u * (1.0 + self.argument_rounding)) * (1.0 - _VALUE_ROUNDING)
        return np.where(value > _TINY, value, 0.0)

    def slopes(self, u: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Minus the slope of w just right (too flat) and just left (too steep) of u > 0, where ``value = below(u)``.

        Secants of a convex function: the line from ``value`` with the flat slope to the left, or with the steep slope to the
        right, never rises above w.
        """
        right = np.minimum(u * (1.0 + 1e-4), 1.0)
        left = u * (1.0 - 0.5e-4)
        with np.errstate(invalid="ignore", divide="ignore"):
            flat = np.maximum(value - self.above(right), 0.0) / (right - u)
            steep = (self.above(left) - value) / (u - left)
        return np.where(right > u, flat, 0.0), steep

    def decline(self, spacing: float, *, deepest: float = DEEPEST) -> Floats:
        """Points u from 0 to 1 between which log w falls by about ``spacing``, down to e^-deepest."""
        # The scale of u is 1/m for every law here; a law of bounded K also changes fast near u = 1.
        near_zero = 0.5 * (2e-6 / (self.scale + 1.0)) ** _FROM_HALF
        fine = np.concatenate([[0.0], near_zero, _NEAR_ONE, [1.0]])
        with np.errstate(divide="ignore"):
            fall = np.maximum.accumulate(-np.log(np.maximum(self.at(fine), _SMALLEST)))
        targets = np.arange(0.0, min(float(fall[-1]), deepest), spacing)
        return np.unique(np.concatenate([[0.0], np.interp(targets, fall, fine), [1.0]]))
