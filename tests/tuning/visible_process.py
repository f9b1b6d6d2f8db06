"""A visible search that can be killed: each line of JSON on stdin makes one child, which is killed as told; the answer is its exit code."""

import json
import math
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import privselect as ps
from privselect.tuning import release as release_module
from privselect.tuning import visible_training
from privselect.tuning.ledger import Ledger
from privselect.tuning.visible_ledger import VisibleLedger
from privselect.tuning.visible_search import VisibleSearch

TRIALS = 6
DATA = {"x": np.arange(50.0)}


class Objective:
    """Tells a file of the test the stage, its candidate and its noise."""

    def __init__(self, folder):
        self.folder = Path(folder)

    def __call__(self, candidate, data, randomness, stage):
        noise = randomness.numpy().normal()
        appended(self.folder / "calls", json.dumps([stage, candidate, noise]))
        time.sleep(0.01)
        if candidate["rate"] < 0.02:
            raise ValueError("a failure, as happens")
        return -abs(math.log(candidate["rate"] / 0.3)) + 0.01 * noise, {"weights": np.array([data["x"].mean(), noise])}


def choose(results):
    """The next candidate, a function of all scores so far."""
    best = max((trial for trial in results if trial.score is not None), key=lambda trial: trial.score, default=None)
    if best is None:
        return {"rate": 0.01 * 3.0 ** len(results)}
    return {"rate": best.candidate["rate"] * (1.5 if len(results) % 2 else 0.8)}


def searched(folder):
    """The whole call: always the same, whether it begins the search or goes on with it."""
    with VisibleSearch(
        Objective(folder),
        data=DATA,
        mechanism=ps.Gaussian(sigma=10),
        visible=TRIALS,
        final=ps.Gaussian(sigma=4),
        score="public",
        delta=1e-6,
        export="arrays",
        executor="serial",
        ledger=Path(folder) / "the ledgers",
        out=Path(folder) / "released",
        insecure_seed=6,
    ) as search:
        while search.left:
            search.run(choose(search.results))
        search.train()


def appended(path, line):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


AIMED = {
    "begin": (Ledger, "begin"),
    "set_fingerprint": (Ledger, "set_fingerprint"),
    "begin_trial": (VisibleLedger, "begin_trial"),
    "finish_trial": (VisibleLedger, "finish_trial"),
    "choose_final": (VisibleLedger, "choose_final"),
    "record_trial": (Ledger, "record_trial"),
    "release": (visible_training.VisibleTraining, "release"),
    "write_release": (visible_training, "write_release"),
    "destroy_secrets": (Ledger, "destroy_secrets"),
}
assert visible_training.write_release is release_module.write_release


def killed_at_line(aim, number):
    """Kill this process when the n-th line within the function is about to be executed, over all its calls."""
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
        sys.settrace(lambda frame, *_: lines if "tuning" in frame.f_code.co_filename else None)
        try:
            return function(*arguments, **named)
        finally:
            sys.settrace(None)

    setattr(owner, name, traced)


def child(order):
    if order.get("within"):
        killed_at_line(order["within"], order["line"])
    try:
        searched(order["folder"])
    except BaseException as error:  # noqa: BLE001 - told to the test
        appended(Path(order["folder"]) / "refused", repr(error))
        os._exit(3)
    os._exit(0)


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        order, begun = json.loads(line), time.monotonic()
        process = os.fork()
        if process == 0:
            child(order)
        if order.get("after") is not None:
            time.sleep(order["after"])
            os.kill(process, signal.SIGKILL)  # not waited for yet, so the number is still its own
        _, status = os.waitpid(process, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - begun}), file=answers, flush=True)


if __name__ == "__main__":
    main()
