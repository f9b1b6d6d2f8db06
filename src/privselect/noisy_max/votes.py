"""A stream of votes: many rounds that each release the winning class, limited to a declared number of rounds."""

from __future__ import annotations

from fractions import Fraction
from threading import Lock
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.noisy_max.noisy_max import NoisyMax
from privselect.noisy_max.sampling.exact_argmax import exact_argmax
from privselect.noisy_max.sampling.noise_samplers import check_entropy, sampler_for
from privselect.noisy_max.scores import Scores, has_mask, read_scores

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy
    from privselect.mechanisms.base import Mechanism
    from privselect.noisy_max.index_only_noise import Noise


_ONE = Fraction(1)
_MAX_CLASSES = 10**7  # each round holds noise for every class in memory


class NoisyVotes:
    """Voters choose among ``m`` classes in each of at most ``rounds`` rounds; each round releases the class with the most noisy votes.

    One record moves at most ``changes`` counts of each round by 1: 2 if it can change a ballot (a teacher's training data), 1 if it
    adds or removes a voter. The number of voters is not released. The number of rounds so far is public and must not depend on the
    ballots.
    """

    __slots__ = ("_entropy", "_lock", "_mechanism", "_rounds_used")

    def __init__(self, noise: Mechanism | Noise, *, m: int, rounds: int, changes: int | None = 2, entropy: Entropy | None = None) -> None:
        sampler_for(noise)
        self._mechanism = NoisyMax(noise, m=m, rounds=rounds, changes=changes)
        if self._mechanism.m > _MAX_CLASSES:
            raise ParameterError(
                f"`m` must be at most {_MAX_CLASSES} to run a vote, because each class has its own noise, got {format_value(m)}"
            )
        self._entropy, self._rounds_used, self._lock = check_entropy(entropy), 0, Lock()

    def __repr__(self) -> str:
        return f"NoisyVotes({self._mechanism}, rounds_used={self._rounds_used})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("NoisyVotes cannot be copied or pickled: its rounds could be spent twice")

    @property
    def mechanism(self) -> NoisyMax:
        """The mechanism of all declared rounds."""
        return self._mechanism

    @property
    def rounds_used(self) -> int:
        """The number of rounds so far."""
        return self._rounds_used

    @property
    def spent(self) -> NoisyMax | None:
        """The mechanism of the rounds so far; None before the first."""
        full = self._mechanism
        return NoisyMax(full.noise, m=full.m, rounds=self._rounds_used, changes=full.changes) if self._rounds_used else None

    def run_round(self, ballots: Any = None, *, counts: Any = None) -> int:
        """Run one round and return the winning class.

        Give either ``ballots``, the class index of each voter, or ``counts``, the number of votes of each class.
        """
        if (ballots is None) == (counts is None):
            raise ParameterError("a round needs either `ballots` or `counts`, and not both")
        scores = self._count_ballots(ballots) if counts is None else self._read_counts(counts)
        sampler = sampler_for(self._mechanism.noise)
        if sampler.integer:
            scores.integer_gaps(_ONE)  # raises for a fraction before a round is spent
        with self._lock:  # two threads must not share the last round
            if self._rounds_used >= self._mechanism.rounds:
                raise ParameterError(f"`rounds` must be at most the {self._mechanism.rounds} declared, got one more")
            self._rounds_used += 1  # before the draw: an interrupted round counts as used
            # Inside the lock: two threads must not draw the same bits from a source with state.
            return int(exact_argmax(scores, sampler.unit(_ONE), sampler.sampler, self._entropy)[0])

    def _count_ballots(self, ballots: Any) -> Scores:
        m = self._mechanism.m
        allowed = f"`ballots` must be a vector of integers from 0 to {m - 1}"
        if has_mask(ballots):
            raise ParameterError(f"{allowed}, got a masked array")
        try:
            given = np.asarray(ballots)
        except ValueError:
            raise ParameterError(f"{allowed}, got another kind of value") from None
        if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
            raise ParameterError(f"{allowed}, got entries of type {given.dtype} in shape {given.shape}")
        if given.size and (given.min() < 0 or given.max() >= m):
            raise ParameterError(f"{allowed}, got an index outside")
        return Scores(np.bincount(given.astype(np.int64), minlength=m).astype(np.float64)[None, :])

    def _read_counts(self, counts: Any) -> Scores:
        scores, single = read_scores(counts, "counts")
        if not single or scores.values.shape[1] != self._mechanism.m:
            raise ParameterError(
                f"`counts` must be one number for each of the {self._mechanism.m} classes, got shape {format_value(scores.values.shape)}"
            )
        return scores
