"""Gaussian noise on scores."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from privselect.mechanisms.gaussian import Gaussian, gaussian_bracket
from privselect.noisy_max.accounting.gaussian_upper import PROVED, two_levels_delta
from privselect.noisy_max.accounting.lower_bounds import Instances
from privselect.noisy_max.accounting.noise_accounting import Additive, additive
from privselect.noisy_max.accounting.two_group_gaussian import FLOOR, LARGEST_SHIFT, LEAST_SHIFT, ROUNDING, two_levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.accounting.score_sensitivity import Moves
    from privselect.pairs import Bracket

    Floats = NDArray[np.float64]

_SHARES = (0.5, 0.6, 0.7, 0.76, 0.83)  # of the scores, that move: one of them is near the worst


@dataclass(frozen=True, slots=True)
class GaussianNoise(Additive):
    """N(0, sigma^2)."""

    noise: Gaussian

    @property
    def alone(self) -> Mechanism:  # type: ignore[override]  # a fact of this kind
        """The Gaussian mechanism."""
        return self.noise

    def shifted(self, gap: int) -> Bracket:
        """In closed form, up to cells."""
        return gaussian_bracket(gap / self.noise.sigma)

    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """In closed form."""
        shift = gap / self.noise.sigma
        with np.errstate(over="ignore"):  # with hardly any noise it is as good as infinite
            return np.asarray(0.5 * alpha * shift * shift * (1.0 + 4e-15))

    def survival(self, x: Floats) -> Floats:
        """The normal tail."""
        return np.asarray(ndtr(-x / self.noise.sigma))

    def below(self, x: Floats) -> Floats:
        """The normal law."""
        return np.asarray(ndtr(x / self.noise.sigma))

    def between_two(self, gap: int) -> Mechanism:
        """Which of two scores wins tells on which side of an offset their noisy difference lies: for one epsilon the best test there is."""
        # Rounded down: less noise leaks more.
        return replace(self.noise, sigma=math.nextafter(self.noise.sigma * math.sqrt(2.0) / gap * (1.0 - 4e-16), 0.0))

    def choice_delta(self, moves: Moves, epsilon: Floats) -> Floats:
        """By sets of winners."""
        return two_levels_delta(self._in_units(moves), epsilon)

    def instances(self, moves: Moves) -> Instances:
        """Scores on two levels, at many offsets."""
        unit = self._in_units(moves)
        if not LEAST_SHIFT <= unit.gap <= LARGEST_SHIFT:
            return Instances(np.zeros(0), np.zeros(0))
        found = [two_levels(unit.m, s, unit.gap) for s in _some_sizes(unit)]
        moved, still = (np.concatenate([getattr(levels, name) for levels in found]) for name in ("moved", "still"))
        return Instances(moved * (1.0 - ROUNDING), still * (1.0 + ROUNDING) + 1e-20 * FLOOR)

    def _in_units(self, moves: Moves) -> Moves:
        """In standard deviations, rounded up."""
        return replace(moves, gap=math.nextafter(moves.gap / self.noise.sigma, math.inf))


def _some_sizes(moves: Moves) -> list[int]:
    if moves.m <= 2 * PROVED + 1:
        return list(moves.sizes())  # which the upper bound has looked at as well
    if moves.together >= moves.m // 2:
        return [int(share * moves.m) for share in _SHARES]
    few = [2**power for power in range(moves.together.bit_length())]
    return [*few, moves.together, *(moves.m - s for s in [*few, moves.together])]


@additive.register
def _(noise: Gaussian) -> Additive:
    return GaussianNoise(noise)
