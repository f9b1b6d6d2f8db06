"""From the masses that two laws give to cells of the loss, a pair above and a pair below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.dominating_pair import DominatingPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LARGEST_LOSS = 700.0  # e^709 overflows; a loss beyond this counts as infinite above, as this one below
_ULPS = 1e-15


def connect_the_dots(knots: Floats, cell_p: Floats, cell_q: Floats, atom_p: Floats | None = None) -> DominatingPair:
    r"""The least pair with atoms on ``knots`` that dominates the given one.

    Cell i of ``len(knots) + 1`` lies between knots i-1 and i (the outer two are unbounded) and holds masses
    ``cell_p``, ``cell_q``; ``atom_p`` is mass of the first law exactly on the knots. Between knots, in the variable
    ``a = e^epsilon``, the hockey stick is convex, so its chord lies above it; the pair whose hockey stick is that chain of
    chords moves, from a cell between a_0 < a_1, the second law's mass ``A = (P - a_0 Q)/(a_1 - a_0)`` to the upper knot
    and ``Q - A`` to the lower one. The unbounded cells use a_0 = 0 and a_1 = infinity.

    Holds when all knots are between -700 and 700, where e^knot is a float, and the masses are right to a few units in the last
    place: ``A`` loses ``1/(a_1/a_0 - 1)`` of that, but a change dA moves the hockey stick by ``(a_1 - a_0) dA`` only, which is
    again a few units of the cell's mass.
    """
    ratio = np.exp(knots)
    # P/a and Q of a cell are near each other: comparing them keeps everything at the scale of Q.
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
    lost_p, lost_q = float(p[~kept].sum()), float(q[~kept].sum())  # one of the two masses underflowed: outward
    return DominatingPair(p[kept], q[kept], p_only + lost_p, cell_q[0] - bottom + _ULPS * cell_q[0] + lost_q)


def merge_cells(cell_p: Floats, cell_q: Floats) -> DominatingPair:
    """The pair that sees only the cell: a post-processing, so it is dominated, and equal to the given one at every cell boundary."""
    kept = (cell_p > 0) & (cell_q > 0)
    if not kept.any():
        # Nothing in common that a float can hold: odds of e^700 either way are still less than that.
        odds = np.exp(-LARGEST_LOSS)
        return DominatingPair(np.array([odds, 1.0]), np.array([1.0, odds]))
    p, q = cell_p[kept], cell_q[kept]
    # A mass that underflowed in one law only would look like an infinite loss. Such a cell joins its neighbour.
    p[0] += cell_p[~kept & (np.cumsum(kept) == 0)].sum()
    q[0] += cell_q[~kept & (np.cumsum(kept) == 0)].sum()
    p[-1] += cell_p[~kept & (np.cumsum(kept) > 0)].sum()
    q[-1] += cell_q[~kept & (np.cumsum(kept) > 0)].sum()
    q = np.maximum(q, p * np.exp(-LARGEST_LOSS))
    order = np.argsort(np.log(p) - np.log(q), kind="stable")
    return DominatingPair(p[order], q[order])
