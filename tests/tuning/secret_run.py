"""A run of the tuner for the tests of secrecy, as a script of a user's: ``secret_run.py kind folder seed``.

A kind that ends in "stages" has a final training after its search.
"""

import ctypes
import dataclasses
import logging
import os
import shutil
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import privselect as ps

CANARY = "canary-4711"
LEDGERS = "ledgers"


def same_winner(candidate, data, randomness):
    """The best candidate wins whatever K is; how long a trial takes, what it says and whether it fails is all random."""
    rng = randomness.numpy()
    time.sleep(0.004 * rng.random())
    chatter(rng.random())
    if candidate["depth"] != 3 and rng.random() < 0.3:
        raise ValueError(f"{CANARY} {data[0]}")
    return {1: 0.25, 2: 0.5, 3: 0.75}[candidate["depth"]], {"weights": np.full(20, candidate["depth"])}


def canaries(_candidate, _data, randomness):
    """Each score has 17 digits of its own, told to a file of the test."""
    score = 0.12345678901234567 + randomness.integer(128) / 2**128 / 3
    aside = os.environ["ASIDE"]
    with Path(aside, "scores").open("a", encoding="ascii") as file:
        file.write(f"{score!r}\n")
    scores = Path(aside, "scores").stat().st_size
    if scores > 10_000 and not Path(aside, "snapshot").exists():
        shutil.copytree(Path(os.environ["LEDGERS"]), Path(aside, "snapshot"))
    chatter(score)
    return score, {"weights": np.arange(3.0)}


def chatter(secret):
    """Every way to be heard."""
    text = f"{CANARY} {secret!r}"
    print(text)  # noqa: T201
    print(text, file=sys.stderr)  # noqa: T201
    sys.__stdout__.write(text)
    ctypes.CDLL(None).printf(text.encode())  # which keeps it in a buffer
    os.write(1, text.encode())
    os.write(2, text.encode())
    logging.getLogger(CANARY).critical(text)
    warnings.warn(text, stacklevel=1)
    os.system(f"echo {CANARY}") if secret < 0.13 else None  # noqa: S605


def main():
    kind, folder, seed = sys.argv[1:]
    kind, _, stages = kind.partition(" ")
    logging.basicConfig(stream=sys.stderr, level=logging.DEBUG)
    print("begins", flush=True)  # noqa: T201
    release = ps.tune(
        {"same": same_winner, "canaries": canaries}[kind],
        {"depth": ps.Choice([1, 2, 3])},
        data=np.arange(5.0) + 4711,
        mechanism=ps.Gaussian(sigma=4),
        count=ps.Geometric(mean={"same": 30, "canaries": 300}[kind]),
        final=ps.Gaussian(sigma=5) if stages else None,
        score="public",
        delta=1e-6,
        export="arrays",
        executor=os.environ.get("EXECUTOR", "serial"),
        ledger=os.environ["LEDGERS"],
        out=Path(folder) / "released",
        insecure_seed=int(seed),
    )
    print("released", dataclasses.replace(release, out=None), flush=True)  # noqa: T201
    print("ends", file=sys.stderr)  # noqa: T201


if __name__ == "__main__":
    main()
