"""What every engine must do, said once; a class of tests inherits what concerns its engine, and makes it by `make`."""

import contextlib
import logging
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import pytest

from privselect.tuning.trial import TrialSetup, run_trial

SEEDS = [bytes([number]) * 32 for number in range(1, 7)]
PATIENCE = 60.0  # seconds; how long a test waits for what comes at once unless the machine is busy
FOR_EVER = 600.0


def everything():  # noqa: C901 - as below
    """An objective that does what its candidate says. Made anew, so that workers get it by value, as from a notebook."""

    def objective(candidate, data, randomness):  # noqa: C901 - a list of things to do
        do = candidate["do"]
        if "file" in candidate:
            with Path(candidate["file"]).open("a") as file:
                file.write(f"{os.getpid()}\n")
        if do == "draw":
            return randomness.numpy().random() + data + candidate.get("shift", 0.0), None
        if do == "raise":
            raise ValueError("private")
        if do == "exit":
            raise SystemExit(3)
        if do == "interrupt":
            raise KeyboardInterrupt
        if do == "nan":
            return math.nan, None
        if do == "nothing":
            return None
        if do == "fill the memory":
            bytearray(1 << 40)
        if do == "sleep":
            time.sleep(candidate["seconds"])
        if do == "speak":
            print("loud")  # noqa: T201
            print("loud", file=sys.stderr)  # noqa: T201
            warnings.warn("loud", stacklevel=1)
            logging.getLogger("loud").critical("loud")
            os.write(1, b"loud\n")
            os.write(2, b"loud\n")
            os.system("echo loud; echo loud >&2")  # noqa: S605, S607
        return float(os.environ.get(candidate.get("variable", ""), "0")), None

    return objective


def work(**options):
    return TrialSetup(everything(), 10.0, **options)


def wait_until(true):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def pids_in(file, least=1):
    """The processes that wrote into the file, once there are enough of them."""
    wait_until(lambda: file.exists() and file.read_text().count("\n") >= least)
    return [int(line) for line in file.read_text().split()]


def is_running(pid):
    """A process that is dead and not yet taken notice of does not run."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return not Path("/proc/self").exists()


class Conformance:
    """All engines."""

    @pytest.fixture
    def engine(self):
        return self.make()

    @pytest.fixture(scope="class")
    @classmethod
    def executor(cls):
        executor = cls.make().open(work())
        yield executor
        executor.shutdown()

    def test_the_outcomes_are_those_of_the_trials(self, executor):
        candidates = [{"do": "draw", "shift": float(i)} for i in range(len(SEEDS))]
        futures = [executor.submit(run_trial, *trial) for trial in zip(candidates, SEEDS, strict=True)]
        assert [future.result(PATIENCE) for future in futures] == [
            run_trial(work(), *trial) for trial in zip(candidates, SEEDS, strict=True)
        ]

    @pytest.mark.parametrize("failure", ["raise", "exit", "nan", "nothing"])
    def test_every_failure_is_one_outcome(self, executor, failure):
        assert executor.submit(run_trial, {"do": failure}, SEEDS[0]).result(PATIENCE) is None

    def test_the_same_trial_twice_is_run_twice(self, executor, tmp_path):
        candidate = {"do": "draw", "file": str(tmp_path / "runs")}
        futures = [executor.submit(run_trial, candidate, SEEDS[0]) for _ in range(3)]
        assert len({future.result(PATIENCE) for future in futures}) == 1
        assert len(pids_in(tmp_path / "runs")) == 3

    def test_a_time_limit_is_a_failure(self, engine):
        if not engine.can_limit_time:
            pytest.skip("this engine cannot")
        executor = engine.open(work(timeout=1.0))
        try:
            assert executor.submit(run_trial, {"do": "sleep", "seconds": FOR_EVER}, SEEDS[0]).result(PATIENCE) is None
            assert executor.submit(run_trial, {"do": "look"}, SEEDS[0]).result(PATIENCE) is not None
        finally:
            executor.shutdown()

    def test_a_memory_limit_is_a_failure(self, engine):
        if not engine.can_limit_memory:
            pytest.skip("this engine cannot")
        executor = engine.open(work(memory_limit=8 << 30))
        try:
            assert executor.submit(run_trial, {"do": "fill the memory"}, SEEDS[0]).result(PATIENCE) is None
            assert executor.submit(run_trial, {"do": "draw"}, SEEDS[0]).result(PATIENCE) is not None
        finally:
            executor.shutdown()

    def test_nothing_is_seen_of_a_trial(self, engine, tmp_path):
        ran = run_script(
            tmp_path, engine, 'print([executor.submit(run_trial, {"do": "speak"}, bytes(32)).result() for _ in range(4)][0].score)'
        )
        assert (ran.stdout, ran.stderr, ran.returncode) == ("0.0\n", "", 0)

    def test_an_objective_of_a_script(self, engine, tmp_path):
        ran = run_script(
            tmp_path, engine, "print(executor.submit(run_trial, {}, bytes(32)).result().score)", "lambda c, d, r: (d + len(seen), None)"
        )
        assert (ran.stdout, ran.stderr, ran.returncode) == ("12.0\n", "", 0)


class Workers:
    """Engines whose workers are other processes of this machine."""

    def test_the_objectives_own_interrupt_is_a_failure(self, engine):
        with contextlib.closing(Closed(engine.open(work()))) as opened:
            assert opened.executor.submit(run_trial, {"do": "interrupt"}, SEEDS[0]).result(PATIENCE) is None

    def test_the_work_is_unpacked_once_in_each_worker(self, engine, tmp_path):
        file = tmp_path / "unpacked"
        with contextlib.closing(Closed(engine.open(TrialSetup(lambda _c, _d, _r: (1.0, None), counted(file))))) as opened:
            futures = [opened.executor.submit(run_trial, {}, seed) for seed in SEEDS * 3]
            assert all(future.result(PATIENCE).score == 1.0 for future in futures)
        pids = pids_in(file)
        assert os.getpid() not in pids
        assert len(set(pids)) == len(pids) <= engine.workers

    def test_a_work_that_cannot_be_loaded_is_told_without_its_text(self, engine):
        with contextlib.closing(Closed(engine.open(TrialSetup(lambda _c, _d, _r: (1.0, None), broken())))) as opened:
            lost = opened.executor.submit(run_trial, {}, SEEDS[0]).exception(PATIENCE)
        assert str(lost) == "the objective and its data must load in a worker, got a LookupError"

    def test_shutdown_stops_a_trial_in_its_middle(self, engine, tmp_path):
        executor = engine.open(work())
        candidate = {"do": "sleep", "seconds": FOR_EVER, "file": str(tmp_path / "pids")}
        futures = [executor.submit(run_trial, candidate, seed) for seed in SEEDS[:4]]
        pids = pids_in(tmp_path / "pids", 2)
        executor.shutdown()
        assert all(future.exception(PATIENCE) is not None for future in futures)
        wait_until(lambda: not any(map(is_running, pids)))
        with pytest.raises(RuntimeError, match="after shutdown"):
            executor.submit(run_trial, candidate, SEEDS[0])
        executor.shutdown()  # again does no harm

    def test_no_worker_outlives_a_killed_coordinator(self, engine, tmp_path):
        pids = tmp_path / "pids"
        candidate = {"do": "sleep", "seconds": FOR_EVER, "file": str(pids)}
        folder = Path(tempfile.mkdtemp(dir="/tmp"))  # a short name, for Ray
        running = start_script(
            tmp_path, engine, f"[executor.submit(run_trial, {candidate!r}, bytes(32)) for _ in range(3)][0].result()", folder=folder
        )
        started = pids_in(pids, 2)
        running.kill()
        wait_until(lambda: not any(map(is_running, started)))
        wait_until(lambda: not list(folder.iterdir()))
        assert running.communicate(timeout=PATIENCE) == ("", "")
        folder.rmdir()

    def test_ctrl_c_reaches_the_coordinator_alone(self, engine, tmp_path):
        pids = tmp_path / "pids"
        candidate = {"do": "sleep", "seconds": FOR_EVER, "file": str(pids)}
        wait = f"""
    try:
        [executor.submit(run_trial, {candidate!r}, bytes(32)) for _ in range(3)][0].result()
    except KeyboardInterrupt:
        print("interrupted")
"""
        running = start_script(tmp_path, engine, wait)
        started = pids_in(pids, 2)
        os.killpg(running.pid, signal.SIGINT)
        assert running.communicate(timeout=PATIENCE) == ("interrupted\n", "")
        wait_until(lambda: not any(map(is_running, started)))

    def lose_one(self, engine, tmp_path):
        """An executor, and two trials in it, of which the worker of one is killed in their middle."""
        executor = engine.open(work())
        candidate = {"do": "sleep", "seconds": 2.0, "file": str(tmp_path / "pids")}
        futures = [executor.submit(run_trial, candidate, seed) for seed in SEEDS[:2]]
        os.kill(pids_in(tmp_path / "pids", 2)[0], signal.SIGKILL)
        return executor, futures

    def test_a_reopened_executor_works(self, engine, tmp_path):
        executor, _ = self.lose_one(engine, tmp_path)
        executor.shutdown()
        with contextlib.closing(Closed(engine.open(work()))) as opened:
            assert opened.executor.submit(run_trial, {"do": "draw"}, SEEDS[0]).result(PATIENCE) == run_trial(
                work(), {"do": "draw"}, SEEDS[0]
            )


class LosesTrials:
    """Engines that tell the runner of a lost worker."""

    def test_a_killed_worker_is_an_exception(self, engine, tmp_path):
        executor, futures = self.lose_one(engine, tmp_path)
        try:
            assert any(future.exception(PATIENCE) is not None for future in futures)
        finally:
            executor.shutdown()


class Closed:
    """So that `contextlib.closing` shuts an executor down."""

    def __init__(self, executor):
        self.executor = executor

    def close(self):
        self.executor.shutdown()


def counted(file):
    """Data that tells each time it is unpacked."""

    class Counted:
        def __init__(self, path):
            self.path = path

        def __setstate__(self, state):
            self.__dict__.update(state)
            with Path(self.path).open("a") as opened:
                opened.write(f"{os.getpid()}\n")

    return Counted(str(file))


def broken():
    class Broken:
        def __init__(self):
            self.some = "state"

        def __setstate__(self, state):
            raise LookupError("private")

    return Broken()


SCRIPT = """
import logging
import sys
sys.path[:0] = {path!r}
from engines_suite import everything
from privselect.tuning.executors import read_engine
from privselect.tuning.trial import TrialSetup, run_trial

seen = [1, 2]

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    executor = read_engine({engine!r}, {workers}).open(TrialSetup({objective}, 10.0))
    {body}
    executor.shutdown()
"""


def start_script(place, engine, body, objective="everything()", folder=None):
    """A program of its own, as a user would write it, in a process group of its own; ``folder`` is for its temporary files."""
    file = place / "script.py"
    path = [str(Path(__file__).parent)]
    file.write_text(SCRIPT.format(path=path, engine=engine.name, workers=engine.workers, objective=objective, body=body))
    quiet = {name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"}
    if folder is not None:
        quiet["TMPDIR"] = str(folder)
    return subprocess.Popen(
        [sys.executable, str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=quiet, start_new_session=True
    )


def run_script(place, engine, body, objective="everything()"):
    running = start_script(place, engine, body, objective)
    try:
        output, errors = running.communicate(timeout=2 * PATIENCE)
    except subprocess.TimeoutExpired:
        running.kill()
        raise
    return subprocess.CompletedProcess(running.args, running.returncode, output, errors)
