"""How much the integral of **Exact** can still collect further down: where to stop summing."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.exact.mesh_nodes import Nodes, both_scales

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs import DominatingPair
    from privselect.selection.exact.pgf_weight import Weight

    Floats = NDArray[np.float64]

LARGEST_LOG = 700.0  # keeps c a float; a smaller c only loosens
_SHALLOW = 0.02  # m*y below this: all relevant pieces hang near the top, where y hardly changes the weights
_STRETCH = 1.06  # from a depth to the next
_SPACING = 0.2  # of the nodes, in log w


class Tail:
    """Bounds on F over stretches [s, t] of y, for every x: ``F <= w(x+s) - c(s) w(g(x)+k(t))``, as w falls and c grows with y."""

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
        # A start that rounding may have put into the next outcome counts as the one before, of smaller k'.
        outcome = np.searchsorted(pair.high_nodes[0], starts * (1.0 - pair.relative_rounding), side="right") - 1
        nodes, k = Nodes(pair, weight, both_scales(pair, weight.decline(_SPACING))), pair.k(ends)
        return slopes[np.clip(outcome, 0, len(slopes) - 1)], nodes.gains(starts), nodes.tangents(k, k)[0]

    def cut(self, epsilon: float, end: float, negligible: float) -> tuple[float, float]:
        """A depth, and a bound of at most ``negligible`` on the integral of F from there to ``end``; at worst (end, 0)."""
        used = int(np.searchsorted(self._depths[:-1], end))
        if used == 0:
            return end, 0.0
        log_slope, gain, cost = (part[:used] for part in self._stretches)
        c = np.exp(np.minimum(epsilon + log_slope, LARGEST_LOG))[:, None]
        most = np.maximum((gain - c * cost).max(axis=1), 0.0)
        beyond = np.cumsum((most * np.diff(np.minimum(self._depths[: used + 1], end)))[::-1])[::-1]
        small = np.flatnonzero(beyond <= negligible)
        return (float(self._depths[small[0]]), float(beyond[small[0]])) if len(small) else (end, 0.0)
