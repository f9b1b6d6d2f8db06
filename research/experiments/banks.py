"""Train all banks of the experiment in several processes; an interrupted run continues from the stored banks."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable  # noqa: TC003 - of a dataclass
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING

from research.experiments.bank import stored_bank, train_bank
from research.experiments.settings import REPETITIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from research.experiments.settings import Setting

_WATCH = 2.0  # seconds between two checks


def train_banks(settings: Sequence[Setting], data: str | None, folder: Path, jobs: int) -> None:
    """Train every bank that is missing in ``folder`` and report progress."""
    wanted = [(setting, repetition) for setting in settings for repetition in range(REPETITIONS)]
    missing = [one for one in wanted if stored_bank(folder, *one) is None]
    tell(f"{len(wanted) - len(missing)} of {len(wanted)} banks are there, {len(missing)} to train")
    run_jobs([Job(_named(*one), _work(one[0]), train_bank, (*one, data, folder)) for one in missing], jobs)


@dataclass(frozen=True, slots=True)
class Job:
    """One call for a worker process, with its name for the progress report and its approximate work in arbitrary units."""

    name: str
    work: float
    call: Callable[..., None]
    arguments: tuple[object, ...]


def run_jobs(asked: Sequence[Job], processes: int) -> None:
    """Start the jobs in their order and report progress; after an error no further job starts."""
    began, done = time.monotonic(), 0.0
    whole = sum(job.work for job in asked)
    with ProcessPoolExecutor(processes, initializer=_end_with, initargs=(os.getpid(),)) as pool:
        waiting = {pool.submit(job.call, *job.arguments): job for job in asked}
        try:
            for place, future in enumerate(as_completed(waiting), 1):
                future.result()
                done += waiting[future].work
                left = (time.monotonic() - began) * (whole / done - 1.0) / 60.0
                tell(f"bank {place} of {len(asked)}: {waiting[future].name}; about {left:.0f} minutes left")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # running and queued tasks finish; the rest never start
            raise


def _named(setting: Setting, repetition: int) -> str:
    return f"{setting.name}, repetition {repetition + 1}"


def _work(setting: Setting) -> float:
    """Return the approximate work for a bank in arbitrary units: a cost per step plus a cost per record and step."""
    trainings = len(setting.noise) * setting.candidates + 12
    return trainings * (15.0 if setting.model == "network" else 1.0 + setting.records / 9000.0)


def _end_with(parent: int) -> None:
    """Exit with the parent process: nobody would collect the work of an orphaned worker."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        os._exit(1)

    if os.getpid() != parent:  # threads of the run itself may call this too
        threading.Thread(target=watch, daemon=True).start()


def tell(line: str) -> None:
    """Print a line of progress to stderr."""
    print(line, file=sys.stderr, flush=True)
