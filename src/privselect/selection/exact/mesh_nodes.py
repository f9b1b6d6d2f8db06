"""Masses x that may be ranked above the counted outcomes, and the cells between them: one axis of the mesh of **Exact**."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs import DominatingPair
    from privselect.selection.exact.pgf_weight import Weight

    Floats = NDArray[np.float64]


class Nodes:
    """Ascending places x with g(x), and tangents of ``w(g(x) + k)`` in the cells between them."""

    def __init__(self, pair: DominatingPair, weight: Weight, x: Floats) -> None:
        self._weight = weight
        self.x = np.unique(x)
        self.g = pair.g(self.x)
        middle = 0.5 * (self.x[1:] + self.x[:-1])
        self._g_middle = pair.g(middle)
        outcome = np.searchsorted(pair.low_nodes[0], middle, side="right") - 1
        # g is below its tangent: at the cell's right end, this far above g_middle. Past the last outcome it is flat.
        self._half_rise = 0.5 * np.append(np.exp(-pair.losses), 0.0)[outcome] * np.diff(self.x)

    def gains(self, y: Floats) -> Floats:
        """Upper bounds on w(x + y): a row for each y, a column for each node."""
        return self._weight.above(self.x + y[:, None])

    def tangents(self, k0: Floats, k1: Floats) -> tuple[Floats, Floats]:
        """Lower bounds on w(g(x) + k) at the nodes, for k at either end of [k0, k1], that are concave in between."""
        weight, half = self._weight, self._half_rise
        reach = 0.5 * (k1 - k0)[:, None]
        u = np.minimum(self._g_middle + 0.5 * (k0 + k1)[:, None], 1.0)
        value = weight.below(u)
        flat, steep = weight.slopes(u, value)
        slack = weight.argument_rounding * u

        # At the cell's left and right end, for the lower and the upper k: a tangent falls along both.
        corners = [value - np.where(d < 0.0, flat, steep) * d for d in (r + slack + s for s in (-reach, reach) for r in (-half, half))]
        if (dips := corners[3] < 0.0).any():
            # A tangent that dips below 0 says little, and must not be clipped: it would no longer be concave. The constant at
            # the far corner is a lower bound of the whole cell too.
            far = weight.below(np.minimum(self.g[1:] + k1[:, None], 1.0))
            corners = [np.where(dips, far, corner) for corner in corners]

        def at_nodes(left: Floats, right: Floats) -> Floats:
            nodes = np.empty((len(k0), len(self.x)))
            nodes[:, 0], nodes[:, -1] = left[:, 0], right[:, -1]
            np.minimum(left[:, 1:], right[:, :-1], out=nodes[:, 1:-1])
            return nodes

        return at_nodes(*corners[:2]), at_nodes(*corners[2:])


def both_scales(pair: DominatingPair, places: Floats) -> Floats:
    """Places in x, and those whose g(x) is one of them: the weights of gain and cost each change on their own scale."""
    x, g = pair.low_nodes
    return np.concatenate([places, np.interp(places, g, x)])
