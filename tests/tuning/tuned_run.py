"""A run of the tuner that can be killed: a process that imports privselect once and makes each run in a child, which it kills.

It reads one JSON line for each child: the folder, the executor, whether a final training follows the search, and when to kill it: after
so many seconds, or at the n-th line that is executed in one of the tuner's functions. It answers with the exit code, -9 if the kill came
in time, and the seconds it took.
"""

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import privselect as ps
from privselect.counts import Count
from privselect.errors import PrivselectError
from privselect.tuning import ledger as ledger_module
from privselect.tuning import tuning_run as run_module
from privselect.tuning.ledger import Ledger
from privselect.tuning.progress import Progress

LAW = ps.Geometric(mean=30)
DATA = {"x": np.arange(50.0), "y": np.arange(50) % 3}
SECRETS_NAME = "the ledgers"


class Objective:
    """A few milliseconds; tells a file of the test which trial it is; loses its own worker once where told to."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, candidate, data, randomness, stage):
        trial = f"{randomness.integer(128):032x}"
        appended(self.folder / "calls", trial)
        rng = randomness.numpy()
        time.sleep(0.005 + 0.01 * rng.random())
        with contextlib.suppress(FileNotFoundError):
            (self.folder / "lose a worker").unlink()  # by one worker alone, once
            os.kill(os.getpid(), signal.SIGKILL)
        score = float(rng.normal() + 0.1 * candidate["depth"])
        if score < -1.0 and stage == "search":
            raise ValueError("a failure, as happens")
        return score, {"weights": rng.normal(size=40) + data["x"].mean(), "trial": np.array(trial)}


def tuned(folder, executor, *, stages=False, **options):
    """The run: always the same call, whether it begins the run or goes on with it."""
    if stages:
        options |= {"final": ps.Gaussian(sigma=5), "transfer": halved}
    return ps.tune(
        Objective(folder),
        {"rate": ps.LogUniform(1e-3, 1.0), "depth": ps.Choice([1, 2, 3], ["1/2", "1/3", "1/6"])},
        data=DATA,
        mechanism=ps.Gaussian(sigma=4),
        count=LAW,
        score="public",
        delta=1e-6,
        export="arrays",
        fallback={"weights": np.zeros(40)},
        executor=executor,
        workers=None if executor == "serial" else 2,
        ledger=Path(folder) / SECRETS_NAME,
        out=Path(folder) / "released",
        insecure_seed=6,
        **options,
    )


def halved(candidate):
    return {**candidate, "rate": max(candidate["rate"] / 2, 1e-3)}


def appended(path, line):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def spied_draws(folder):
    """Every draw of K is written to a file of the test, before it is used."""
    original = Count.sample

    def sample(law, entropy=None):
        drawn = original(law, entropy)
        appended(Path(folder) / "draws", drawn)
        return drawn

    Count.sample = sample


AIMED = {
    "open_run": (run_module, "open_run"),
    "begin": (Ledger, "begin"),
    "stage_begins": (Progress, "stage_begins"),
    "set_fingerprint": (Ledger, "set_fingerprint"),
    "record_trial": (Ledger, "record_trial"),
    "stages": (run_module.TuningRun, "_run_stages"),
    "release": (run_module.TuningRun, "_release"),
    "write_release": (run_module, "write_release"),
    "destroy_secrets": (Ledger, "destroy_secrets"),
    "replace": (ledger_module, "_replace_with_tombstone"),
    "overwrite": (ledger_module, "_overwrite"),
}


def killed_at_line(aim, number, skipped):
    """Kill this process when the n-th line within the function is about to be executed, the tuner's functions that it calls included.

    The first ``skipped`` calls of the function do not count.
    """
    owner, name = AIMED[aim]
    function, left = getattr(owner, name), number

    def lines(_frame, event, _argument):
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return lines

    def traced(*arguments, **named):
        nonlocal skipped
        skipped -= 1
        if skipped >= 0:
            return function(*arguments, **named)
        sys.settrace(lambda frame, *_: lines if "tuning" in frame.f_code.co_filename else None)
        try:
            return function(*arguments, **named)
        finally:
            sys.settrace(None)

    setattr(owner, name, traced)


def child(order):
    spied_draws(order["folder"])
    if order.get("within"):
        killed_at_line(order["within"], order["line"], order.get("call", 0))
    try:
        tuned(order["folder"], order["executor"], stages=order["stages"])
    except PrivselectError as error:
        appended(Path(order["folder"]) / "refused", str(error))
        os._exit(3)
    except BaseException as error:  # noqa: BLE001 - told to the test
        appended(Path(order["folder"]) / "refused", repr(error))
        os._exit(4)
    os._exit(0)


def conducted(order):
    begun = time.monotonic()
    process = os.fork()
    if process == 0:
        child(order)
    if order.get("after") is not None:
        time.sleep(order["after"])
        os.kill(process, signal.SIGKILL)  # not waited for yet, so the number is still its own
    _, status = os.waitpid(process, 0)
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begun}


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(conducted(json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
