"""Coordinators that are wrong on purpose, each with the law of K that it really has: the audit must reject them.

None of them is harmless: in the last of the settings each leaks more than the exact bound allows.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from privselect._util.random_bits import uniform_below
from privselect.audit.audited_run import SPACE, Coordinator, Job, begin, run
from privselect.audit.cases import DATA_SETS, LARGE, SETTINGS, Setting
from privselect.tuning.randomness.key_derivation import Stream, derived
from privselect.tuning.randomness.secret_draws import draw_trials
from privselect.tuning.runner import Drawn
from privselect.tuning.space import Choice

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.tuning.ledger import Best, Ledger
    from privselect.tuning.space import Candidate

    Floats = NDArray[np.float64]

WITHOUT_REPLACEMENT = "without-replacement"
_CAP = 2
_IN_TIME = dict(zip(DATA_SETS, (2, 3), strict=True))  # a trial on X takes longer: so many are done at the deadline


@dataclass(frozen=True)
class Fault:
    """What is wrong, how it is done, and the probabilities of the number of trials that then count, from those of K."""

    said: str
    coordinator: Coordinator
    law: Callable[[Floats, str], Floats]
    setting: Setting  # where it shows


class _InterruptedError(Exception):
    """Stands for whatever stops a coordinator between two trials."""


def _stop_after(trials: int) -> Callable[[int, int], object]:
    def watch(done: int, _: int) -> None:
        if done >= trials:
            _interrupt()

    return watch


def _interrupt() -> NoReturn:
    raise _InterruptedError


# -- an interruption, and the right way to go on -----------------------------------------------------------------------------------


def resumed(job: Job, ledger: Ledger, secret: bytes) -> Best | None:
    """Correct: stopped after each trial, and resumed with the secret and the K that the ledger holds."""
    begin(job, ledger, secret)
    while True:
        begun = ledger.begun()
        if begun is None:
            raise RuntimeError
        try:
            return run(job, ledger, Drawn(begun.secret, begun.trials, SPACE), _stop_after(1))
        except _InterruptedError:
            continue


# -- the faults -------------------------------------------------------------------------------------------------------------------


def _redrawn(job: Job, ledger: Ledger, secret: bytes) -> Best | None:
    drawn = begin(job, ledger, secret)
    restarts = 0
    while True:
        try:
            return run(job, ledger, drawn, _stop_after(1))
        except _InterruptedError:
            restarts += 1
            fresh = blake2b(secret, digest_size=32, salt=restarts.to_bytes(16, "big")).digest()
            drawn = Drawn(secret, draw_trials(job.count, fresh), SPACE)


def _redrawn_law(law: Floats, _: str) -> Floats:
    """Another trial is run while the K of the moment exceeds the number done: ``P(N > n) = P(K > 0) P(K > 1) ... P(K > n)``."""
    more = np.cumprod(1.0 - np.cumsum(law))
    return np.asarray(-np.diff(more, prepend=1.0))


def _capped(job: Job, ledger: Ledger, secret: bytes) -> Best | None:
    drawn = begin(job, ledger, secret)
    return run(job, ledger, Drawn(secret, min(drawn.trials, _CAP), SPACE))


def _late(job: Job, ledger: Ledger, secret: bytes) -> Best | None:
    try:
        return run(job, ledger, begin(job, ledger, secret), _stop_after(_IN_TIME[job.data]))
    except _InterruptedError:
        return ledger.best()


def _at_most(law: Floats, most: int) -> Floats:
    """Of ``min(K, most)``."""
    return np.append(law[:most], law[most:].sum())


FAULTS = {
    "redrawn": Fault("stopped after each trial, K drawn anew at each resume", _redrawn, _redrawn_law, LARGE),
    "capped": Fault(f"K cut at {_CAP} without saying so", _capped, lambda law, _: _at_most(law, _CAP), LARGE),
    "deadline": Fault(
        f"the best so far released at a deadline, after {_IN_TIME['X']} trials on X and {_IN_TIME[DATA_SETS[1]]} on {DATA_SETS[1]}",
        _late,
        lambda law, data: _at_most(law, _IN_TIME[data]),
        SETTINGS[2],
    ),
}


class Shuffled(Drawn):
    """Candidates without replacement: the options are shuffled once for each run and then tried in turn."""

    def candidate(self, slot: int) -> Candidate:
        """The next one in the shuffled order."""
        entropy = Stream(derived(self.secret, "candidate"))
        laws = {name: law for name, law in (self.space.laws or {}).items() if isinstance(law, Choice)}
        shuffled = {}
        for name, law in laws.items():
            left = list(law.options)
            shuffled[name] = [left.pop(uniform_below(len(left), entropy)) for _ in law.options]
        return {name: options[slot % len(options)] for name, options in shuffled.items()}
