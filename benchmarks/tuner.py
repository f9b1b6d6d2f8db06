"""The tuner: what the coordinator costs for each trial, what a second process gains, and whether memory grows with K."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from lines import Line, seconds
from memory import peak_of

from privselect.tuning.executors.processes import Processes
from privselect.tuning.executors import Serial
from privselect.tuning.ledger import RunRecord, Ledger
from privselect.tuning.runner import RunnerOptions, RunDraws, Runner
from privselect.tuning.space import Space, Uniform
from privselect.tuning.trial import TrialSetup

TRIALS = 10_000
SPACE = Space({"x": Uniform(0.0, 1.0)})
BUSY = 0.05  # seconds of work in one trial
BUSY_TRIALS = 60


def tuner_lines() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:  # which only its owner can enter
        memory, file = run(Ledger.in_memory(), TRIALS), run(Ledger.open(Path(folder) / "bench.sqlite"), TRIALS)
    ratios = [busy(1) / busy(2) for _ in range(3)]
    few, many = (
        peak_of(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import tuner; tuner.in_memory({n})")
        for n in (100, TRIALS)
    )
    return [
        Line("tuner: coordinator, a trial that does nothing, ledger in memory", 1e3 * memory / TRIALS, "ms", 1.0),
        Line("tuner: the same, ledger in a file", 1e3 * file / TRIALS, "ms", 5.0),
        # A line is met by what is small: the part of one process's time that two need.
        Line("tuner: two processes, of the time of one (CPU-bound trials)", 1.0 / median(ratios), "x", 1.0 / 1.8),
        Line("tuner: peak memory with 10,000 trials over that with 100", many / few, "x", 1.1),
    ]


def run(ledger: Ledger, trials: int) -> float:
    secret = os.urandom(32)
    ledger.begin(RunRecord("sha256:" + 64 * "0", "{}", None, secret, trials, None, released=False))
    return seconds(lambda: Runner(ledger, RunDraws(secret, trials, SPACE), RunnerOptions(Serial())).run(TrialSetup(nothing, None)))


def in_memory(trials: int) -> None:
    run(Ledger.in_memory(), trials)


def busy(workers: int) -> float:
    """Without the start of the workers, which a run pays once."""
    work = TrialSetup(spin, None)
    executor = Processes(workers).open(work)
    try:
        started = [executor.submit(_perform, {}, os.urandom(32)) for _ in range(2 * workers)]
        for future in started:
            future.result()
        return seconds(lambda: [future.result() for future in [executor.submit(_perform, {}, os.urandom(32)) for _ in range(BUSY_TRIALS)]])
    finally:
        executor.shutdown()


def nothing(_candidate: object, _data: object, _randomness: object) -> tuple[float, None]:
    return 0.5, None


def spin(_candidate: object, _data: object, _randomness: object) -> tuple[float, None]:
    ends = time.process_time() + BUSY
    while time.process_time() < ends:
        pass
    return 0.5, None


def _perform(work: TrialSetup, candidate: dict[str, object], seed: bytes) -> object:
    from privselect.tuning.trial import run_trial

    return run_trial(work, candidate, seed)
