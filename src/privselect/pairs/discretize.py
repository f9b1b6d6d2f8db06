"""Upper and lower pair from the masses that two distributions give to cells of the privacy loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LARGEST_LOSS = 700.0  # e^709 overflows; larger losses count as infinite in an upper pair, and as this one in a lower pair
_ULPS = 1e-15


def connect_the_dots(knots: Floats, cell_p: Floats, cell_q: Floats, atom_p: Floats | None = None) -> DominatingPair:
    r"""Return the smallest pair with atoms on ``knots`` that dominates the given one.

    Cell i of ``len(knots) + 1`` lies between knots i-1 and i (the outer two are unbounded) and has masses ``cell_p`` and
    ``cell_q``. ``atom_p`` is mass of P exactly on the knots. As a function of ``a = e^epsilon`` the hockey stick is convex, so its
    chord between two knots lies above it. The pair whose hockey stick is that chain of chords moves the P'-mass of a cell between
    a_0 < a_1: ``A = (P - a_0 Q)/(a_1 - a_0)`` to the upper knot and ``Q - A`` to the lower one. The unbounded cells use a_0 = 0 and
    a_1 = infinity.

    Holds when all knots are between -700 and 700, so e^knot is a float, and the masses have errors of a few units in the last
    place. ``A`` amplifies them by ``1/(a_1/a_0 - 1)``, but a change dA moves the hockey stick by only ``(a_1 - a_0) dA``: again a
    few units of the cell's mass.
    """
    ratio = np.exp(knots)
    # P/a and Q of a cell are close: comparing them keeps all numbers at the scale of Q.
    low, high = ratio[:-1], ratio[1:]
    inner_p, inner_q = cell_p[1:-1], cell_q[1:-1]
    with np.errstate(under="ignore"):
        up = np.clip((inner_p / low - inner_q) / np.expm1(np.diff(knots)), 0.0, inner_p / high)
        q = np.zeros_like(knots)
        q[1:] += up
        q[:-1] += np.maximum(inner_q - up, 0.0)
        bottom = min(cell_p[0] / ratio[0], cell_q[0])
        q[0] += bottom
        q[-1] += cell_q[-1]
        p = q * ratio
        if atom_p is not None:
            p, q = p + atom_p, q + atom_p / ratio
    p_only = max(cell_p[-1] - ratio[-1] * cell_q[-1], 0.0) + _ULPS * cell_p[-1]
    kept = (p > 0) & (q > 0)
    lost_p, lost_q = float(p[~kept].sum()), float(q[~kept].sum())  # one mass underflowed: the other counts as infinite loss
    return DominatingPair(p[kept], q[kept], p_only + lost_p, cell_q[0] - bottom + _ULPS * cell_q[0] + lost_q)


def merge_cells(cell_p: Floats, cell_q: Floats) -> DominatingPair:
    """Return the pair that reveals only the cell: a post-processing, so it is dominated; equal to the given one at every boundary."""
    kept = (cell_p > 0) & (cell_q > 0)
    if not kept.any():
        # No common mass that a float can hold: a loss of 700 either way is a lower bound.
        odds = np.exp(-LARGEST_LOSS)
        return DominatingPair(np.array([odds, 1.0]), np.array([1.0, odds]))
    p, q = cell_p[kept], cell_q[kept]
    # A mass that underflowed in only one distribution would look like an infinite loss: merge such a cell with its neighbour.
    p[0] += cell_p[~kept & (np.cumsum(kept) == 0)].sum()
    q[0] += cell_q[~kept & (np.cumsum(kept) == 0)].sum()
    p[-1] += cell_p[~kept & (np.cumsum(kept) > 0)].sum()
    q[-1] += cell_q[~kept & (np.cumsum(kept) > 0)].sum()
    q = np.maximum(q, p * np.exp(-LARGEST_LOSS))
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order])
