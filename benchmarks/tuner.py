"""Benchmarks of the tuner: the coordinator's cost per trial, the gain of a second process, and the growth of memory with K."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from statistics import median

from lines import Line, seconds
from memory import peak_of

from privselect.tuning.distributions import Uniform
from privselect.tuning.executors import Serial
from privselect.tuning.executors.processes import Processes
from privselect.tuning.ledger import Ledger, RunRecord
from privselect.tuning.runner import RunDraws, Runner, RunnerOptions
from privselect.tuning.space import Space
from privselect.tuning.trial import TrialSetup

TRIALS = 10_000
SPACE = Space({"x": Uniform(0.0, 1.0)})
BUSY = 0.05  # seconds of work in one trial
BUSY_TRIALS = 60


def tuner_lines() -> list[Line]:
    with tempfile.TemporaryDirectory() as folder:  # accessible to its owner only, as a ledger needs
        memory, file = run(Ledger.in_memory(), TRIALS), run(Ledger.open(Path(folder) / "bench.sqlite"), TRIALS)
    ratios = [busy(1) / busy(2) for _ in range(3)]
    memory_100, memory_all = (
        peak_of(f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import tuner; tuner.in_memory({n})")
        for n in (100, TRIALS)
    )
    return [
        Line("tuner: coordinator time per trial, ledger in memory", 1e3 * memory / TRIALS, "ms", 1.0),
        Line("tuner: coordinator time per trial, ledger in a file", 1e3 * file / TRIALS, "ms", 5.0),
        # Smaller is better: the time of two processes relative to one.
        Line("tuner: time of two processes relative to one (CPU-bound trials)", 1.0 / median(ratios), "x", 1.0 / 1.8),
        Line("tuner: peak memory with 10,000 trials relative to 100", memory_all / memory_100, "x", 1.1),
    ]


def run(ledger: Ledger, trials: int) -> float:
    secret = os.urandom(32)
    ledger.begin(RunRecord("sha256:" + 64 * "0", "{}", None, secret, trials, None, released=False))
    return seconds(lambda: Runner(ledger, RunDraws(secret, trials, SPACE), RunnerOptions(Serial())).run(TrialSetup(nothing, None)))


def in_memory(trials: int) -> None:
    run(Ledger.in_memory(), trials)


def busy(workers: int) -> float:
    """Return the seconds for the trials, without starting the workers."""
    setup = TrialSetup(spin, None)
    executor = Processes(workers).open(setup)
    try:
        started = [executor.submit(_run_trial, {}, os.urandom(32)) for _ in range(2 * workers)]
        for future in started:
            future.result()
        return seconds(
            lambda: [future.result() for future in [executor.submit(_run_trial, {}, os.urandom(32)) for _ in range(BUSY_TRIALS)]]
        )
    finally:
        executor.shutdown()


def nothing(_candidate: object, _data: object, _randomness: object) -> tuple[float, None]:
    return 0.5, None


def spin(_candidate: object, _data: object, _randomness: object) -> tuple[float, None]:
    stop_at = time.process_time() + BUSY
    while time.process_time() < stop_at:
        pass
    return 0.5, None


def _run_trial(setup: TrialSetup, candidate: dict[str, object], seed: bytes) -> object:
    from privselect.tuning.trial import run_trial

    return run_trial(setup, candidate, seed)
