"""What the accounting of noisy max asks of a noise: one small class for each kind, found by :func:`additive`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import singledispatch
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.noisy_max.accounting.two_group_lower import two_level_instances
from privselect.pairs import Bracket, DominatingPair

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.accounting.lower_bounds import Instances
    from privselect.noisy_max.accounting.score_sensitivity import Moves

    Floats = NDArray[np.float64]

LOSS_ROUNDING = 1e-12  # of a loss that is read off a pair
# For a shift so large against the noise that no float holds the odds: everything leaks.
ALL_LEAKS = Bracket(DominatingPair(np.array([]), np.array([]), 1.0, 1.0), ())


class Additive(ABC):
    """Noise of a law that does not depend on the data, added to each score on its own.

    ``survival`` and ``below`` are right to ``relative`` of themselves, and to ``absolute`` beside that.
    """

    whole: ClassVar[bool] = False  # whether noise and scores are whole numbers
    relative: ClassVar[float] = 1e-12
    absolute: float = 0.0
    alone: Mechanism | None = None  # the release of one noisy score of sensitivity 1, where that is private

    @abstractmethod
    def shifted(self, gap: int) -> Bracket:
        """The noise moved up by ``gap`` (1 or 2), against the noise where it is."""

    @abstractmethod
    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Upper bounds on the Renyi divergence of each order of the noise moved up by ``gap`` from the noise where it is."""

    @abstractmethod
    def survival(self, x: Floats) -> Floats:
        """``P(noise > x)``, with its relative digits in the tail; of whole noise, that of the noise plus a uniform number in [0, 1)."""

    @abstractmethod
    def below(self, x: Floats) -> Floats:
        """``P(noise <= x)``, with its relative digits in the tail; of whole noise, that of the noise plus a uniform number in [0, 1)."""

    def between_two(self, gap: int) -> Mechanism | None:  # noqa: ARG002 - for those that know
        """A mechanism with the curve of the choice between two scores, at its worst for each epsilon; None where none is known."""
        return None

    def choice_delta(self, moves: Moves, epsilon: Floats) -> Floats:
        """Upper bounds on the hockey stick of the choice at each epsilon >= 0, beside the sum of one for each score but one.

        Where the noise's loss is at most g, each index is at most e^g times as likely for one neighbour as for the other, so no
        choice leaks more than randomised response with odds e^g: ``(e^g - e^e)/(e^g + 1)``.
        """
        most = self.most(int(moves.gap))
        if most is None:
            return np.ones_like(epsilon)
        return np.asarray(-np.expm1(np.minimum(epsilon - most, 0.0)) / (1.0 + np.exp(-most)) * (1.0 + 4e-15))

    def most(self, gap: int) -> float | None:
        """The greatest loss of the noise moved up by ``gap``, rounded up; None where it has none."""
        moved = self.shifted(gap).upper
        return None if moved.p_only > 0.0 else float(moved.losses[-1]) + LOSS_ROUNDING

    def instances(self, moves: Moves) -> Instances:
        """Real scores and moves: what the choice leaks at least."""
        return two_level_instances(self, moves)

    def choice(self, gap: int) -> Bracket | None:  # noqa: ARG002 - for those that know
        """The choice of an index itself, whatever the scores and however many, where that is known exactly; None where it is not."""
        return None


@singledispatch
def additive(noise: object) -> Additive:
    """What is known of this noise; refused for what is no noise on a score."""
    kinds = "gaussian, laplace, gumbel, exponential, discrete_gaussian, discrete_laplace or a log-concave density"
    raise ParameterError(f"`noise` must be {kinds}, got {format_value(noise)}")
