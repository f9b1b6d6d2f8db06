"""How fine a lattice must be for the asked accuracy, and how much fits into it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.cumulants import Cumulants
from privselect.pairs.rare_large_losses import are_hardly_rare, large_loss, split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]
    Pairs = Sequence[tuple[DominatingPair, int]]

_CELL = 0.012  # of a step's standard deviation, for an accuracy of 1e-4
_TAIL_CELL = 0.1  # of the reciprocal of the greatest tilt, for the same
_FINE = 0.2  # of the accuracy, for the knots of the result
_CELLS, _MOST_CELLS = 1 << 20, 1 << 22  # of the lattice, for an accuracy of 1e-4 and at all
_DEEP = 69.0  # minus the log of the least delta that the accuracy is meant for
_COARSE = 0.3  # of a sum's deviation times its greatest tilt, for an accuracy of 1e-4
_OF_LARGE = 0.05  # of a large loss, for the same: the sum of the usual ones is a quarter of that wide
_MOST_COARSE = 1 << 17
_FINER = 4  # times, at most, in one go
_HEAVY = 1e-2  # mass of a single outcome that should lie on the lattice


@dataclass(frozen=True, slots=True)
class Resolution:
    """How finely to look.

    ``spacing`` of the lattice; ``growth`` of a step's own cells, relative to their loss, up to the ``widest``; ``finest`` spacing that
    memory allows; ``large``, the size from which losses are rare and composed apart, and ``coarse``, the spacing for the sums that have
    one; ``fine``, what the knots of the result may add to epsilon, relative.
    """

    spacing: float
    growth: float
    widest: float
    finest: float
    large: float
    coarse: float
    fine: float

    def finer(self, factor: float) -> Resolution | None:
        """The same with smaller cells, by a whole number so that outcomes on the lattice stay there; None where it cannot be."""
        parts = min(math.ceil(1.0 / factor), int(self.spacing / self.finest), _FINER)
        if parts < 2:
            return None
        return replace(
            self,
            spacing=self.spacing / parts,
            growth=self.growth / parts,
            widest=self.widest / parts,
            coarse=self.coarse / parts,
            fine=self.fine / parts,
        )


def resolution_for(parts: Pairs, accuracy: float, limits: tuple[float, float]) -> Resolution:
    """From rough pairs of the steps. Nothing but tightness rests on it.

    Splitting outcomes between multiples of h adds up to h^2/6 to the variance of each step's loss, and the pair from below takes
    about twice that away; epsilon moves by half as much, relative, as the variance. Far out, where a step's mass counts by e^(tilt
    loss), a cell must be small against 1/tilt.
    """
    floor, most = limits
    cumulants = Cumulants.of(parts)
    runs, finesse = sum(times for _, times in parts), math.sqrt(accuracy / 1e-4)
    cells = min(max(_CELLS * 1e-4 / accuracy, _CELLS), _MOST_CELLS)
    tilt, _ = cumulants.high_end(_DEEP)

    def fit(law: Cumulants) -> tuple[float, float]:
        """The spacing that is wanted, and the finest that memory allows."""
        _, _, variances = law.at(np.array([-1.0, 0.0, 1.0, 0.5 * (1.0 + tilt), tilt]))
        depth = -math.log(floor)
        width = min(law.high_end(depth)[1], most) - max(law.low_end(depth)[1], -most)
        return _CELL * finesse * math.sqrt(max(float(variances.min()), 1e-24) / runs), max(width / cells, 1e-13)

    wanted, finest = fit(cumulants)
    coarse = finest * cells / _MOST_COARSE
    large = large_loss(parts, floor)
    if large < math.inf and finest <= wanted and are_hardly_rare(parts, large):
        large = math.inf
    if large < math.inf:
        wanted, finest = fit(Cumulants.of([(split(pair, large).usual, times) for pair, times in parts]))
    spacing = _aligned(parts, max(wanted, finest))
    # Sums with a large loss are few, and their tilts small: what the lattice adds to their variance matters less.
    coarse = max(min(_COARSE * finesse / math.sqrt(runs) / tilt, _OF_LARGE * finesse * large), coarse, spacing)
    coarse = spacing * int(coarse / spacing)
    return Resolution(spacing, _CELL * finesse, _TAIL_CELL * finesse / tilt, finest, large, coarse, _FINE * accuracy)


def _aligned(parts: Pairs, spacing: float) -> float:
    """A little less than the spacing, such that a loss which a single outcome has with much mass is a multiple of it."""
    losses = [np.abs(pair.losses[(pair.p > _HEAVY) | (pair.q > _HEAVY)]) for pair, _ in parts]
    heavy = np.concatenate(losses)
    heavy = heavy[heavy >= spacing]
    return float(heavy.min() / math.ceil(heavy.min() / spacing * (1.0 - 1e-12))) if len(heavy) else spacing


def within_reach(parts: Pairs, most: float) -> Pairs:
    """The same or fewer runs, so that most losses stay below ``most``: what is told of fewer runs from below holds for all."""
    cumulants = Cumulants.of(parts)
    mean = float(cumulants.at(np.array([1.0]))[1][0])
    if mean <= 0.7 * most:
        return parts
    fewer = [(pair, int(times * 0.5 * most / mean)) for pair, times in parts]
    worst = max(parts, key=lambda part: float(part[0].losses @ part[0].p))
    return [(pair, times) for pair, times in fewer if times] or [(worst[0], 1)]
