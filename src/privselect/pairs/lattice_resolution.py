"""Choice of the lattice spacing for a requested accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from privselect.pairs.cumulants import Cumulants
from privselect.pairs.rare_large_losses import are_large_losses_common, large_loss_threshold, split_pair

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from privselect.pairs.dominating_pair import DominatingPair

    Floats = NDArray[np.float64]
    Pairs = Sequence[tuple[DominatingPair, int]]

_CELL = 0.012  # spacing in standard deviations of a step, for an accuracy of 1e-4
_TAIL_CELL = 0.1  # widest cell times the largest tilt, for an accuracy of 1e-4
_KNOT_SHARE = 0.2  # share of the accuracy for the knots of the result
_TYPICAL_CELLS, _MAX_CELLS = 1 << 20, 1 << 22  # cells of the lattice: for an accuracy of 1e-4, and at most
_DEEPEST_LOG_DELTA = 69.0  # minus the log of the smallest delta for which the accuracy is meant
_COARSE_CELL = 0.3  # coarse spacing times largest tilt and root of the runs, for an accuracy of 1e-4
_LARGE_LOSS_CELL = 0.05  # coarse spacing over the large-loss threshold, for an accuracy of 1e-4
_MAX_COARSE_CELLS = 1 << 17
_MAX_REFINEMENT = 4  # largest factor of one refinement
_HEAVY_MASS = 1e-2  # an outcome with this mass should lie on the lattice


@dataclass(frozen=True, slots=True)
class Resolution:
    """Resolution of a composition.

    - ``spacing``: of the lattice.
    - ``cell_growth``: width of a step's own cells relative to their loss, up to ``widest_cell``.
    - ``finest_spacing``: the finest that memory allows.
    - ``large_loss``: losses above it are rare and composed separately. ``coarse_spacing``: for the sums that contain one.
    - ``knot_tolerance``: relative error of epsilon from the knots of the result.
    """

    spacing: float
    cell_growth: float
    widest_cell: float
    finest_spacing: float
    large_loss: float
    coarse_spacing: float
    knot_tolerance: float

    def finer(self, factor: float) -> Resolution | None:
        """Return a resolution with an integer fraction of the spacing, so outcomes stay on the lattice; None if memory is too small."""
        parts = min(math.ceil(1.0 / factor), int(self.spacing / self.finest_spacing), _MAX_REFINEMENT)
        if parts < 2:
            return None
        return replace(
            self,
            spacing=self.spacing / parts,
            cell_growth=self.cell_growth / parts,
            widest_cell=self.widest_cell / parts,
            coarse_spacing=self.coarse_spacing / parts,
            knot_tolerance=self.knot_tolerance / parts,
        )


def resolution_for(parts: Pairs, accuracy: float, limits: tuple[float, float]) -> Resolution:
    """Choose the resolution from rough pairs of the steps. It affects only the tightness of the bounds, not their validity.

    Splitting outcomes between multiples of h adds up to h^2/6 to the variance of each step's loss, and the lower pair loses about
    twice that. The relative change of epsilon is half that of the variance. In the tails a step's mass is weighted by
    e^(tilt loss), so a cell must be small compared with 1/tilt.
    """
    floor, most = limits
    cumulants = Cumulants.of(parts)
    runs, finesse = sum(times for _, times in parts), math.sqrt(accuracy / 1e-4)
    cells = min(max(_TYPICAL_CELLS * 1e-4 / accuracy, _TYPICAL_CELLS), _MAX_CELLS)
    tilt, _ = cumulants.high_end(_DEEPEST_LOG_DELTA)

    def fit(sums: Cumulants) -> tuple[float, float]:
        """Return the desired spacing, and the finest that memory allows."""
        _, _, variances = sums.at(np.array([-1.0, 0.0, 1.0, 0.5 * (1.0 + tilt), tilt]))
        depth = -math.log(floor)
        width = min(sums.high_end(depth)[1], most) - max(sums.low_end(depth)[1], -most)
        return _CELL * finesse * math.sqrt(max(float(variances.min()), 1e-24) / runs), max(width / cells, 1e-13)

    desired, finest = fit(cumulants)
    coarse = finest * cells / _MAX_COARSE_CELLS
    large = large_loss_threshold(parts, floor)
    if large < math.inf and finest <= desired and are_large_losses_common(parts, large):
        large = math.inf
    if large < math.inf:
        desired, finest = fit(Cumulants.of([(split_pair(pair, large).usual, times) for pair, times in parts]))
    spacing = _align_to_heavy_loss(parts, max(desired, finest))
    # Sums with a large loss are rare and have small tilts, so the lattice's effect on their variance matters less.
    coarse = max(min(_COARSE_CELL * finesse / math.sqrt(runs) / tilt, _LARGE_LOSS_CELL * finesse * large), coarse, spacing)
    coarse = spacing * int(coarse / spacing)
    return Resolution(spacing, _CELL * finesse, _TAIL_CELL * finesse / tilt, finest, large, coarse, _KNOT_SHARE * accuracy)


def _align_to_heavy_loss(parts: Pairs, spacing: float) -> float:
    """Return a slightly smaller spacing of which the smallest loss with a heavy outcome is a multiple."""
    losses = [np.abs(pair.losses[(pair.p > _HEAVY_MASS) | (pair.q > _HEAVY_MASS)]) for pair, _ in parts]
    heavy = np.concatenate(losses)
    heavy = heavy[heavy >= spacing]
    return float(heavy.min() / math.ceil(heavy.min() / spacing * (1.0 - 1e-12))) if len(heavy) else spacing


def limit_runs(parts: Pairs, most: float) -> Pairs:
    """Return the same or fewer runs, with most losses below ``most``: a lower bound for fewer runs holds for all of them."""
    cumulants = Cumulants.of(parts)
    mean = float(cumulants.at(np.array([1.0]))[1][0])
    if mean <= 0.7 * most:
        return parts
    fewer = [(pair, int(times * 0.5 * most / mean)) for pair, times in parts]
    worst = max(parts, key=lambda part: float(part[0].losses @ part[0].p))
    return [(pair, times) for pair, times in fewer if times] or [(worst[0], 1)]
