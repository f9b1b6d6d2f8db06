"""One posterior sample of a ridge regression (OPS)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import smallest_epsilon_where
from privselect._util.validation import Range, parameter
from privselect.interval import Interval
from privselect.mechanisms.base import Mechanism, plain
from privselect.mechanisms.neighbours import ADD_REMOVE
from privselect.mechanisms.profile_knots import falling_knots
from privselect.pairs import Bracket, merge_cells, pair_from_curve
from privselect.regression.ops.ops_lower import row_cells
from privselect.regression.ops.worst_leverage import stays_under, worst_deltas
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_LEAST = 1e-60  # deltas below this are not told apart
_FALL, _FAR_FALL = 0.1, 2.0  # of log delta between the knots of the curve
_LARGEST = 700.0
_NARROW = 1e-9  # of an epsilon that is searched for


@register
@dataclass(frozen=True, slots=True)
class OPS(Mechanism):
    """A sample of ``N(th, (precision H)^-1)``, ``H = X'X + ridge I``, ``th = H^-1 X'y``: the worst row of all that keep two limits.

    ``leverage`` is the greatest ``x'H^-1 x`` and ``signal`` the greatest ``precision (y - x'th)^2`` of a row that is added, H and th being
    those without it. For rows no longer than 1 and targets within [-1, 1] these are at most ``1/ridge`` and ``precision (1 + ||th||)^2``.

    Claim: the hockey sticks of a row are closed forms of its leverage and signal; the greatest over both is that of the largest signal and
    of some leverage, found by cells that are bounded outward. Proof: docs/derivations/ops.md.

    Holds when both limits hold for the data without the row, whichever of two neighbours that is. Label: **Posterior sample**.
    """

    text_name = "ops"
    sensitivity = "rows no longer than 1, targets within [-1, 1]"

    leverage: float = parameter(Range(1e-100, 1e6, high_open=False), leaks="more")  # below, products leave the floats
    signal: float = parameter(Range(0.0, 1e12, low_open=True, high_open=False), leaks="more")

    @property
    def neighbours(self) -> str:
        """A row more or less."""
        return ADD_REMOVE

    def _make_brackets(self) -> tuple[Bracket, ...]:
        largest = self._end()
        knots = falling_knots(lambda eps: np.maximum(*self._uppers(eps)), largest, _FALL, _FAR_FALL)
        forward, backward = self._uppers(knots)
        upper = pair_from_curve(knots, forward, backward)
        lower = merge_cells(*row_cells(self.leverage, self.signal))
        return Bracket(upper, (lower,), "remove"), Bracket(upper.reverse, (lower.reverse,), "add")

    def _uppers(self, epsilon: Floats) -> tuple[Floats, Floats]:
        return worst_deltas(self.leverage, self.signal, epsilon, _LEAST).uppers

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        # Straight from the hockey sticks, without the chords of a discrete pair.
        found = Mechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001 - super() does not know a class with slots
        straight = np.array([self._least_epsilon(one) for one in delta.ravel().tolist()]).reshape(delta.shape)
        uppers = np.minimum(found.upper, straight)
        return Interval(plain(np.minimum(np.asarray(found.lower), uppers)), plain(uppers))

    def _least_epsilon(self, delta: float) -> float:
        def fits(epsilon: float) -> bool:
            return stays_under(self.leverage, self.signal, np.array([epsilon]), np.array([delta]))

        return smallest_epsilon_where(fits, largest=_LARGEST, close=_NARROW)

    def _end(self) -> float:
        """An epsilon at which hardly anything is left of either hockey stick."""
        end = 1.0
        while end < _LARGEST and max(float(side[0]) for side in self._uppers(np.array([end]))) > _LEAST:
            end *= 2.0
        return min(end, _LARGEST)
