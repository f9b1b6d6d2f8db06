"""SIGKILL at any moment of a visible search: the same results and the same release, and never more trials than planned."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("visible_process.py")
TRIALS = 6
# Where a child is killed at any line, and about how many lines are executed there in a search.
AIMED = {
    "begin": 40,
    "set_fingerprint": 15,
    "begin_trial": 130,
    "finish_trial": 110,
    "choose_final": 25,
    "record_trial": 30,
    "release": 150,
    "write_release": 60,
    "destroy_secrets": 70,
}


class Conductor:
    """Hands orders to visible_process.py."""

    def __init__(self):
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen([sys.executable, SCRIPT], **pipes, text=True, env=environment)
        assert self.process.stdout.readline() == "ready\n"

    def child(self, folder, **when):
        self.process.stdin.write(json.dumps({"folder": str(folder), **when}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def conductor():
    conductor = Conductor()
    yield conductor
    assert conductor.process.communicate() == ("", "")


@pytest.fixture(scope="module")
def uninterrupted(conductor, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uninterrupted")
    answer = conductor.child(folder)
    assert answer["code"] == 0, (folder / "refused").read_text()
    calls = calls_of(folder)
    assert [stage for stage, *_ in calls] == ["search"] * TRIALS + ["final"]
    assert len({noise for *_, noise in calls}) == TRIALS + 1
    return tree_of(folder / "released"), calls, answer["seconds"]


def calls_of(folder):
    path = folder / "calls"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def tree_of(folder):
    return [(str(path.relative_to(folder)), path.read_bytes()) for path in sorted(folder.iterdir())]


def finished(conductor, uninterrupted, folder, orders):
    """Kill a search by these orders and let it end; how often it was killed."""
    released, planned, _ = uninterrupted
    folder.mkdir()
    kills = 0
    for order in [*orders, *[{}] * 3]:
        answer = conductor.child(folder, **order)
        if answer["code"] == 3:  # a kill after the end of a search came too late
            assert "was already run and released" in (folder / "refused").read_text()
            break
        assert answer["code"] in {0, -9}, (folder / "refused").read_text()
        kills += answer["code"] == -9
        if (folder / "released").exists():
            assert tree_of(folder / "released") == released
        # No noise but the planned one, and each with its own candidate, however often a trial was begun.
        assert all(call in planned for call in calls_of(folder))
    assert tree_of(folder / "released") == released
    done = [call for number, call in enumerate(calls_of(folder)) if call not in calls_of(folder)[:number]]
    assert done == planned  # in order: a trial begins when all earlier ones are done
    assert len(list((folder / "the ledgers").iterdir())) == 1
    assert {path.name for path in folder.iterdir()} <= {"calls", "released", "refused", "the ledgers"}
    return kills


def moment(rng, seconds):
    if rng.random() < 0.4:
        return {"after": rng.uniform(0.0, seconds)}
    aim = rng.choice(list(AIMED))
    return {"within": aim, "line": rng.randrange(AIMED[aim])}


@pytest.mark.parametrize("aim", AIMED)
def test_a_search_killed_where_it_records_something_goes_on(conductor, uninterrupted, aim, tmp_path):
    orders = [{"within": aim, "line": round(share * AIMED[aim])} for share in (0.1, 0.5, 0.8)]
    assert finished(conductor, uninterrupted, tmp_path / "search", orders) >= 1


@pytest.mark.soak
def test_many_kills(conductor, uninterrupted, tmp_path, campaign):
    rng = random.Random(21) if os.environ.get("CI") else random.SystemRandom()  # noqa: S311 - of moments, not of secrets
    kills, number = 0, 0
    while kills < campaign(200):
        number += 1
        orders = [moment(rng, uninterrupted[2]) for _ in range(rng.randint(1, 8))]
        kills += finished(conductor, uninterrupted, tmp_path / str(number), orders)
