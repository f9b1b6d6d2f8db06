"""One trial of a visible search: its result, its draws, and its record in the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from privselect.tuning.distributions import check_option
from privselect.tuning.ledger import SEARCH
from privselect.tuning.randomness import derive_key
from privselect.tuning.runner import Runner, RunnerOptions
from privselect.tuning.suggest import FIXED, STREAM
from privselect.tuning.trial import unpack_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from privselect.tuning.ledger import Ledger
    from privselect.tuning.space import Candidate
    from privselect.tuning.trial import Outcome
    from privselect.tuning.visible_ledger import VisibleLedger, VisibleRow
    from privselect.tuning.visible_run import OpenVisibleRun, VisibleRun


@dataclass(frozen=True)
class VisibleTrial:
    """One trial and its result."""

    number: int  # from 1
    candidate: Candidate
    score: float | None  # None if the trial failed
    artifact: Any = None
    distributions: dict[str, Any] | None = None  # of each hyperparameter, if the objective drew them itself

    @property
    def failed(self) -> bool:
        """Whether the trial failed."""
        return self.score is None


def read_trial(run: VisibleRun, current: OpenVisibleRun, row: VisibleRow) -> VisibleTrial:
    """Return a trial that is done from its row in the ledger."""
    export, content = current.setups.search.export, exported_content(run, row)
    artifact = None if export is None or content is None else export.decode(content)
    distributions = unpack_trial(row.artifact).distributions if run.spec.define_by_run and row.artifact is not None else None
    return VisibleTrial(row.slot + 1, with_tuples(row.candidate), row.score, artifact, distributions)


def exported_content(run: VisibleRun, row: VisibleRow) -> bytes | None:
    """Return what a trial exported; None if it failed."""
    if row.artifact is None or not run.spec.define_by_run:
        return row.artifact
    return unpack_trial(row.artifact).content


def run_begun_trial(run: VisibleRun, current: OpenVisibleRun, row: VisibleRow, facts: Callable[[], dict[str, Any]]) -> None:
    """Run the trial that was begun, with its recorded candidate and its own randomness, and record the result."""
    secret, candidate = current.record.secret, with_tuples(row.candidate)
    sent = {STREAM: derive_key(secret, "candidate", row.slot).hex(), FIXED: candidate} if run.spec.define_by_run else candidate
    record = _TrialRecord(current.ledger, facts, packed=run.spec.define_by_run)
    Runner(cast("Ledger", record), _TrialDraw(secret, row.slot, sent), RunnerOptions(run.engine, None, run.losses)).run(
        current.setups.search
    )


def with_tuples(candidate: Mapping[str, Any]) -> Candidate:
    """Return a candidate in the form in which a space draws it: numbers of Python, and tuples for lists."""
    return {name: check_option(value) for name, value in candidate.items()}


@dataclass(frozen=True, repr=False)
class _TrialDraw:
    """The draws of one visible trial: its candidate is given, its randomness comes from the secret."""

    stage: ClassVar[str] = SEARCH
    secret: bytes
    slot: int
    chosen: Candidate

    @property
    def trials(self) -> int:
        """Every trial up to this one counts."""
        return self.slot + 1

    def candidate(self, slot: int) -> Candidate:  # noqa: ARG002 - there is one slot
        """Return the candidate."""
        return self.chosen

    def seed(self, slot: int) -> bytes:
        """Return the trial's seed."""
        return derive_key(self.secret, "trial", slot)

    def mark(self, slot: int) -> bytes:  # noqa: ARG002 - nothing depends on it
        """Return no tie mark, because every trial is shown."""
        return b""


@dataclass(frozen=True, repr=False)
class _TrialRecord:
    """What the runner gets as its ledger while it runs one visible trial."""

    ledger: VisibleLedger
    facts: Callable[[], dict[str, Any]]
    packed: bool  # whether the outcome contains the candidate that the objective drew

    def missing_slots(self, trials: int, _stage: str) -> Iterator[int]:
        """Yield the slot of the trial."""
        yield trials - 1

    def record_trial(self, slot: int, outcome: Outcome | None, _mark: bytes, _stage: str) -> None:
        """Record the result with its candidate."""
        candidate = unpack_trial(outcome.artifact).candidate if self.packed and outcome is not None else None
        self.ledger.finish_trial(slot, candidate, outcome, self.facts())

    def best(self, _stage: str) -> None:
        """Return None, because every trial is kept."""
