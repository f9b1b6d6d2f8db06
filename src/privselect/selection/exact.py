"""**Exact**: the largest delta over all base mechanisms under a pair and all scores, from above and from below."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.selection.field import TOLERANCE, Field
from privselect.selection.staircase import Staircase

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.counts.base import Count
    from privselect.pairs import DominatingPair

    Floats = NDArray[np.float64]


class ExactUpper:
    r"""Upper bounds on the selection's hockey stick from a dominating pair.

    Claim, for epsilon >= 0:  ``delta(e) <= sup over nondecreasing x(.) of
    integral_0^1 (phi'(1-x-y) - e^e k'(y) phi'(1-g(x)-k(y)))_+ dy``, each piece of y bounded from above as in :mod:`.field`.
    Holds when the pair dominates the base mechanism. Label: **Exact** (upper).
    """

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE) -> None:
        self.field = Field(pair, count, tolerance=tolerance)

    def delta(self, epsilon: float) -> float:
        """An upper bound on delta at one epsilon >= 0."""
        field = self.field
        span = field.adapt(epsilon)
        if span.last == 0:
            return 0.0
        above = [field.above(rows) for rows in field.chunks(epsilon, span)]
        climb = _Climb()
        for part in above:
            climb.add(np.maximum(part.anywhere(), 0.0), part.rows.width)
        total = climb.total()
        long = sum(float(part.change() @ part.rows.width) for part in above)
        if long > 0.1 * field.tolerance * total:
            total = min(total, sum(float(part.mean() @ part.rows.width) for part in above))
        total += float(field.y[span.first]) + span.rest
        rounding = 1.0 + 4.0 * field.pair.relative_rounding
        return float(min(field.weight.scale * total * rounding, 1.0))


class ExactLower:
    """Lower bounds on the selection's hockey stick from a dominated pair: what one staircase order leaks.

    Label: **Exact** (lower). The order is chosen well, but any order gives a valid bound.
    """

    def __init__(self, pair: DominatingPair, count: Count, *, tolerance: float = TOLERANCE, mesh_of: ExactUpper | None = None) -> None:
        self.field = Field(pair, count, tolerance=tolerance)
        if mesh_of is not None:
            self.field.like(mesh_of.field)

    def staircase(self, epsilon: float) -> Staircase | None:
        """The order found for this epsilon >= 0; None where no outcome would count."""
        field = self.field
        span = field.adapt(epsilon)
        if span.last == 0:
            return None
        climb = _Climb(keep_path=True)
        for rows in field.chunks(epsilon, span):
            feasible = field.x <= 1.0 - rows.y1[:, None]
            climb.add(np.where(feasible, np.maximum(field.estimate(rows), 0.0), 0.0), rows.width)
        x = field.x[climb.path()]
        y = field.y[span.first : span.last + 1].copy()
        fits = x + y[1:] <= 1.0
        size = len(x) if fits.all() else int(np.argmin(fits))
        return Staircase(field.pair, x[:size], y[: size + 1])

    def delta(self, epsilon: float) -> float:
        """A lower bound on delta at one epsilon >= 0."""
        order = self.staircase(epsilon)
        return 0.0 if order is None else order.delta(epsilon, self.field.weight)


class _Climb:
    """The best nondecreasing way through a table of gains, row by row.

    While each row's best node is at or after the previous row's, the best way is simply the best node of each row; only when a
    row would go back is the recursion ``V <- cummax(V) + gain`` needed, over all rows. Bounds on a cell are the greater of its
    two nodes, so a way may step back by one node and still be a way through cells.
    """

    def __init__(self, *, keep_path: bool = False) -> None:
        self._keep_path = keep_path
        self._gains: list[Floats] = []
        self._widths: list[Floats] = []

    def add(self, gains: Floats, widths: Floats) -> None:
        self._gains.append(gains)
        self._widths.append(widths)

    def total(self) -> float:
        best = np.concatenate([gains.argmax(axis=1) for gains in self._gains])
        top = np.concatenate([gains.max(axis=1) for gains in self._gains])
        widths = np.concatenate(self._widths)
        if not self._goes_back(best[top > 0.0], slack=1):
            return float(top @ widths)
        value = np.zeros(self._gains[0].shape[1] - 1)
        for gains, width in zip(self._gains, self._widths, strict=True):
            cells = np.maximum(gains[:, :-1], gains[:, 1:]) * width[:, None]
            for row in cells:
                np.maximum.accumulate(value, out=value)
                value += row
        return float(value.max())

    def path(self) -> NDArray[np.intp]:
        best = np.concatenate([gains.argmax(axis=1) for gains in self._gains])
        top = np.concatenate([gains.max(axis=1) for gains in self._gains])
        if not self._goes_back(best[top > 0.0], slack=0):
            # Rows without gain may sit anywhere: keep the last useful place.
            return np.maximum.accumulate(np.where(top > 0.0, best, 0))
        gains = np.concatenate(self._gains) * np.concatenate(self._widths)[:, None]
        value = np.zeros(gains.shape[1])
        before = np.empty(gains.shape, dtype=np.float64)
        for i, row in enumerate(gains):
            np.maximum.accumulate(value, out=value)
            before[i] = value
            value = value + row
        place = int(np.argmax(value))
        way = np.empty(len(gains), dtype=np.intp)
        for i in range(len(gains) - 1, -1, -1):
            way[i] = place
            place = int(np.searchsorted(before[i], before[i][place], side="left"))
        return way

    @staticmethod
    def _goes_back(best: NDArray[np.intp], slack: int) -> bool:
        return bool((best < np.maximum.accumulate(best) - slack).any()) if len(best) else False
