"""Log-concave noise on scores, given by its density and distribution function."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, NoiseAccounting, accounting_of
from privselect.noisy_max.log_concave import LogConcave, evaluate, quantile, tail_length
from privselect.pairs import Bracket, DominatingPair, connect_the_dots, merge_cells
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.dominating_pair import renyi_of_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_ROUNDING = 4e-9  # of losses and of masses: the functions must have nine digits
_LOST = 1e-15  # absolute error of 1 - distribution
_SAME_LOSS = 1e-9  # losses closer than this form one atom
_CORE_CELLS = 4000  # between the 1e-6 and the 1 - 1e-6 quantile
_TAIL_CELLS = 1000  # on either side beyond


@accounting_of.register(LogConcave)
@dataclass(frozen=True, slots=True)
class LogConcaveAccounting(NoiseAccounting):
    """Accounting of noise whose loss ``log f(x - gap) - log f(x)`` does not decrease with x, because log f is concave."""

    noise: LogConcave
    relative_error = 1e-9
    absolute_error = _LOST  # also covers the unchecked lower tail of the distribution function

    def shift_bracket(self, gap: int) -> Bracket:
        """Return the bracket: cells of x are cells of the loss, and cells of equal loss are atoms."""
        return _shift_bracket(self, gap)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return the divergence of the upper pair: infinite if the loss is unbounded."""
        return renyi_of_pair(self.shift_bracket(gap).upper, alpha)

    def survival(self, x: Floats) -> Floats:
        """Return the survival function, as given or from the distribution function."""
        if self.noise.survival is None:
            return np.maximum(1.0 - self.cdf(x), 0.0)
        return evaluate("survival", self.noise.survival, x)

    def cdf(self, x: Floats) -> Floats:
        """Return the distribution function, as given."""
        return evaluate("distribution", self.noise.distribution, x)

    def losses(self, x: Floats, gap: int) -> Floats:
        """Return the losses: infinite where one of the two densities is 0, NaN where both are."""
        first, second = (evaluate("log_density", self.noise.log_density, x - shift) for shift in (gap, 0))
        with np.errstate(invalid="ignore"):
            return np.asarray(first - second)


@lru_cache(maxsize=32)
def _shift_bracket(noise: LogConcaveAccounting, gap: int) -> Bracket:
    """Connect the dots. If upper tails have no digits, round each loss up to the upper bound of its cell instead.

    In that case the second distribution's masses follow from the first's: a smaller mass of the second only increases the hockey stick.
    """
    x = _grid(noise, gap)
    losses = noise.losses(x, gap)
    usable = np.abs(losses) < LARGEST_LOSS
    x, losses = x[usable], np.maximum.accumulate(losses[usable])
    if len(x) < 2:
        return ALL_LEAKS
    p, q = _cell_masses(noise, x - gap), _cell_masses(noise, x)
    cluster, knots = _loss_clusters(losses)
    level = np.concatenate([[False], np.diff(cluster) == 0, [False]])  # cells of one loss
    between = np.concatenate([[True], np.diff(cluster) > 0, [True]])
    atoms = np.zeros_like(knots)
    np.add.at(atoms, cluster[np.flatnonzero(level)], p[level])
    cell_p, cell_q = p[between], q[between]
    is_lost = noise.noise.survival is None
    if is_lost:
        cell_q[1:-1] = cell_p[1:-1] * np.exp(-knots[1:])
        cell_q[0], cell_q[-1] = cell_p[0] * np.exp(-knots[0]), 0.0
    upper = connect_the_dots(knots, cell_p, cell_q, atoms)
    p_only = min(upper.p_only + (_LOST if is_lost else 0.0), 1.0)
    upper = DominatingPair(upper.p, upper.q, p_only, max(upper.q_only, 1.0 - float(upper.q.sum()), 0.0), _ROUNDING)
    lowers = () if is_lost else (_with_rounding(merge_cells(p, q)),)
    return Bracket(upper, lowers, "remove")


def _with_rounding(pair: DominatingPair) -> DominatingPair:
    return DominatingPair(pair.p, pair.q, pair.p_only, pair.q_only, _ROUNDING)


def _grid(noise: LogConcaveAccounting, gap: int) -> Floats:
    """Return points from the far left of the noise to the far right of the shifted noise, most of them where most mass lies."""
    distribution = noise.noise.distribution
    low, high = quantile(distribution, 1e-6), quantile(distribution, 1.0 - 1e-6) + gap
    core = np.linspace(low, high, _CORE_CELLS + 1)
    left = low - tail_length(lambda x: noise.cdf(low - x)) * np.linspace(1.0, 0.0, _TAIL_CELLS, endpoint=False)
    right = high + tail_length(lambda x: noise.survival(high - gap + x)) * np.linspace(0.0, 1.0, _TAIL_CELLS + 1)[1:]
    return np.unique(np.concatenate([left, core, right]))


def _cell_masses(noise: LogConcaveAccounting, x: Floats) -> Floats:
    """Return masses below x[0], between neighbours, and above x[-1], as differences of the smaller tail."""
    below, above = noise.cdf(x), noise.survival(x)
    between = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.asarray(np.maximum(np.concatenate([below[:1], between, above[-1:]]), 0.0))


def _loss_clusters(losses: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the cluster of each of the increasing losses, and the largest loss of each cluster."""
    starts = [0]
    while (following := int(np.searchsorted(losses, losses[starts[-1]] + _SAME_LOSS, side="right"))) < len(losses):
        starts.append(following)
    cluster = np.zeros(len(losses), dtype=np.intp)
    cluster[starts[1:]] = 1
    last = np.array([*starts[1:], len(losses)]) - 1
    return np.cumsum(cluster), losses[last]
