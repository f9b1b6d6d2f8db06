"""Report noisy max as a mechanism."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

import privselect.noisy_max.gaussian_noise  # noqa: F401 - makes the noise known
from privselect.errors import ParameterError
from privselect.mechanisms.base import MOST_RUNS, Mechanism
from privselect.noisy_max.additive import Additive, additive
from privselect.pairs import Bracket, DominatingPair, pair_from_curve
from privselect.parameters import parameter, shown, whole
from privselect.text import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from privselect.noisy_max.noise import Noise

    Floats = NDArray[np.float64]

MOST_SCORES = 10**12
_SAME = DominatingPair(np.ones(1), np.ones(1))
_TRUTHS = {True: True, False: False, "True": True, "true": True, "False": False, "false": False}


@register
@dataclass(frozen=True, slots=True)
class NoisyMax(Mechanism):
    """Add ``noise`` to each of ``m`` scores and release the index of the greatest, ``rounds`` times on scores of their own.

    One record changes each score by at most 1, the noise's unit. ``monotone`` says that it moves all scores the same way, or not at
    all; ``changes`` that it moves at most so many of them (a ballot that moves from one class to another changes 2; None: all).
    """

    text_name = "noisy_max"

    noise: Mechanism | Noise = field(metadata={"positional": True})
    m: int = parameter(whole(1, MOST_SCORES), leaks="more")
    rounds: int = parameter(whole(1, MOST_RUNS), default=1, leaks="more")
    changes: int | None = parameter(whole(1, MOST_SCORES), default=None, leaks="more")
    monotone: bool = False

    def __post_init__(self) -> None:
        Mechanism.__post_init__(self)
        additive(self.noise)
        if self.monotone not in _TRUTHS:
            raise ParameterError(f"`monotone` must be True or False, got {shown(self.monotone)}")
        object.__setattr__(self, "monotone", _TRUTHS[self.monotone])

    @property
    def neighbours(self) -> str:
        """That of the noise."""
        return self.noise.neighbours

    @property
    def gap(self) -> int:
        """How far one score can move against another."""
        return 1 if self.monotone or self.changes == 1 else 2

    @property
    def account(self) -> Additive:
        """What is known of the noise."""
        return additive(self.noise)

    def as_parts(self) -> tuple[tuple[Mechanism, int], ...]:
        """One round, as many times."""
        return ((self.one_round, self.rounds),)

    @property
    def one_round(self) -> NoisyMax:
        """The same with a single round."""
        return NoisyMax(self.noise, m=self.m, changes=self.changes, monotone=self.monotone)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        if self.m == 1:
            return (Bracket(_SAME, (_SAME,)),)
        upper = self.account.shifted(self.gap).upper
        knots = np.append(0.0, np.linspace(0.0, upper.losses[-1], 2000)[1:])
        values = np.minimum((self.m - 1) * upper.hockey_stick(knots, side=1), 1.0)
        return (Bracket(pair_from_curve(knots, values, values), ()),)

    def bounds(self, delta: float) -> dict[str, float]:
        """Epsilon at delta by each proved upper bound, by name."""
        return {"paper": float(self.brackets[0].upper.epsilon_at(delta, side=1))}
