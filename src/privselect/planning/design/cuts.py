"""What one score order leaks, as a linear function of the law of K: the cuts of **Design**."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.engine import ExactLower

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]

_MARGIN = 2e-11  # of each sum, for exp, log1p and thousands of additions, many times over
_TINY = 1e-300  # a float below this loses digits, and then all of them
_ENTRIES = 1 << 20  # of the (k, piece) matrix held at a time: 8 MB


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The counted pieces of a score order: losses from depth ``y0`` to ``y1``, with the mass ``x`` of lowest losses ranked above each.

    ``x`` does not fall, the pieces follow one another, and ``x + y1 <= 1``: so it is an order of any pair, not only of the one for which
    it was found.
    """

    x: Floats
    y0: Floats
    y1: Floats

    def coefficients(self, pair: DominatingPair, epsilon: float, cap: int) -> Floats:
        r"""``c_1, ..., c_cap``, rounded down, with ``A(S) - e^epsilon A'(S) = sum_k P(K=k) c_k`` for every law of K; ``c_0 = 0``.

        A piece from mass u to u+d above it under P, from v to v+e under P', adds to c_k

            (1-u)^k - (1-u-d)^k - e^epsilon [(1-v)^k - (1-v-e)^k].
        """
        k0, k1 = pair.k(self.y0), pair.k(self.y1)
        # Known well: sums of positive masses, each to a share of itself. A width is a difference of two of them.
        sums, off = pair.relative_rounding - 2.0 * pair.rounding, pair.relative_rounding + 1e-15
        width = np.maximum(self.y1 - self.y0 - sums * self.y1, 0.0)
        gain = _chances((self.x + self.y0) * (1.0 + off), width, cap, least=0.0)
        cost = _chances(np.minimum(pair.g(self.x) + k0, 1.0) * (1.0 - off), k1 - k0 + sums * k1, cap, least=_TINY)
        known = 4.0 * pair.relative_rounding + _MARGIN
        return np.asarray(gain * (1.0 - known) - math.exp(epsilon) * cost * (1.0 + known))


def worst_order(pair: DominatingPair, count: Count, epsilon: float, tolerance: float) -> Order | None:
    """A score order of the pair that leaks about the most under this law of K; None where no outcome would count."""
    engine = ExactLower(pair, count, tolerance=tolerance)
    stairs = engine.staircase(epsilon)
    if stairs is None:
        return None
    x, y0, y1, at = stairs.x, stairs.y[:-1], stairs.y[1:], engine.field.weight.at
    g, k0, k1 = pair.g(x), pair.k(y0), pair.k(y1)
    cost = (k1 - k0) * 0.5 * (at(np.minimum(g + k0, 1.0)) + at(np.minimum(g + k1, 1.0)))
    counted = (y1 - y0) * at(x + 0.5 * (y0 + y1)) > math.exp(epsilon) * cost
    if not counted.any():
        return None
    return _joined(x[counted], y0[counted], y1[counted])


def _joined(x: Floats, y0: Floats, y1: Floats) -> Order:
    """Neighbouring pieces with the same mass above them are one: their shares add up, and there are far fewer."""
    starts = np.flatnonzero(np.concatenate([[True], (x[1:] != x[:-1]) | (y0[1:] != y1[:-1])]))
    ends = np.append(starts[1:] - 1, len(x) - 1)
    return Order(x[starts], y0[starts], y1[ends])


def _chances(u: Floats, width: Floats, cap: int, least: float) -> Floats:
    """``sum over pieces of (1-u)^k - (1-u-width)^k`` for k from 1 to cap, each at least ``least``; nothing lies beyond u = 1.

    Written as ``(1-u)^k (1 - (1 - width/(1-u))^k)``, no digit of a narrow piece is lost.
    """
    room = np.maximum(1.0 - u, _TINY)
    with np.errstate(divide="ignore"):
        outside = np.where(u < 1.0, np.log1p(-np.minimum(u, 1.0)), -np.inf)
        inside = np.log1p(-np.minimum(width / room, 1.0))
    k = np.arange(1.0, cap + 1.0)[:, None]
    total, size = np.zeros(cap), max(_ENTRIES // cap, 1)
    for first in range(0, len(u), size):
        part = slice(first, first + size)
        total += np.maximum(np.exp(k * outside[part]) * -np.expm1(k * inside[part]), least).sum(axis=1)
    return total
