"""Train all banks of the experiment in several processes; an interrupted run continues from the stored banks."""

from __future__ import annotations

import os
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
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
    began, done = time.monotonic(), 0.0
    whole = sum(_work(setting) for setting, _ in missing)
    with ProcessPoolExecutor(jobs, initializer=_end_with, initargs=(os.getpid(),)) as pool:
        waiting = {pool.submit(train_bank, *one, data, folder): one for one in missing}
        try:
            for place, future in enumerate(as_completed(waiting), 1):
                setting, repetition = waiting[future]
                future.result()
                done += _work(setting)
                left = (time.monotonic() - began) * (whole / done - 1.0) / 60.0
                tell(f"bank {place} of {len(missing)}: {setting.name}, repetition {repetition + 1}; about {left:.0f} minutes left")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # running and queued tasks finish; the rest never start
            raise


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
