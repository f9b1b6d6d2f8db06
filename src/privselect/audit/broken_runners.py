"""Coordinators with deliberate faults, which the audit must reject, and the distribution of K under each fault.

In the last of the cases, each fault leaks more than the exact bound allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.random_bits import uniform_below
from privselect.audit.audited_run import SPACE, Coordinator, Job, Released, begin, release, run_trials
from privselect.audit.worst_case import CASES, DATA_SETS, LARGE_K_CASE, AuditCase
from privselect.tuning.distributions import Choice
from privselect.tuning.randomness import Stream, derive_key, draw_trial_count
from privselect.tuning.runner import FinalDraw, RunDraws

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.tuning.ledger import Ledger
    from privselect.tuning.space import Candidate

    Floats = NDArray[np.float64]

WITHOUT_REPLACEMENT, REUSED_NOISE = "without-replacement", "reused-noise"
_CAP = 2
_TRIALS_BEFORE_DEADLINE = dict(zip(DATA_SETS, (2, 3), strict=True))  # a trial on X takes longer


@dataclass(frozen=True)
class Fault:
    """A fault, the coordinator that has it, and its effect on the probabilities of K."""

    description: str
    coordinator: Coordinator
    transform: Callable[[Floats, str], Floats]  # from the probabilities of K to those of the trials that then count
    case: AuditCase  # the case that shows the fault best


class _InterruptedError(Exception):
    """An interruption of a coordinator between two trials."""


def _stop_after(trials: int) -> Callable[[int, int], object]:
    def watch(done: int, _: int) -> None:
        if done >= trials:
            raise _InterruptedError

    return watch


# -- an interruption with a correct resume -----------------------------------------------------------------------------------


def run_with_resumes(job: Job, ledger: Ledger, secret: bytes) -> Released:
    """Stop after each trial and resume with the secret and the K of the ledger. This is correct."""
    begin(job, ledger, secret)
    while True:
        begun = ledger.run_record()
        if begun is None:
            raise RuntimeError
        try:
            drawn = RunDraws(begun.secret, begun.trials, SPACE)
            return release(job, ledger, drawn, run_trials(job, ledger, drawn, _stop_after(1)))
        except _InterruptedError:
            continue


# -- the faults --------------------------------------------------------------------------------------------------------------


def _run_redrawing_k(job: Job, ledger: Ledger, secret: bytes) -> Released:
    drawn = begin(job, ledger, secret)
    restarts = 0
    while True:
        try:
            return release(job, ledger, drawn, run_trials(job, ledger, drawn, _stop_after(1)))
        except _InterruptedError:
            restarts += 1
            fresh = blake2b(secret, digest_size=32, salt=restarts.to_bytes(16, "big")).digest()
            drawn = RunDraws(secret, draw_trial_count(job.count, fresh), SPACE)


def _redraw(count: Floats, _: str) -> Floats:
    """Return the pmf of the trials N, if K is drawn again after each: ``P(N > n) = P(K > 0) P(K > 1) ... P(K > n)``."""
    more = np.cumprod(1.0 - np.cumsum(count))
    return np.asarray(-np.diff(more, prepend=1.0))


def _run_capped(job: Job, ledger: Ledger, secret: bytes) -> Released:
    drawn = RunDraws(secret, min(begin(job, ledger, secret).trials, _CAP), SPACE)
    return release(job, ledger, drawn, run_trials(job, ledger, drawn))


def _run_until_deadline(job: Job, ledger: Ledger, secret: bytes) -> Released:
    drawn = begin(job, ledger, secret)
    try:
        best = run_trials(job, ledger, drawn, _stop_after(_TRIALS_BEFORE_DEADLINE[job.data]))
    except _InterruptedError:
        best = ledger.best()
    return release(job, ledger, drawn, best)


def _truncate(count: Floats, cap: int) -> Floats:
    """Return the pmf of ``min(K, cap)``."""
    return np.append(count[:cap], count[cap:].sum())


_ON_X, _ON_NEIGHBOUR = _TRIALS_BEFORE_DEADLINE.values()
FAULTS = {
    "redrawn": Fault("stop after each trial and draw K again at each resume", _run_redrawing_k, _redraw, LARGE_K_CASE),
    "capped": Fault(f"cap K at {_CAP} without declaring it", _run_capped, lambda count, _: _truncate(count, _CAP), LARGE_K_CASE),
    "deadline": Fault(
        f"release the best trial before a deadline, after {_ON_X} trials on X and {_ON_NEIGHBOUR} on {DATA_SETS[1]}",
        _run_until_deadline,
        lambda count, data: _truncate(count, _TRIALS_BEFORE_DEADLINE[data]),
        CASES[2],
    ),
}


# -- a final training that reuses the randomness of the winning trial --------------------------------------------------------


@dataclass(frozen=True, repr=False)
class _SameNoise(FinalDraw):
    """A draw of the final training with the seed of the winning trial."""

    slot: int = 0

    def seed(self, slot: int) -> bytes:
        """Return the seed of the winning trial."""
        return RunDraws(self.secret, 0, SPACE).seed(self.slot + slot)


def run_reusing_noise(job: Job, ledger: Ledger, secret: bytes) -> Released:
    """Run both stages, the second one with the randomness of the winning trial."""
    drawn = begin(job, ledger, secret)
    best = run_trials(job, ledger, drawn)
    return release(job, ledger, drawn, best, partial(_SameNoise, slot=0 if best is None else best.slot))


class DrawnWithoutReplacement(RunDraws):
    """Candidates without replacement: the options are shuffled once per run and tried in that order."""

    def candidate(self, slot: int) -> Candidate:
        """Return the next candidate in the shuffled order."""
        entropy = Stream(derive_key(self.secret, "candidate"))
        choices = {name: choice for name, choice in (self.space.distributions or {}).items() if isinstance(choice, Choice)}
        shuffled = {}
        for name, choice in choices.items():
            left = list(choice.options)
            shuffled[name] = [left.pop(uniform_below(len(left), entropy)) for _ in choice.options]
        return {name: options[slot % len(options)] for name, options in shuffled.items()}
