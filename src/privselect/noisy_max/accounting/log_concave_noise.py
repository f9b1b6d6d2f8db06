"""Log-concave noise on scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from privselect.noisy_max.accounting.density_checks import quantile, reach_of, values_of
from privselect.noisy_max.accounting.noise_accounting import ALL_LEAKS, Additive, additive
from privselect.noisy_max.log_concave import LogConcave
from privselect.pairs import Bracket, DominatingPair, connect_the_dots, merge_cells
from privselect.pairs.discretize import LARGEST_LOSS
from privselect.pairs.renyi import renyi_of_pair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

_ROUNDING = 4e-9  # of losses and of masses: nine digits are asked of the functions
_LOST = 1e-15  # of 1 - distribution
_SAME = 1e-9  # losses nearer than this are one atom
_CORE = 4000  # cells from the first of a million quantiles to the last
_TAIL = 1000  # cells on either side beyond


@dataclass(frozen=True, slots=True)
class LogConcaveNoise(Additive):
    """Noise whose loss ``log f(x - gap) - log f(x)`` does not fall with x, as log f is concave."""

    noise: LogConcave
    relative = 1e-9
    absolute = _LOST  # also of the distribution's tail below, which nobody has looked at

    def shifted(self, gap: int) -> Bracket:
        """Cells of x are cells of the loss, and those of equal loss atoms."""
        return _shifted(self, gap)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """From the pair: infinite where the loss is not bounded."""
        return renyi_of_pair(self.shifted(gap).upper, alpha)

    def survival(self, x: Floats) -> Floats:
        """As given."""
        if self.noise.survival is None:
            return np.maximum(1.0 - self.below(x), 0.0)
        return values_of("survival", self.noise.survival, x)

    def below(self, x: Floats) -> Floats:
        """As given."""
        return values_of("distribution", self.noise.distribution, x)

    def losses(self, x: Floats, gap: int) -> Floats:
        """Infinite where one of the two has no density."""
        first, second = (values_of("log_density", self.noise.log_density, x - shift) for shift in (gap, 0))
        with np.errstate(invalid="ignore"):
            return np.asarray(first - second)  # NaN where neither has


@additive.register(LogConcave)
def _(noise: LogConcave) -> Additive:
    return LogConcaveNoise(noise)


@lru_cache(maxsize=32)
def _shifted(noise: LogConcaveNoise, gap: int) -> Bracket:
    """Connect the dots; where tails above have no digits, each loss is rounded up to the end of its cell instead.

    The second law's masses then come from the first's: a smaller mass of the second on any outcome only adds to the hockey stick.
    """
    x = _places(noise, gap)
    losses = noise.losses(x, gap)
    usable = np.abs(losses) < LARGEST_LOSS
    x, losses = x[usable], np.maximum.accumulate(losses[usable])
    if len(x) < 2:
        return ALL_LEAKS
    p, q = _masses(noise, x - gap), _masses(noise, x)
    place, knots = _clusters(losses)
    level = np.concatenate([[False], np.diff(place) == 0, [False]])  # cells of one loss
    between = np.concatenate([[True], np.diff(place) > 0, [True]])
    atoms = np.zeros_like(knots)
    np.add.at(atoms, place[np.flatnonzero(level)], p[level])
    cell_p, cell_q = p[between], q[between]
    is_lost = noise.noise.survival is None
    if is_lost:
        cell_q[1:-1] = cell_p[1:-1] * np.exp(-knots[1:])
        cell_q[0], cell_q[-1] = cell_p[0] * np.exp(-knots[0]), 0.0
    upper = connect_the_dots(knots, cell_p, cell_q, atoms)
    p_only = min(upper.p_only + (_LOST if is_lost else 0.0), 1.0)
    upper = DominatingPair(upper.p, upper.q, p_only, max(upper.q_only, 1.0 - float(upper.q.sum()), 0.0), _ROUNDING)
    lowers = () if is_lost else (_roundly(merge_cells(p, q)),)
    return Bracket(upper, lowers, "remove")


def _roundly(pair: DominatingPair) -> DominatingPair:
    return DominatingPair(pair.p, pair.q, pair.p_only, pair.q_only, _ROUNDING)


def _places(noise: LogConcaveNoise, gap: int) -> Floats:
    """From the far left of the noise to the far right of the noise moved up, most of them where most of it lies."""
    law = noise.noise.distribution
    low, high = quantile(law, 1e-6), quantile(law, 1.0 - 1e-6) + gap
    core = np.linspace(low, high, _CORE + 1)
    left = low - reach_of(lambda x: noise.below(low - x)) * np.linspace(1.0, 0.0, _TAIL, endpoint=False)
    right = high + reach_of(lambda x: noise.survival(high - gap + x)) * np.linspace(0.0, 1.0, _TAIL + 1)[1:]
    return np.unique(np.concatenate([left, core, right]))


def _masses(noise: LogConcaveNoise, x: Floats) -> Floats:
    """Below x[0], between neighbours, and above x[-1]: differences of the smaller tail."""
    below, above = noise.below(x), noise.survival(x)
    between = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))
    return np.asarray(np.maximum(np.concatenate([below[:1], between, above[-1:]]), 0.0))


def _clusters(losses: Floats) -> tuple[NDArray[np.intp], Floats]:
    """For each of rising losses the number of its knot, and the knots: losses nearer than _SAME share the greatest of them."""
    starts = [0]
    while (following := int(np.searchsorted(losses, losses[starts[-1]] + _SAME, side="right"))) < len(losses):
        starts.append(following)
    place = np.zeros(len(losses), dtype=np.intp)
    place[starts[1:]] = 1
    ends = np.array([*starts[1:], len(losses)]) - 1
    return np.cumsum(place), losses[ends]
