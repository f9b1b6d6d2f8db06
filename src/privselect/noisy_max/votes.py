"""A stream of votes: many rounds, of which the classes that win are released, counted against a declared number."""

from __future__ import annotations

from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.noisy_max.noisy_max import NoisyMax
from privselect.noisy_max.sampling.exact_argmax import winners
from privselect.noisy_max.sampling.noise_samplers import drawing
from privselect.noisy_max.sampling.random_words import check_entropy
from privselect.noisy_max.scores import Scores, has_mask, read_scores

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy
    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.index_only_noise import Noise


_ONE = Fraction(1)
_MOST_CLASSES = 10**7  # each round draws noise for every class, all of it held at once


class NoisyVotes:
    """Voters choose among ``m`` classes in each of at most ``rounds`` rounds; the class with the most votes, under noise, is released.

    One record moves at most ``changes`` counts of each round by 1: 2 where it can change a ballot (a teacher's training data), 1 where a
    voter comes or goes. The voters' number is not released. How many rounds have been asked is public, and must not depend on the ballots.
    """

    __slots__ = ("_asked", "_entropy", "_lock", "_mechanism")

    def __init__(self, noise: Mechanism | Noise, *, m: int, rounds: int, changes: int | None = 2, entropy: Entropy | None = None) -> None:
        drawing(noise)
        self._mechanism = NoisyMax(noise, m=m, rounds=rounds, changes=changes)
        if self._mechanism.m > _MOST_CLASSES:
            raise ParameterError(
                f"`m` must be at most {_MOST_CLASSES} for votes that are run, as each class has its own noise, got {format_value(m)}"
            )
        self._entropy, self._asked, self._lock = check_entropy(entropy), 0, Lock()

    def __repr__(self) -> str:
        return f"NoisyVotes({self._mechanism}, asked={self._asked})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream of votes cannot be copied or pickled: its rounds could be spent twice")

    @property
    def mechanism(self) -> NoisyMax:
        """What all declared rounds cost."""
        return self._mechanism

    @property
    def asked(self) -> int:
        """The number of rounds so far."""
        return self._asked

    @property
    def spent(self) -> NoisyMax | None:
        """What the rounds so far cost; None before the first."""
        whole = self._mechanism
        return NoisyMax(whole.noise, m=whole.m, rounds=self._asked, changes=whole.changes) if self._asked else None

    def ask(self, ballots: Any = None, *, counts: Any = None) -> int:
        """One round: the winner of the ballots, each the index of a class, or of votes counted already, one number for each class."""
        if (ballots is None) == (counts is None):
            raise ParameterError("a round needs `ballots` or `counts`, and not both")
        scores = self._counted(ballots) if counts is None else self._given(counts)
        how = drawing(self._mechanism.noise)
        if how.whole:
            scores.whole_gaps(_ONE)  # refuses a fraction before a round is spent on it
        with self._lock:  # two threads must not share the last round
            if self._asked >= self._mechanism.rounds:
                raise ParameterError(f"`rounds` must be at most the {self._mechanism.rounds} declared, got one more")
            self._asked += 1  # before the draw: a round that is broken off has been asked
            # Nor the same bits: a source that keeps a pool may hand them to both.
            return int(winners(scores, how.unit(_ONE), how.staircase, self._entropy)[0])

    def _counted(self, ballots: Any) -> Scores:
        m = self._mechanism.m
        wanted = f"`ballots` must be a vector of whole numbers from 0 to {m - 1}"
        if has_mask(ballots):
            raise ParameterError(f"{wanted}, got a masked array")
        try:
            given = np.asarray(ballots)
        except ValueError:
            raise ParameterError(f"{wanted}, got something else") from None
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ParameterError(f"{wanted}, got entries of type {given.dtype} in shape {given.shape}")
        if given.size and (given.min() < 0 or given.max() >= m):
            raise ParameterError(f"{wanted}, got one that is not")
        return Scores(np.bincount(given.astype(np.int64), minlength=m).astype(np.float64)[None, :])

    def _given(self, counts: Any) -> Scores:
        scores, single = read_scores(counts, "counts")
        if not single or scores.values.shape[1] != self._mechanism.m:
            raise ParameterError(
                f"`counts` must be one number for each of the {self._mechanism.m} classes, got shape {format_value(scores.values.shape)}"
            )
        return scores
