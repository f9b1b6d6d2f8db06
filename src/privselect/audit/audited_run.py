"""Run the tuner's own runner and ledger in this process, with one or both stages, and estimate what they leak."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from privselect.audit.two_stage_case import TwoStageCase, two_stage_worst_case
from privselect.audit.worst_case import DATA_SETS, AuditCase, WorstCase, worst_case
from privselect.tuning.distributions import Choice
from privselect.tuning.executors import Serial
from privselect.tuning.exports import Export
from privselect.tuning.isolation import suppress_output
from privselect.tuning.ledger import FINAL, SEARCH, Best, Ledger, RunRecord
from privselect.tuning.randomness import draw_trial_count, new_secret
from privselect.tuning.runner import FinalDraw, RunDraws, Runner, RunnerOptions
from privselect.tuning.space import Space
from privselect.tuning.told import Told
from privselect.tuning.trial import TrialSetup

if TYPE_CHECKING:
    from privselect.audit.prediction import Prediction
    from privselect.audit.two_stage_case import TwoStageWorstCase
    from privselect.counts import Count

OPTIONS = ("a", "b", "c", "d")
SPACE = Space({"option": Choice(OPTIONS)})
_SERIAL = Serial()
_BYTES = 4  # of a piece number
_EXPORT = Export("piece", "piece.bin", lambda piece: int(piece).to_bytes(_BYTES, "big"), lambda content: int.from_bytes(content, "big"))

Released: TypeAlias = int | tuple[int, int] | None  # a piece, with the outcome of the final training if there is one; None: the fallback


@dataclass(frozen=True)
class Job:
    """What a coordinator runs, on one of the two data sets."""

    work: TrialSetup
    count: Count
    data: str
    final: TrialSetup | None = None  # the final training


Coordinator: TypeAlias = Callable[[Job, Ledger, bytes], Released]


def make_job(case: WorstCase | TwoStageWorstCase, data: str) -> Job:
    """Return the job of the worst case on this data set. The artifact of a trial is the number of its piece."""
    if isinstance(case, WorstCase):
        return Job(TrialSetup(case, data, None, _EXPORT), case.case.parse_count(), data)
    # As in the tuner, a search trial exports nothing if a final training follows: its score says which piece it drew.
    stages = case.case.search.parse_mechanism(), case.case.parse_final()
    told = [Told(stage, mechanism, ("stage",)) for stage, mechanism in zip((SEARCH, FINAL), stages, strict=True)]
    search, final = TrialSetup(case, data, told=told[0]), TrialSetup(case, data, None, _EXPORT, told=told[1], is_final=True)
    return Job(search, case.search.case.parse_count(), data, final)


def begin(job: Job, ledger: Ledger, secret: bytes) -> RunDraws:
    """Draw K from the secret and write both to the ledger, as the tuner does."""
    trials = draw_trial_count(job.count, secret)
    ledger.begin(RunRecord("audit", "none", None, secret, trials, None, released=False))
    return RunDraws(secret, trials, SPACE)


def run_trials(job: Job, ledger: Ledger, drawn: RunDraws, watch: Callable[[int, int], object] | None = None) -> Best | None:
    """Run the missing trials with the tuner's runner."""
    return Runner(ledger, drawn, RunnerOptions(_SERIAL, on_progress=watch)).run(job.work)


def release(job: Job, ledger: Ledger, drawn: RunDraws, best: Best | None, final_draw: Callable[..., FinalDraw] = FinalDraw) -> Released:
    """Return what a run releases after its search: the winner's piece, or with a final training its score and the final outcome."""
    if job.final is None:
        return None if best is None else _EXPORT.decode(best.artifact)
    candidate = drawn.unused_candidate() if best is None else drawn.candidate(best.slot)
    trained = Runner(ledger, final_draw(drawn.secret, candidate, best is not None), RunnerOptions(_SERIAL)).run(job.final)
    return None if best is None or trained is None else (int(-best.score), _EXPORT.decode(trained.artifact))


def run_correctly(job: Job, ledger: Ledger, secret: bytes) -> Released:
    """Draw K, run the trials and the final training if there is one: the coordinator under audit."""
    drawn = begin(job, ledger, secret)
    return release(job, ledger, drawn, run_trials(job, ledger, drawn))


def run_once(job: Job, coordinator: Coordinator, secret: bytes) -> Released:
    """Make one run with a ledger in memory and return what it releases."""
    ledger = Ledger.in_memory()
    try:
        return coordinator(job, ledger, secret)
    finally:
        ledger.close()


@dataclass(frozen=True)
class Measurement:
    """How often the counted set was hit on each data set, out of ``selections`` runs on each."""

    case: AuditCase | TwoStageCase
    selections: int
    hits: tuple[int, int]

    def __add__(self, other: Measurement) -> Measurement:
        hits = (self.hits[0] + other.hits[0], self.hits[1] + other.hits[1])
        return replace(self, selections=self.selections + other.selections, hits=hits)

    @property
    def prediction(self) -> Prediction:
        """The prediction for a correct coordinator."""
        return worst_case_of(self.case).predict()

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


def worst_case_of(case: AuditCase | TwoStageCase) -> WorstCase | TwoStageWorstCase:
    """Return the worst case of a search alone, or of both stages."""
    return worst_case(case) if isinstance(case, AuditCase) else two_stage_worst_case(case)


def measure(
    case: AuditCase | TwoStageCase,
    selections: int,
    coordinator: Coordinator = run_correctly,
    draw_secret: Callable[[], bytes] = new_secret,
) -> Measurement:
    """Make ``selections`` runs on each data set, each with a fresh secret, and count the hits."""
    worst = worst_case_of(case)
    hits = []
    with suppress_output():  # outside the loop: nested uses then cost nothing
        for data in DATA_SETS:
            job = make_job(worst, data)
            hits.append(sum(worst.is_counted(run_once(job, coordinator, draw_secret())) for _ in range(selections)))  # type: ignore[arg-type]
    return Measurement(case, selections, (hits[0], hits[1]))
