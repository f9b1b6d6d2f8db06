"""Which tilts serve which losses, and what they prove about the tails."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.pairs.cumulants import Cumulants

    Floats = NDArray[np.float64]

_MOVE = 1.5  # standard deviations that the mean may move from one tabulated tilt to the next
_ROUNDS, _MOST, _ROOM = 40, 1000, 16  # of refining the table; tilts in it; tilts beyond either end
WRAPPED = 46.0  # minus the log of the tilted mass that may wrap around


@dataclass(frozen=True, slots=True, eq=False)
class Tilts:
    """The log K of the moment generating function, with mean and deviation of the tilted law, at ascending tilts."""

    tilts: Floats
    value: Floats
    mean: Floats
    deviation: Floats

    @classmethod
    def of(cls, cumulants: Cumulants, low: tuple[float, float], high: tuple[float, float]) -> Tilts:
        """From the tilts and losses of the two ends: so many tilts that the mean moves by no more than a few deviations between two."""
        (low_tilt, low_loss), (high_tilt, high_loss) = low, high
        tilts = np.concatenate([np.linspace(low_tilt, 0.0, 9), [0.5], np.linspace(1.0, high_tilt, 9)])
        grid = cls._at(cumulants, tilts)
        for _ in range(_ROUNDS):
            between = (grid.mean[1:] > low_loss) & (grid.mean[:-1] < high_loss)
            wide = np.flatnonzero((grid.moves() > _MOVE) & between)
            if len(wide) == 0 or len(grid.tilts) + len(wide) > _MOST:
                break
            grid = grid.with_more(cls._at(cumulants, 0.5 * (grid.tilts[wide] + grid.tilts[wide + 1])))
        # Room at both ends for the bounds on what wraps around.
        room = np.minimum(10.0 / np.maximum(grid.deviation[[0, -1]], 1e-150), high_tilt - low_tilt)
        steps = np.arange(1, _ROOM + 1) / _ROOM
        return grid.with_more(cls._at(cumulants, np.concatenate([low_tilt - room[0] * steps, high_tilt + room[1] * steps])))

    @classmethod
    def _at(cls, cumulants: Cumulants, tilts: Floats) -> Tilts:
        value, mean, variance = cumulants.at(tilts)
        return cls(tilts, value, mean, np.sqrt(np.maximum(variance, 0.0)))

    def with_more(self, more: Tilts) -> Tilts:
        """Both, sorted, each tilt once."""
        _, order = np.unique(np.concatenate([self.tilts, more.tilts]), return_index=True)
        columns = ((self.tilts, more.tilts), (self.value, more.value), (self.mean, more.mean), (self.deviation, more.deviation))
        return Tilts(*(np.concatenate(column)[order] for column in columns))

    def moves(self) -> Floats:
        """By how many deviations the mean moves from each tilt to the next."""
        return np.diff(self.mean) / np.maximum(0.5 * (self.deviation[1:] + self.deviation[:-1]), 1e-300)

    def mass_above(self, loss: float, log_count: float) -> float:
        """A bound on the first law's mass of losses above: ``exp(K(t) - (t-1) loss)`` for any t > 1."""
        exponents = (log_count + self.value - (self.tilts - 1.0) * loss)[self.tilts > 1.0]
        return float(np.exp(min(exponents.min(initial=0.0), 0.0)))

    def mass_below(self, loss: float, log_count: float) -> float:
        """A bound on the second law's mass of losses below: ``exp(K(t) - t loss)`` for any t < 0."""
        exponents = (log_count + self.value - self.tilts * loss)[self.tilts < 0.0]
        return float(np.exp(min(exponents.min(initial=0.0), 0.0)))

    def reach(self, tilt: float, log_scale: float) -> tuple[float, float]:
        """Losses below and above which the tilted law has no more than e^-46 each."""
        above, below = self.tilts > tilt, self.tilts < tilt
        highest = ((self.value[above] - log_scale + WRAPPED) / (self.tilts[above] - tilt)).min(initial=math.inf)
        lowest = ((log_scale - self.value[below] - WRAPPED) / (tilt - self.tilts[below])).max(initial=-math.inf)
        return float(lowest), float(highest)

    def windows(self, low: float, high: float, cost: float) -> tuple[Floats, Floats]:
        """Tilts that serve the losses from ``low`` to ``high``, and the losses at which one hands over to the next.

        Rounding under a tilt t costs, at a loss x, in proportion to ``exp(K(t) - t x)``. Two tilts cost the same where their lines
        meet: there one hands over to the other, and the next tilt is the furthest that costs at most ``e^cost`` times the least there.
        """
        middle = slice(_ROOM // 2, len(self.tilts) - _ROOM // 2)  # each needs some beyond it, for its reach
        inside = np.flatnonzero((self.mean[middle] > low) & (self.mean[middle] < high)) + middle.start
        if len(inside) == 0:
            inside = np.array([middle.start + int(np.argmin(np.abs(self.mean[middle] - low)))])
        last = int(inside[-1])
        chosen = [self._furthest(np.arange(inside[0], last + 1), np.full(last + 1 - inside[0], low), cost)]
        hand_over = []
        while chosen[-1] < last and self._excess(np.array(chosen[-1:]), np.array([high]))[0] > cost:
            here, later = chosen[-1], np.arange(chosen[-1] + 1, last + 1)
            meet = (self.value[later] - self.value[here]) / (self.tilts[later] - self.tilts[here])
            chosen.append(self._furthest(later, meet, cost))
            hand_over.append(float(meet[chosen[-1] - later[0]]))
        return self.tilts[chosen], np.array(hand_over)

    def _furthest(self, places: NDArray[np.int64], losses: Floats, cost: float) -> int:
        """The last of these tilts before the first that costs too much at its loss; the first one at least."""
        dear = np.flatnonzero(self._excess(places, losses) > cost)
        return int(places[max(int(dear[0]) - 1, 0)] if len(dear) else places[-1])

    def _excess(self, places: NDArray[np.int64], losses: Floats) -> Floats:
        """By how much the log of what a tilt costs at its loss is above the least of all tilts."""
        least = (self.value[:, None] - self.tilts[:, None] * losses).min(axis=0)
        return np.asarray(self.value[places] - self.tilts[places] * losses - least)
