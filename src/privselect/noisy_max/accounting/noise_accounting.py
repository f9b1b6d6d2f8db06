"""The interface between noisy max and one kind of noise: :class:`NoiseAccounting`, found by :func:`accounting_of`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import singledispatch
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.noisy_max.accounting.lower_bounds import two_group_instances
from privselect.pairs import Bracket, DominatingPair

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.accounting.lower_bounds import Instances

    Floats = NDArray[np.float64]

LOSS_ROUNDING = 1e-12  # of a loss that is read from a pair
# For a shift so large that no float holds the odds: everything leaks.
ALL_LEAKS = Bracket(DominatingPair(np.array([]), np.array([]), 1.0, 1.0), ())


@dataclass(frozen=True, slots=True)
class ScoreChange:
    """Largest effect of one record: up to ``changed`` of ``m`` scores move up, or down, by at most ``gap`` against all others."""

    m: int
    changed: int
    gap: float

    def group_sizes(self) -> Iterator[int]:
        """Return the sizes of groups that move up against their complement; moving a group down moves its complement up."""
        few = min(self.changed, self.m - 1)
        return chain(range(1, few + 1), range(max(self.m - few, few + 1), self.m))


class NoiseAccounting(ABC):
    """Privacy accounting of one noise distribution, which is independent of the data and added to each score independently.

    ``survival`` and ``cdf`` have a relative error of at most ``relative_error`` plus an absolute error of at most ``absolute_error``.
    """

    integer: ClassVar[bool] = False  # whether noise and scores are integers
    relative_error: ClassVar[float] = 1e-12
    absolute_error: ClassVar[float] = 0.0

    @property
    def single_release(self) -> Mechanism | None:
        """The release of one noisy score of sensitivity 1; None if it is not private enough to be useful."""
        return None

    @abstractmethod
    def shift_bracket(self, gap: int) -> Bracket:
        """Return the bracket of the noise shifted up by ``gap`` (1 or 2), against the unshifted noise."""

    @abstractmethod
    def renyi(self, gap: int, alpha: Floats) -> Floats:
        """Return upper bounds on the Renyi divergence of each order of the shifted noise from the unshifted noise."""

    @abstractmethod
    def survival(self, x: Floats) -> Floats:
        """Return ``P(noise > x)``. Integer noise has a uniform number in [0, 1) added."""

    @abstractmethod
    def cdf(self, x: Floats) -> Floats:
        """Return ``P(noise <= x)``. Integer noise has a uniform number in [0, 1) added."""

    def two_score_mechanism(self, gap: int) -> Mechanism | None:  # noqa: ARG002 - used by subclasses
        """Return a mechanism with the profile of the worst choice between two scores; None if none is known."""
        return None

    def index_delta(self, change: ScoreChange, epsilon: Floats) -> Floats:
        """Return upper bounds on the hockey stick of the released index at each epsilon >= 0.

        If the noise has loss at most g, each index is at most e^g times as likely for one neighbour as for the other. Then the index
        leaks at most what randomised response with odds e^g leaks: ``(e^g - e^e)/(e^g + 1)``.
        """
        most = self.largest_loss(int(change.gap))
        if most is None:
            return np.ones_like(epsilon)
        return np.asarray(-np.expm1(np.minimum(epsilon - most, 0.0)) / (1.0 + np.exp(-most)) * (1.0 + 4e-15))

    def largest_loss(self, gap: int) -> float | None:
        """Return the largest loss of the noise shifted by ``gap``, rounded up; None if the loss is unbounded."""
        shifted = self.shift_bracket(gap).upper
        return None if shifted.p_only > 0.0 else float(shifted.losses[-1]) + LOSS_ROUNDING

    def instances(self, change: ScoreChange) -> Instances:
        """Return concrete scores and changes, which are lower bounds on the leak of the index."""
        return two_group_instances(self, change)

    def index_bracket(self, gap: int) -> Bracket | None:  # noqa: ARG002 - used by subclasses
        """Return the bracket of the released index for all scores and any number of them; None if it is not known exactly."""
        return None


@singledispatch
def accounting_of(noise: object) -> NoiseAccounting:
    """Return the accounting of this noise; raise if it is not a noise distribution for scores."""
    kinds = "gaussian, laplace, gumbel, exponential, discrete_gaussian, discrete_laplace or a log-concave density"
    raise ParameterError(f"`noise` must be {kinds}, got {format_value(noise)}")
