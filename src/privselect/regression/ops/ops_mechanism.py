"""Mechanism of one posterior sample of a ridge regression (OPS)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import smallest_epsilon_where
from privselect._util.validation import Range, parameter
from privselect.interval import Interval
from privselect.mechanisms.base import Mechanism, scalar_or_array
from privselect.mechanisms.gaussian import normal_cells
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.pairs import Bracket, merge_cells, pair_from_profile
from privselect.pairs.from_profile import place_knots
from privselect.regression.ops.worst_leverage import is_under_limits, worst_deltas
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_SMALLEST_DELTA = 1e-60  # smaller deltas are not computed accurately
_STEP, _TAIL_STEP = 0.1, 2.0  # in log delta, between knots of the profile
_LARGEST_EPSILON = 700.0
_RELATIVE_TOLERANCE = 1e-9  # of an epsilon found by search
_RANGE = 30.0  # standard deviations covered by the cells of a lower bound
_CELL_WIDTH = 0.01
_MOST_CELLS = 100_000  # with more cells than this the distributions hardly overlap, and wider cells suffice


@register
@dataclass(frozen=True, slots=True)
class OPS(Mechanism):
    """A sample of ``N(th, (precision H)^-1)``, with ``H = X'X + ridge I`` and ``th = H^-1 X'y``, for the worst row within two limits.

    ``leverage`` is the largest ``x'H^-1 x`` and ``signal`` the largest ``precision (y - x'th)^2`` of an added row, with H and th those of
    the data without the row. For rows of norm at most 1 and targets in [-1, 1] these are at most ``1/ridge`` and
    ``precision (1 + ||th||)^2``.

    Claim: the hockey-stick divergences for a row are closed forms of its leverage and signal. The maximum over both is attained at the
    largest signal and at some leverage, which is found by cells with outward bounds. Proof: docs/derivations/ops.md.

    Holds when both limits hold for the smaller of the two neighbouring data sets. Label: **Posterior sample**.
    """

    text_name = "ops"
    sensitivity = "rows no longer than 1, targets within [-1, 1]"

    leverage: float = parameter(Range(1e-100, 1e6, high_open=False), leaks="more")  # below 1e-100 products underflow
    signal: float = parameter(Range(0.0, 1e12, low_open=True, high_open=False), leaks="more")

    @property
    def neighbours(self) -> str:
        """One row added or removed."""
        return ADD_REMOVE

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        largest = self._largest_relevant_epsilon()
        knots = place_knots(lambda eps: np.maximum(*self._upper_deltas(eps)), largest, _STEP, _TAIL_STEP)
        forward, backward = self._upper_deltas(knots)
        upper = pair_from_profile(knots, forward, backward)
        lower = merge_cells(*loss_cells(self.leverage, self.signal))
        return Bracket(upper, (lower,), "remove"), Bracket(upper.reverse, (lower.reverse,), "add")

    def _upper_deltas(self, epsilon: Floats) -> tuple[Floats, Floats]:
        return worst_deltas(self.leverage, self.signal, epsilon, _SMALLEST_DELTA).uppers

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        # Also search the hockey-stick divergences directly: the chords of a discrete pair are looser.
        found = Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001 - super() fails in dataclasses with slots
        direct = np.array([self._smallest_epsilon(one) for one in delta.ravel().tolist()]).reshape(delta.shape)
        uppers = np.minimum(found.upper, direct)
        return Interval(scalar_or_array(np.minimum(np.asarray(found.lower), uppers)), scalar_or_array(uppers))

    def _smallest_epsilon(self, delta: float) -> float:
        def holds(epsilon: float) -> bool:
            return is_under_limits(self.leverage, self.signal, np.array([epsilon]), np.array([delta]))

        return smallest_epsilon_where(holds, largest=_LARGEST_EPSILON, close=_RELATIVE_TOLERANCE)

    def _largest_relevant_epsilon(self) -> float:
        """Return an epsilon at which both deltas are at most ``_SMALLEST_DELTA``, or the largest epsilon."""
        epsilon = 1.0
        while epsilon < _LARGEST_EPSILON and max(float(side[0]) for side in self._upper_deltas(np.array([epsilon]))) > _SMALLEST_DELTA:
            epsilon *= 2.0
        return min(epsilon, _LARGEST_EPSILON)


def loss_cells(leverage: float, signal: float) -> tuple[Floats, Floats]:
    """Return the masses of cells of |V|, with and without a row of exactly this leverage and signal.

    All points of a cell have nearly one privacy loss. Cell edges are measured from nu, as ``x = v - nu``. With the row they are
    ``s v - nu/s = s x + sqrt(signal leverage)/s``, which keeps all digits if nu is large.
    """
    nu, scale = math.sqrt(signal / leverage), math.sqrt(1.0 + leverage)
    shift = math.sqrt(signal * leverage) / scale
    low, high = max(-nu, -_RANGE - shift), _RANGE
    x = np.linspace(low, high, min(int((high - low) / _CELL_WIDTH) + 2, _MOST_CELLS))
    masses = [_folded_masses(scale * x + shift, 2.0 * nu / scale), _folded_masses(x, 2.0 * nu)]
    return masses[0], masses[1]


def _folded_masses(right: Floats, gap: float) -> Floats:
    """Return normal masses between neighbouring edges ``right`` plus those between their mirror images ``-(right + gap)``."""
    above, below = normal_cells(right), normal_cells(-(right + gap)[::-1])[::-1]
    # The innermost cell lies between an edge and its mirror image.
    inner = max(float(above[0] - below[1:].sum()), 0.0)
    return np.concatenate([[inner], above[1:] + below[1:]])
