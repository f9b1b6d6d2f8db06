"""One selection after the other, each a run of its own through the tuner's runner and ledger, in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from privselect.tuning.executors.serial import Serial
from privselect.tuning.exports import Export
from privselect.tuning.ledger import Begun, Best, Ledger
from privselect.tuning.randomness.secret_draws import draw_trials
from privselect.tuning.runner import Conduct, Drawn, Runner
from privselect.tuning.space import Choice, Space
from privselect.tuning.trial import Work

if TYPE_CHECKING:
    from privselect.audit.worst_case import WorstCase
    from privselect.counts import Count

OPTIONS = ("a", "b", "c", "d")
SPACE = Space({"option": Choice(OPTIONS)})
_SERIAL = Serial()
_BYTES = 4


@dataclass(frozen=True)
class Job:
    """What a coordinator runs, on one of the two data sets."""

    work: Work
    count: Count
    data: str


Coordinator: TypeAlias = Callable[[Job, Ledger, bytes], Best | None]


def job(case: WorstCase, data: str) -> Job:
    """The worst case on this data set; what a trial leaves is the number of its piece."""
    export = Export("piece", "piece.bin", lambda piece: int(piece).to_bytes(_BYTES, "big"), lambda content: int.from_bytes(content, "big"))
    return Job(Work(case, data, None, export), case.setting.law(), data)


def begin(job: Job, ledger: Ledger, secret: bytes) -> Drawn:
    """Draw K from the secret and write both to the ledger, as the tuner does."""
    trials = draw_trials(job.count, secret)
    ledger.begin(Begun("audit", "none", None, secret, trials, None, released=False))
    return Drawn(secret, trials, SPACE)


def run(job: Job, ledger: Ledger, drawn: Drawn, watch: Callable[[int, int], object] | None = None) -> Best | None:
    """The tuner's runner on the trials that are missing."""
    return Runner(ledger, drawn, Conduct(_SERIAL, watch=watch)).run(job.work)


def correct(job: Job, ledger: Ledger, secret: bytes) -> Best | None:
    """Draw K, run the trials, release the best: the coordinator under audit."""
    return run(job, ledger, begin(job, ledger, secret))


def released(job: Job, coordinator: Coordinator, secret: bytes) -> int | None:
    """The piece that one selection releases, or None for the fallback."""
    ledger = Ledger.in_memory()
    try:
        best = coordinator(job, ledger, secret)
    finally:
        ledger.close()
    return None if best is None else int.from_bytes(best.artifact, "big")
