"""``w(u) = phi'(1-u)/m``, the share of an outcome's probability that survives a mass u ranked above it, and bounds on w.

:class:`Weight` bounds w at single points, :class:`MeshNodes` at the nodes of a mesh, and :class:`TailBounds` over long stretches.
All bounds are rounded outward.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

MAX_LOG_C = 700.0  # keeps c = e^(epsilon - loss) finite; a smaller c only loosens a bound
DEEPEST = 100.0  # w below e^-100 is not resolved: bounds there stay valid but are no longer tight

# log_dpgf has a relative error of 1e-12, exp and the products around it a few units more; this covers both with a wide margin.
_VALUE_ROUNDING = 2e-11
_SMALLEST = 1e-290
_TINY = 1e-300  # floats below this lose precision
_FROM_HALF, _NEAR_ONE = np.linspace(1.0, 0.0, 900), 1.0 - np.geomspace(0.5, 1e-6, 300)[1:]

_SHALLOW = 0.02  # up to this m*y all relevant pieces are near the top, and y hardly changes the weights
_STRETCH = 1.06  # ratio of consecutive depths
_SPACING = 0.2  # of the nodes, in log w


class Weight:
    """The function w of a law of K: decreasing and convex, with w(0) = 1.

    ``above`` and ``below`` are rounded outward in their value and in their argument, whose relative error is at
    most ``argument_rounding``.
    """

    def __init__(self, count: Count, argument_rounding: float) -> None:
        self._log_dpgf = count.log_dpgf_unchecked
        self.log_scale = float(count.log_dpgf(np.zeros(1))[0])
        self.scale = math.exp(self.log_scale)
        self.argument_rounding = argument_rounding + 1e-15

    def at(self, u: Floats) -> Floats:
        """Return w(u); u above 1 counts as 1."""
        return np.exp(self._log_dpgf(np.minimum(u, 1.0)) - self.log_scale)

    def above(self, u: Floats) -> Floats:
        """Return an upper bound on w(u)."""
        return np.maximum(self.at(u * (1.0 - self.argument_rounding)) * (1.0 + _VALUE_ROUNDING), _TINY)

    def below(self, u: Floats) -> Floats:
        """Return a lower bound on w(u)."""
        value = self.at(u * (1.0 + self.argument_rounding)) * (1.0 - _VALUE_ROUNDING)
        return np.where(value > _TINY, value, 0.0)

    def slopes(self, u: Floats, value: Floats) -> tuple[Floats, Floats]:
        """Return minus the slope of w just right (too flat) and just left (too steep) of u > 0, given ``value = below(u)``.

        Both are secants of a convex function: the line from ``value`` with the flat slope to the left, or with the steep slope to
        the right, never rises above w.
        """
        right = np.minimum(u * (1.0 + 1e-4), 1.0)
        left = u * (1.0 - 0.5e-4)
        with np.errstate(invalid="ignore", divide="ignore"):
            flat = np.maximum(value - self.above(right), 0.0) / (right - u)
            steep = (self.above(left) - value) / (u - left)
        return np.where(right > u, flat, 0.0), steep

    def equal_declines(self, spacing: float, *, deepest: float = DEEPEST) -> Floats:
        """Return points u from 0 to 1 between which log w falls by about ``spacing``, down to e^-deepest."""
        # The scale of u is 1/m for every law of K here; with a bounded K, w also changes fast near u = 1.
        near_zero = 0.5 * (2e-6 / (self.scale + 1.0)) ** _FROM_HALF
        fine = np.concatenate([[0.0], near_zero, _NEAR_ONE, [1.0]])
        with np.errstate(divide="ignore"):
            fall = np.maximum.accumulate(-np.log(np.maximum(self.at(fine), _SMALLEST)))
        targets = np.arange(0.0, min(float(fall[-1]), deepest), spacing)
        return np.unique(np.concatenate([[0.0], np.interp(targets, fall, fine), [1.0]]))


class MeshNodes:
    """Ascending masses x ranked above the counted outcomes, with g(x), and bounds on w in the cells between them."""

    def __init__(self, pair: DominatingPair, weight: Weight, x: Floats) -> None:
        self._weight = weight
        self.x = np.unique(x)
        self.g = pair.g(self.x)
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        self._g_middle = pair.g(middle)
        outcome = np.searchsorted(pair.low_nodes[0], middle, side="right") - 1
        # g lies below its tangent: at the cell's right end, this far above g_middle. Beyond the last outcome g is flat.
        self._half_rise = 0.5 * np.append(np.exp(-pair.losses), 0.0)[outcome] * np.diff(self.x)

    def gains(self, y: Floats) -> Floats:
        """Return upper bounds on w(x + y): one row for each y, one column for each node."""
        return self._weight.above(self.x + y[:, None])

    def tangents(self, k0: Floats, k1: Floats) -> tuple[Floats, Floats]:
        """Return lower bounds on w(g(x) + k) at the nodes, at both ends of [k0, k1]; they are concave in between."""
        weight, half = self._weight, self._half_rise
        reach = 0.5 * (k1 - k0)[:, None]
        u = np.minimum(self._g_middle + 0.5 * (k0 + k1)[:, None], 1.0)
        value = weight.below(u)
        flat, steep = weight.slopes(u, value)
        slack = weight.argument_rounding * u

        # At the cell's left and right end, for the lower and the upper k: a tangent falls along both.
        corners = [value - np.where(d < 0.0, flat, steep) * d for d in (r + slack + s for s in (-reach, reach) for r in (-half, half))]
        if (dips := corners[3] < 0.0).any():
            # A tangent that dips below 0 must not be clipped, which would break concavity. The constant at the far corner is a
            # lower bound over the whole cell too.
            far = weight.below(np.minimum(self.g[1:] + k1[:, None], 1.0))
            corners = [np.where(dips, far, corner) for corner in corners]

        def at_nodes(left: Floats, right: Floats) -> Floats:
            nodes = np.empty((len(k0), len(self.x)))
            nodes[:, 0], nodes[:, -1] = left[:, 0], right[:, -1]
            np.minimum(left[:, 1:], right[:, :-1], out=nodes[:, 1:-1])
            return nodes

        return at_nodes(*corners[:2]), at_nodes(*corners[2:])


def nodes_on_both_scales(pair: DominatingPair, masses: Floats) -> Floats:
    """Return the masses as x and the x at which g(x) equals them: gains and costs change on different scales."""
    x, g = pair.low_nodes
    return np.concatenate([masses, np.interp(masses, g, x)])


class TailBounds:
    """Bounds on F over stretches [s, t] of y, for every x: ``F <= w(x+s) - c(s) w(g(x)+k(t))``, because w falls and c grows with y."""

    def __init__(self, pair: DominatingPair, weight: Weight) -> None:
        self._pair, self._weight = pair, weight
        first = min(_SHALLOW / weight.scale, 1.0)
        steps = int(np.ceil(-np.log(first) / np.log(_STRETCH)))
        self._depths = np.minimum(first * _STRETCH ** np.arange(steps + 1), 1.0)

    @cached_property
    def _stretches(self) -> tuple[Floats, Floats, Floats]:
        """Logarithm of k' at the start of each stretch; gains at its start and costs at its end, node by node."""
        pair, weight, starts, ends = self._pair, self._weight, self._depths[:-1], self._depths[1:]
        slopes = np.concatenate([[-np.inf], -pair.losses[::-1]])
        # Rounding may have moved a start into the next outcome: use the previous outcome, whose k' is smaller.
        outcome = np.searchsorted(pair.high_nodes[0], starts * (1.0 - pair.relative_rounding), side="right") - 1
        nodes, k = MeshNodes(pair, weight, nodes_on_both_scales(pair, weight.equal_declines(_SPACING))), pair.k(ends)
        return slopes[np.clip(outcome, 0, len(slopes) - 1)], nodes.gains(starts), nodes.tangents(k, k)[0]

    def cutoff(self, epsilon: float, end: float, negligible: float) -> tuple[float, float]:
        """Return a depth, and a bound of at most ``negligible`` on the integral of F from there to ``end``; at worst (end, 0)."""
        used = int(np.searchsorted(self._depths[:-1], end))
        if used == 0:
            return end, 0.0
        log_slope, gain, cost = (part[:used] for part in self._stretches)
        c = np.exp(np.minimum(epsilon + log_slope, MAX_LOG_C))[:, None]
        largest = np.maximum((gain - c * cost).max(axis=1), 0.0)
        beyond = np.cumsum((largest * np.diff(np.minimum(self._depths[: used + 1], end)))[::-1])[::-1]
        small = np.flatnonzero(beyond <= negligible)
        return (float(self._depths[small[0]]), float(beyond[small[0]])) if len(small) else (end, 0.0)
