"""The same plan and the same secret release the same, wherever the trials run and whoever is killed on the way."""

import contextlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import privselect as ps
from privselect.tuning.executors import read_engine

CANDIDATES = {"x": ps.Uniform(0, 1), "kind": ps.Choice(["a", "b"], ["1/3", "2/3"])}
SEED = 20  # of a run with some dozens of trials, so that both workers have their share


def train(candidate, data, randomness):
    noise = randomness.numpy().normal(size=3)
    if candidate["kind"] == "b" and noise[0] > 1.0:
        raise ValueError  # some trials fail, each time the same ones
    return float(candidate["x"] + noise[1]), {"weights": data * candidate["x"] + noise}


class TrainAndDie:
    """Kills its own worker in the middle of the run, just so many times in all: each death is a file that can be made once."""

    def __init__(self, folder: Path, times: int = 1) -> None:
        self.folder, self.times = str(folder), times

    def __call__(self, candidate, data, randomness):
        seen = len(os.listdir(self.folder))  # noqa: PTH208
        Path(self.folder, str(randomness.integer(128))).touch()
        if seen >= 4 and self.is_next():
            os.kill(os.getpid(), signal.SIGKILL)
        return train(candidate, data, randomness)

    def is_next(self):
        for death in range(min(self.times, 100)):
            with contextlib.suppress(FileExistsError):
                Path(self.folder, f"death {death}").touch(exist_ok=False)
                return True
        return self.times > 100


def released(objective, engine, **options):
    release = ps.tune(
        objective,
        CANDIDATES,
        data=np.arange(3.0),
        mechanism="gaussian(sigma=4)",
        count="geometric(mean=30)",
        score="public",
        delta=1e-6,
        export="arrays",
        executor=read_engine(engine, None if engine == "serial" else 2),
        insecure_seed=SEED,
        ledger=None,
        **options,
    )
    return release.candidate, release.score, release.artifact["weights"].tolist()


@pytest.fixture(scope="module")
def expected():
    return released(train, "serial")


def test_there_is_a_winner_and_it_is_the_same_each_time(expected):
    assert expected == released(train, "serial")
    assert expected[0] is not None


def test_processes(expected):
    assert released(train, "processes") == expected


def test_processes_with_workers_killed(expected, tmp_path):
    assert released(TrainAndDie(tmp_path, times=2), "processes") == expected
    assert len(list(tmp_path.iterdir())) > 6


def test_workers_that_are_lost_for_ever_end_the_run_without_a_release(tmp_path):
    with pytest.raises(ps.errors.AbortedError, match="one trial lost its worker more than 1 times"):
        released(TrainAndDie(tmp_path, times=10**9), "processes", losses=1)


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_clusters(expected, engine):
    assert released(train, engine) == expected


@pytest.mark.engines
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_clusters_with_a_worker_killed(expected, engine, tmp_path):
    assert released(TrainAndDie(tmp_path), engine) == expected
    assert len(list(tmp_path.iterdir())) > 6
