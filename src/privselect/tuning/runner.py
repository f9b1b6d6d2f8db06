"""The trials of one stage: draw the candidates, send them to workers, keep the best. Interruptions do not change the result."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, cast

from privselect.errors import AbortedError, ParameterError
from privselect.tuning.isolation import suppress_output
from privselect.tuning.ledger import FINAL, SEARCH
from privselect.tuning.plan_violation import ViolationResult
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.trial import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from privselect.tuning.executors import Engine
    from privselect.tuning.ledger import Best, Ledger
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.trial import Outcome, TrialSetup

    _Result = Outcome | ViolationResult | None

_QUEUED_PER_WORKER = 2  # the next trial waits when one is done, and memory does not grow with K
_MARK_BYTES = 16
_in_worker = cast("Callable[[Candidate, bytes], _Result]", run_trial)  # the executor adds the setup as first argument


class StageDraws(Protocol):
    """What a stage draws from the secret of the run: for each slot the candidate, the trial's randomness, and the mark that breaks ties."""

    @property
    def stage(self) -> str:
        """The name of the stage in the ledger."""

    @property
    def trials(self) -> int:
        """The number of trials that count."""

    def candidate(self, slot: int) -> Candidate:
        """Return the candidate of a slot."""

    def seed(self, slot: int) -> bytes:
        """Return the trial's seed, all that its worker learns about the secret."""

    def mark(self, slot: int) -> bytes:
        """Return the tie mark: of two equal scores the one with the larger mark wins, whatever the order of arrival."""


@dataclass(frozen=True, repr=False)
class RunDraws:
    """The draws of a search: K trials, each with its own candidate."""

    stage: ClassVar[str] = SEARCH
    secret: bytes
    trials: int
    space: Space

    def candidate(self, slot: int) -> Candidate:
        """Draw the slot's candidate from the space, independently of all others."""
        return self._draw(derive_key(self.secret, "candidate", slot))

    def unused_candidate(self) -> Candidate:
        """Draw a candidate that no trial of the search has."""
        return self._draw(derive_key(self.secret, "unused"))

    def seed(self, slot: int) -> bytes:
        """Return the trial's seed, all that its worker learns about the secret."""
        return derive_key(self.secret, "trial", slot)

    def mark(self, slot: int) -> bytes:
        """Return the tie mark."""
        return derive_key(self.secret, "mark", slot)[:_MARK_BYTES]

    def _draw(self, key: bytes) -> Candidate:
        try:
            return self.space.draw(Stream(key))
        except Exception:  # noqa: BLE001 - from the user's function
            # Without the reason, which would reveal what was drawn. validate_space usually finds the error earlier, with its text.
            raise AbortedError("the space failed to draw a candidate; nothing is released") from None


@dataclass(frozen=True, repr=False)
class FinalDraw:
    """The draw of the final training: one trial, whose randomness is independent of the search.

    Without a winner, ``counts`` is false: the training runs all the same, so its absence reveals nothing, and its result is discarded.
    """

    stage: ClassVar[str] = FINAL
    secret: bytes
    trained_with: Candidate
    counts: bool = True

    @property
    def trials(self) -> int:
        """1, or 0 without a winner."""
        return int(self.counts)

    def candidate(self, slot: int) -> Candidate:  # noqa: ARG002 - there is one slot
        """Return the candidate of the training."""
        return self.trained_with

    def seed(self, slot: int) -> bytes:  # noqa: ARG002 - there is one slot
        """Return the training's seed."""
        return derive_key(self.secret, "final")

    def mark(self, slot: int) -> bytes:
        """Return the tie mark, which nothing depends on."""
        return bytes([slot])


@dataclass(frozen=True)
class RunnerOptions:
    """How the trials of a stage are run. Nothing here changes which of them wins."""

    engine: Engine
    padded_trials: int | None = None  # the largest possible number: run this many trials and discard those that do not count
    losses: int = 3  # how often one trial may lose its worker before the run stops
    stop_at: float | None = None  # on the clock of time.monotonic; later than this, nothing is released
    on_progress: Callable[[int, int], object] | None = None  # for the curator: slots done, slots in total


class Runner:
    """Run the missing trials of a stage."""

    def __init__(self, ledger: Ledger, draws: StageDraws, options: RunnerOptions) -> None:
        self._ledger, self._draws, self._options = ledger, draws, options
        self._executor: Executor | None = None
        self._losses: dict[int, int] = {}
        self._in_flight: dict[Future[_Result], int] = {}
        self._recorded = 0

    def run(self, setup: TrialSetup) -> Best | None:
        """Return the best of all trials, or None if there are none or all failed."""
        total = self._draws.trials if self._options.padded_trials is None else self._options.padded_trials
        missing = self._ledger.missing_slots(total, self._draws.stage)
        room = _QUEUED_PER_WORKER * self._options.engine.workers
        try:
            self._executor = self._options.engine.open(setup)  # even if no trial is missing: not starting up would reveal that K is 0
            while True:
                self._fill(missing, room, setup)
                if not self._in_flight:
                    break
                self._collect(setup)
                self._report_progress(total)
        finally:
            self._close()
        self._check_time()
        return self._ledger.best(self._draws.stage)

    def _fill(self, missing: Any, room: int, setup: TrialSetup) -> None:
        while len(self._in_flight) < room:
            slot = next(missing, None)
            if slot is None:
                return
            self._check_time()
            self._submit(slot, setup)
            if self._options.engine.workers == 1 and next(iter(self._in_flight)).done():
                return  # the serial executor runs it immediately: record it before the next one starts

    def _submit(self, slot: int, setup: TrialSetup) -> None:
        if self._executor is None:
            self._executor = self._options.engine.open(setup)
        with suppress_output():  # a space may be a function of the user that prints
            candidate = self._draws.candidate(slot)
        try:
            future = self._executor.submit(_in_worker, candidate, self._draws.seed(slot))
        except (KeyboardInterrupt, AbortedError):
            raise
        except Exception as error:  # noqa: BLE001 - an executor that lost a worker may refuse new trials
            future = Future()
            future.set_exception(error)
        self._in_flight[future] = slot

    def _collect(self, setup: TrialSetup) -> None:
        done, _ = wait(self._in_flight, timeout=self._time_left(), return_when=FIRST_COMPLETED)
        self._check_time()
        lost = []
        for future in done:
            slot = self._in_flight.pop(future)
            if future.cancelled() or (raised := future.exception()) is not None:
                _check_loadable(None if future.cancelled() else raised)
                lost.append(slot)
            else:
                self._record(slot, future.result())
        if lost:
            self._rerun(lost, setup)

    def _record(self, slot: int, outcome: _Result) -> None:
        if isinstance(outcome, ViolationResult):
            raise AbortedError(f"{outcome.message}; nothing is released")
        # A trial beyond those that count is run only to take its time, and leaves no other trace.
        counts = slot < self._draws.trials
        self._ledger.record_trial(slot, outcome if counts else None, self._draws.mark(slot), self._draws.stage)
        self._recorded += 1

    def _rerun(self, lost: list[int], setup: TrialSetup) -> None:
        """Run all trials in flight again, with the same randomness on fresh workers: one lost worker may have stopped all of them."""
        for future, slot in list(self._in_flight.items()):
            if future.done() and not future.cancelled() and future.exception() is None:
                self._record(slot, future.result())
            else:
                lost.append(slot)
        self._in_flight.clear()
        self._close()
        for slot in lost:
            self._losses[slot] = self._losses.get(slot, 0) + 1
            if self._losses[slot] > self._options.losses:
                raise AbortedError(
                    f"one trial lost its worker more than {self._options.losses} times; nothing is released. Fix the machine, then run "
                    "the same command again to resume"
                )
        for slot in sorted(lost):
            self._submit(slot, setup)

    def _close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None

    def _time_left(self) -> float | None:
        return None if self._options.stop_at is None else max(self._options.stop_at - time.monotonic(), 0.0)

    def _check_time(self) -> None:
        if self._options.stop_at is not None and time.monotonic() >= self._options.stop_at:
            raise AbortedError("the run missed its deadline; nothing is released: releasing the best so far would be another mechanism")

    def _report_progress(self, total: int) -> None:
        if self._options.on_progress is not None:
            self._options.on_progress(self._recorded, total)


def _check_loadable(raised: BaseException | None) -> None:
    """Stop the run if a worker could not load the objective or the data; every other worker would fail in the same way."""
    if isinstance(raised, ParameterError):
        raise AbortedError(f"{raised}; nothing is released, and the run can be resumed") from None
