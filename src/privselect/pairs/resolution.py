"""How fine a lattice must be for the asked accuracy, and how much fits into it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.cumulants import Cumulants

if TYPE_CHECKING:
    from collections.abc import Sequence

    from privselect.pairs.dominating import DominatingPair

    Pairs = Sequence[tuple[DominatingPair, int]]

_CELL = 0.013  # of a step's standard deviation, for an accuracy of 1e-4
_TAIL_CELL = 0.05  # of the reciprocal of the greatest tilt, for the same
_MOST_CELLS = 1 << 20
_DEEP = 69.0  # minus the log of the least delta that the accuracy is meant for
_HEAVY = 1e-2  # mass of a single outcome that should lie on the lattice


@dataclass(frozen=True, slots=True)
class Resolution:
    """``spacing`` of the lattice; ``widest`` cell of a step's own losses, far out; ``finest`` spacing that memory allows."""

    spacing: float
    widest: float
    finest: float

    def finer(self, factor: float) -> Resolution | None:
        """The same with smaller cells, by a whole number so that outcomes on the lattice stay there; None where it cannot be."""
        parts = min(math.ceil(1.0 / factor), int(self.spacing / self.finest))
        return replace(self, spacing=self.spacing / parts, widest=self.widest / parts) if parts > 1 else None


def resolution_for(parts: Pairs, accuracy: float, limits: tuple[float, float]) -> Resolution:
    """From rough pairs of the steps. Nothing but tightness rests on it.

    Splitting outcomes between multiples of h adds up to h^2/6 to the variance of each step's loss, and the pair from below takes
    about twice that away; epsilon moves by half as much, relative, as the variance. Far out, where a step's mass counts by e^(tilt
    loss), a cell must be small against 1/tilt.
    """
    floor, most = limits
    cumulants = Cumulants([(np.log(pair.q), pair.losses, times) for pair, times in parts])
    tilt, _ = cumulants.high_end(_DEEP)
    _, _, variances = cumulants.at(np.array([-1.0, 0.0, 1.0, 0.5 * (1.0 + tilt), tilt]))
    runs = sum(times for _, times in parts)
    finesse = math.sqrt(accuracy / 1e-4)
    spacing = _CELL * finesse * math.sqrt(max(float(variances.min()), 1e-24) / runs)
    width = min(cumulants.high_end(-math.log(floor))[1], most) - max(cumulants.low_end(-math.log(floor))[1], -most)
    finest = max(width / _MOST_CELLS, 1e-13)
    spacing = max(spacing, finest)
    return Resolution(_aligned(parts, spacing), _TAIL_CELL * finesse / tilt, finest)


def _aligned(parts: Pairs, spacing: float) -> float:
    """A little less than the spacing, such that a loss which a single outcome has with much mass is a multiple of it."""
    losses = [np.abs(pair.losses[(pair.p > _HEAVY) | (pair.q > _HEAVY)]) for pair, _ in parts]
    heavy = np.concatenate(losses)
    heavy = heavy[heavy >= spacing]
    return float(heavy.min() / math.ceil(heavy.min() / spacing * (1.0 - 1e-12))) if len(heavy) else spacing


def within_reach(parts: Pairs, most: float) -> Pairs:
    """The same or fewer runs, so that most losses stay below ``most``: what is told of fewer runs from below holds for all."""
    cumulants = Cumulants([(np.log(pair.q), pair.losses, times) for pair, times in parts if len(pair.q)])
    mean = float(cumulants.at(np.array([1.0]))[1][0])
    if mean <= 0.7 * most:
        return parts
    fewer = [(pair, int(times * 0.5 * most / mean)) for pair, times in parts]
    return [(pair, times) for pair, times in fewer if times] or [max(((pair, 1) for pair, _ in parts), key=lambda one: float(one[0].losses @ one[0].p))]
