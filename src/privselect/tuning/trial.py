"""One trial, as a worker runs it: a pure function of its randomness, the candidate and the data."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.define_by_run import packed, suggest_from
from privselect.tuning.isolation.suppress_output import silence
from privselect.tuning.plan_violation import Breach, Breached, sentences
from privselect.tuning.randomness.key_derivation import Stream, derived
from privselect.tuning.randomness.trial_randomness import ENOUGH_BITS, Randomness
from privselect.tuning.space import Suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.tuning.exports import Export
    from privselect.tuning.scores import Measured
    from privselect.tuning.space import Candidate


_LARGEST = 900_000_000  # bytes: the ledger keeps the best artifact, and SQLite no more than a billion in one place


class Outcome(NamedTuple):
    """What a trial that did not fail hands to the coordinator. Secret, unless it wins."""

    score: float
    artifact: bytes  # as exported; where the objective draws its candidate itself, with that before it

    def __repr__(self) -> str:
        return "Outcome(...)"


@dataclass(frozen=True, repr=False)
class Work:
    """All that a worker needs besides the candidate and the randomness; shipped to each worker once.

    Nothing in it tells the secret, K, or which trial is run.
    """

    objective: Callable[..., Any]
    data: Any
    measured: Measured | None = None  # where the score is a noisy count on a private hold-out
    export: Export | None = None
    seed_bits: int = ENOUGH_BITS
    timeout: float | None = None  # seconds
    memory: int | None = None  # bytes
    suggested: bool = False  # whether the objective draws its candidate itself
    fault: Callable[[Candidate], str | None] | None = None  # what is wrong with a candidate that only the trial knows

    def outcome(self, candidate: Candidate, seed: bytes) -> Outcome:
        """The trial itself; raises whatever goes wrong, for a dry run to show."""
        # The noise of the score is apart from all that the objective can ask for.
        randomness = Randomness(derived(seed, "objective"), self.seed_bits)
        # A copy: what the objective does to its candidate must not reach what is released.
        given = suggest_from(candidate) if self.suggested else dict(candidate)
        returned = self.objective(given, self.data, randomness)
        if isinstance(given, Suggest) and self.fault is not None and (fault := self.fault(given.drawn)) is not None:
            raise Breach(fault)
        if not isinstance(returned, tuple) or len(returned) != 2:
            raise ParameterError(f"the objective must return (score, artifact), got {format_value(type(returned).__name__)}")
        score, artifact = returned
        if self.measured is not None:
            if score is not None:
                raise ParameterError("the objective must return None for the score where a noisy count on the hold-out is the score")
            score = self.measured.score(artifact, Stream(derived(seed, "score")))
        content = b"" if self.export is None else self.export.encode(artifact)
        if isinstance(given, Suggest):
            content = packed(given, content)
        if len(content) > _LARGEST:
            raise ParameterError(f"an artifact must have at most {_LARGEST} bytes, got more")
        return Outcome(checked_score(score), content)


def perform(work: Work, candidate: Candidate, seed: bytes) -> Outcome | Breached | None:
    """The outcome of a trial, or None where it failed in whatever way: one outcome for all of them, without a word of why."""
    if work.memory is not None:
        _limit_memory(work.memory)
    before = len(sentences())
    outcome = _performed(work, candidate, seed)
    # Also a breach that the trial caught itself, or that a thread of it ended with. One of another trial beside it ends the run as well.
    return Breached(caught[0]) if (caught := sentences()[before:]) else outcome


def _performed(work: Work, candidate: Candidate, seed: bytes) -> Outcome | Breached | None:
    try:
        with silence(), _time_limit(work.timeout):
            return work.outcome(candidate, seed)
    except KeyboardInterrupt:
        raise KeyboardInterrupt from None  # of the user, not of the trial; what the trial was just handling must not be shown
    except Breach as breach:
        return Breached(breach.sentence)
    except BaseException:  # noqa: BLE001 - also SystemExit, and whatever a library in C raises
        return None


def checked_score(score: Any) -> float:
    """A finite number; bigger is better."""
    if isinstance(score, bool) or not isinstance(score, Real):
        array = getattr(score, "item", None)  # a numpy or torch scalar
        score = array() if callable(array) and getattr(score, "ndim", None) == 0 else score
    if isinstance(score, bool) or not isinstance(score, Real) or not math.isfinite(number := float(score)):
        raise ParameterError(f"the score must be a finite number, got a {type(score).__name__}")
    return number + 0.0  # -0.0 and 0.0 are one score


class TimeUp(BaseException):
    """The trial's time is over; no ``except Exception`` of a trainer may catch it."""


def can_limit_time() -> bool:
    """Whether a trial run here can be stopped: a signal reaches the main thread alone."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def _time_limit(seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    if not can_limit_time():
        raise RuntimeError  # an engine that cannot keep a time limit is refused before the draw; never run without it
    running = True

    def stop(*_: object) -> None:
        if running:
            raise TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)  # again and again, should the first be swallowed
    try:
        try:
            yield
        finally:
            running = False
    finally:  # also where the alarm came just before that
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def _limit_memory(limit: int) -> None:
    """So that running out of memory is an error in the trial, not a killed worker."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
