"""The trials of one run: draw the candidates, hand them to workers, keep the best. Whether it was interrupted makes no difference."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from privselect.errors import AbortedError, ParameterError
from privselect.tuning.plan_violation import Breached
from privselect.tuning.randomness.key_derivation import Stream, derived
from privselect.tuning.trial import perform

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    from privselect.tuning.executors.base import Engine
    from privselect.tuning.ledger import Best, Ledger
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.trial import Outcome, Work

    _Result = Outcome | Breached | None

_AHEAD = 2  # trials submitted for each worker: the next is there when one is done, and memory does not grow with K
_MARK_BYTES = 16
_in_worker = cast("Callable[[Candidate, bytes], _Result]", perform)  # which the executor hands the work as well


@dataclass(frozen=True, repr=False)
class Drawn:
    """What the secret of a run says: K, and of each slot the candidate, the trial's randomness and the mark that breaks ties."""

    secret: bytes
    trials: int
    space: Space

    def candidate(self, slot: int) -> Candidate:
        """From the space's law, independently of all others."""
        try:
            return self.space.draw(Stream(derived(self.secret, "candidate", slot)))
        except Exception:  # noqa: BLE001 - a function of the user's
            # Not a word of why: it would tell of what was drawn. What goes wrong often shows before the draw, with its text.
            raise AbortedError("the space failed to draw a candidate; nothing is released") from None

    def seed(self, slot: int) -> bytes:
        """Handed to the worker, which learns nothing else."""
        return derived(self.secret, "trial", slot)

    def mark(self, slot: int) -> bytes:
        """Of two equal scores the one with the greater mark wins: neither arrival nor the slot has a say."""
        return derived(self.secret, "mark", slot)[:_MARK_BYTES]


@dataclass(frozen=True)
class Conduct:
    """How the trials are run: nothing here changes which of them wins."""

    engine: Engine
    slots: int | None = None  # run so many trials, the law's largest K, and drop those beyond K
    losses: int = 3  # how often one trial may lose its worker before the run is given up
    ends: float | None = None  # on the clock of time.monotonic: later than this nothing is released
    watch: Callable[[int, int], object] | None = None  # the curator's view: slots done and in all


class Runner:
    """Runs the missing trials of a run."""

    def __init__(self, ledger: Ledger, drawn: Drawn, conduct: Conduct) -> None:
        self._ledger, self._drawn, self._conduct = ledger, drawn, conduct
        self._executor: Executor | None = None
        self._losses: dict[int, int] = {}
        self._in_flight: dict[Future[_Result], int] = {}
        self._recorded = 0

    def run(self, work: Work) -> Best | None:
        """The best trial of all K, or None where K is 0 or every one failed."""
        total = self._drawn.trials if self._conduct.slots is None else self._conduct.slots
        missing = self._ledger.missing(total)
        room = _AHEAD * self._conduct.engine.workers
        try:
            self._executor = self._conduct.engine.open(work)  # also where no trial is missing: starting up must not tell that K is 0
            while True:
                self._fill(missing, room, work)
                if not self._in_flight:
                    break
                self._collect(work)
                self._tell(total)
        finally:
            self._close()
        self._check_time()
        return self._ledger.best()

    def _fill(self, missing: Any, room: int, work: Work) -> None:
        while len(self._in_flight) < room:
            slot = next(missing, None)
            if slot is None:
                return
            self._check_time()
            self._submit(slot, work)
            if self._conduct.engine.workers == 1 and next(iter(self._in_flight)).done():
                return  # run at once, in this process: recorded before the next one begins

    def _submit(self, slot: int, work: Work) -> None:
        if self._executor is None:
            self._executor = self._conduct.engine.open(work)
        candidate = self._drawn.candidate(slot)
        try:
            future = self._executor.submit(_in_worker, candidate, self._drawn.seed(slot))
        except (KeyboardInterrupt, AbortedError):
            raise
        except Exception as error:  # noqa: BLE001 - an executor whose worker was lost may refuse work
            future = Future()
            future.set_exception(error)
        self._in_flight[future] = slot

    def _collect(self, work: Work) -> None:
        done, _ = wait(self._in_flight, timeout=self._time_left(), return_when=FIRST_COMPLETED)
        self._check_time()
        lost = []
        for future in done:
            slot = self._in_flight.pop(future)
            if future.cancelled() or (raised := future.exception()) is not None:
                _check_able(None if future.cancelled() else raised)
                lost.append(slot)
            else:
                self._record(slot, future.result())
        if lost:
            self._rerun(lost, work)

    def _record(self, slot: int, outcome: _Result) -> None:
        if isinstance(outcome, Breached):
            raise AbortedError(f"{outcome.sentence}; nothing is released")
        # Beyond K a trial is run for the time it takes, and leaves no trace but that.
        counts = slot < self._drawn.trials
        self._ledger.record(slot, outcome if counts else None, self._drawn.mark(slot))
        self._recorded += 1

    def _rerun(self, lost: list[int], work: Work) -> None:
        """The same trials with the same randomness, on fresh workers: all that were under way, as one lost worker may have stopped all."""
        for future, slot in list(self._in_flight.items()):
            if future.done() and not future.cancelled() and future.exception() is None:
                self._record(slot, future.result())
            else:
                lost.append(slot)
        self._in_flight.clear()
        self._close()
        for slot in lost:
            self._losses[slot] = self._losses.get(slot, 0) + 1
            if self._losses[slot] > self._conduct.losses:
                raise AbortedError(
                    f"workers were lost again and again, more than {self._conduct.losses} times for one trial; nothing is released, "
                    "and the run can be resumed when the machine is in order"
                )
        for slot in sorted(lost):
            self._submit(slot, work)

    def _close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
            self._executor = None

    def _time_left(self) -> float | None:
        return None if self._conduct.ends is None else max(self._conduct.ends - time.monotonic(), 0.0)

    def _check_time(self) -> None:
        if self._conduct.ends is not None and time.monotonic() >= self._conduct.ends:
            raise AbortedError("the time is over; nothing is released: the best so far would be another mechanism")

    def _tell(self, total: int) -> None:
        if self._conduct.watch is not None:
            self._conduct.watch(self._recorded, total)


def _check_able(raised: BaseException | None) -> None:
    """A worker that cannot have the work says so, and no other would fare better."""
    if isinstance(raised, ParameterError):
        raise AbortedError(f"{raised}; nothing is released, and the run can be resumed") from None
