"""Run selections through the tuner's own runner and ledger, in this process, and estimate what they leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from privselect.audit.worst_case import DATA_SETS, worst_case
from privselect.tuning.executors import Serial
from privselect.tuning.exports import Export
from privselect.tuning.isolation import suppress_output
from privselect.tuning.ledger import Best, Ledger, RunRecord
from privselect.tuning.randomness import draw_trial_count, new_secret
from privselect.tuning.runner import RunDraws, Runner, RunnerOptions
from privselect.tuning.space import Choice, Space
from privselect.tuning.trial import TrialSetup

if TYPE_CHECKING:
    from privselect.audit.prediction import Prediction
    from privselect.audit.worst_case import AuditCase, WorstCase
    from privselect.counts import Count

OPTIONS = ("a", "b", "c", "d")
SPACE = Space({"option": Choice(OPTIONS)})
_SERIAL = Serial()
_BYTES = 4  # of a piece number


@dataclass(frozen=True)
class Job:
    """What a coordinator runs, on one of the two data sets."""

    work: TrialSetup
    count: Count
    data: str


Coordinator: TypeAlias = Callable[[Job, Ledger, bytes], Best | None]


def make_job(case: WorstCase, data: str) -> Job:
    """Return the job of the worst case on this data set. The artifact of a trial is the number of its piece."""
    export = Export("piece", "piece.bin", lambda piece: int(piece).to_bytes(_BYTES, "big"), lambda content: int.from_bytes(content, "big"))
    return Job(TrialSetup(case, data, None, export), case.case.parse_count(), data)


def begin(job: Job, ledger: Ledger, secret: bytes) -> RunDraws:
    """Draw K from the secret and write both to the ledger, as the tuner does."""
    trials = draw_trial_count(job.count, secret)
    ledger.begin(RunRecord("audit", "none", None, secret, trials, None, released=False))
    return RunDraws(secret, trials, SPACE)


def run_trials(job: Job, ledger: Ledger, drawn: RunDraws, watch: Callable[[int, int], object] | None = None) -> Best | None:
    """Run the missing trials with the tuner's runner."""
    return Runner(ledger, drawn, RunnerOptions(_SERIAL, on_progress=watch)).run(job.work)


def run_correctly(job: Job, ledger: Ledger, secret: bytes) -> Best | None:
    """Draw K, run the trials and release the best: the coordinator under audit."""
    return run_trials(job, ledger, begin(job, ledger, secret))


def released_piece(job: Job, coordinator: Coordinator, secret: bytes) -> int | None:
    """Run one selection and return the piece it releases, or None for the fallback."""
    ledger = Ledger.in_memory()
    try:
        best = coordinator(job, ledger, secret)
    finally:
        ledger.close()
    return None if best is None else int.from_bytes(best.artifact, "big")


@dataclass(frozen=True)
class Measurement:
    """How often the counted set was hit on each data set, out of ``selections`` selections on each."""

    case: AuditCase
    selections: int
    hits: tuple[int, int]

    def __add__(self, other: Measurement) -> Measurement:
        hits = (self.hits[0] + other.hits[0], self.hits[1] + other.hits[1])
        return replace(self, selections=self.selections + other.selections, hits=hits)

    @property
    def prediction(self) -> Prediction:
        """The prediction for a correct coordinator."""
        return worst_case(self.case).predict()

    @property
    def delta(self) -> float:
        """The estimate of ``P(S) - e^epsilon P'(S)``."""
        return self.prediction.estimate(self.hits, self.selections)

    @property
    def interval(self) -> tuple[float, float]:
        """The 99.9% interval for a correct coordinator."""
        return self.prediction.interval(self.selections)

    @property
    def passed(self) -> bool:
        """Whether the estimate lies in the interval."""
        low, high = self.interval
        return low <= self.delta <= high


def measure(
    case: AuditCase, selections: int, coordinator: Coordinator = run_correctly, draw_secret: Callable[[], bytes] = new_secret
) -> Measurement:
    """Run ``selections`` selections on each data set, each with a fresh secret, and count the hits."""
    worst = worst_case(case)
    hits = []
    with suppress_output():  # outside the loop: nested uses then cost nothing
        for data in DATA_SETS:
            job = make_job(worst, data)
            hits.append(sum(released_piece(job, coordinator, draw_secret()) in worst.counted_pieces for _ in range(selections)))
    return Measurement(case, selections, (hits[0], hits[1]))
