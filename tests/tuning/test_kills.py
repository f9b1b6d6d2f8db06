"""SIGKILL at any moment: a run that is taken up again releases what it would have released, and nothing before that.

Each run is made by a child of tuned_run.py with one fixed secret. It is killed again and again, at random moments and at lines of the
code where a run begins, records, releases and destroys its secrets, until one child comes to its end.
"""

import contextlib
import json
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import privselect as ps
from privselect.tuning.randomness import Randomness, derive_key
from privselect.tuning.runner import RunDraws
from privselect.tuning.space import Space

SCRIPT = Path(__file__).with_name("tuned_run.py")
LEDGERS = "the ledgers"
FILES = ["certificate.json", "model.npz", "plan.json", "release.json"]
# Where a child is killed at any line, and about how many lines are executed there in a run.
AIMED = {
    "open_run": 50,
    "begin": 40,
    "set_fingerprint": 15,
    "record_trial": 700,
    "release": 90,
    "write_release": 60,
    "destroy_secrets": 70,
}
MOST_KILLS_OF_A_RUN = 8
# What loky says of a worker whose parent was killed before it had told it anything: words of loky's own, with nothing of a run in them.
ORPHAN = re.compile(
    r"\n\n-{80}\nLokyProcess-\d+ failed with traceback: \n-{80}\nTraceback \(most recent call last\):\n"
    r'  File "[^"\n]*popen_loky_posix\.py", line \d+, in <module>\n    (prep_data|process_obj) = pickle\.load\(from_parent\)\n[ ^~]*\n'
    r"(EOFError: Ran out of input|_pickle\.UnpicklingError: pickle data was truncated)\n\n\n-{80}\n"
)
EXECUTORS = ["serial", "processes"]


class Conductor:
    """Hands orders to tuned_run.py."""

    def __init__(self):
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout.readline() == "ready\n"

    def child(self, folder, executor, **when):
        self.process.stdin.write(json.dumps({"folder": str(folder), "executor": executor, **when}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        output, errors = self.process.communicate()
        return output, ORPHAN.sub("", errors)


@pytest.fixture(scope="module")
def conductor():
    conductor = Conductor()
    yield conductor
    assert conductor.close() == ("", "")  # no child, killed or not, said a word


@pytest.fixture(scope="module")
def uninterrupted(conductor, tmp_path_factory):
    """What a run releases that nobody kills, and how long it takes."""
    folder = tmp_path_factory.mktemp("uninterrupted")
    answer = conductor.child(folder, "serial")
    assert answer["code"] == 0, (folder / "refused").read_text()
    assert lines_of(folder / "draws") == [str(len(lines_of(folder / "calls")))] == ["35"]
    return tree_of(folder / "released"), answer["seconds"]


def lines_of(path):
    return path.read_text().split() if path.exists() else []


def tree_of(folder):
    """Names, bytes, modes and times."""
    places = [folder, *sorted(folder.iterdir())]
    return [(str(p.relative_to(folder)), p.stat().st_mode, p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else None) for p in places]


def look(folder, spare):
    """The run as a copy of its ledger has it, so that the original stays as the kill left it; None where it is not begun."""
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(spare)
    if not (folder / LEDGERS).exists():
        return None
    shutil.copytree(folder / LEDGERS, spare)
    files = [path for path in spare.iterdir() if path.suffix == ".sqlite"]
    assert len(files) <= 1
    for path in files:
        connection = sqlite3.connect(path)
        try:
            if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                secret, trials, released = connection.execute("SELECT secret, trials, released FROM run").fetchone()
                return secret, trials, bool(released), {slot for (slot,) in connection.execute("SELECT slot FROM done")}
        finally:
            connection.close()
    return None


class Watched:
    """One run through its kills: what must hold after each of them is checked there and then."""

    def __init__(self, conductor, executor, folder, expected):
        self.conductor, self.executor, self.folder, self.expected = conductor, executor, folder, expected
        folder.mkdir()
        self.kills = 0
        self.known = None  # secret and K, once they are committed
        self.done = set()
        self.ended = False

    def child(self, **when):
        calls, draws = len(lines_of(self.folder / "calls")), len(lines_of(self.folder / "draws"))
        answer = self.conductor.child(self.folder, self.executor, **when)
        assert answer["code"] in {0, -9}, (self.folder / "refused").read_text()
        self.kills += answer["code"] == -9
        self.ended = answer["code"] == 0
        self._check(lines_of(self.folder / "calls")[calls:], len(lines_of(self.folder / "draws")) - draws)

    def _check(self, called, drawn):
        found = look(self.folder, self.folder.with_name("spare"))
        # K is drawn once: never again after the transaction that keeps it.
        assert drawn <= (self.known is None)
        if self.known is not None:
            # Trials that were done when this child began are not run again.
            seeds = RunDraws(self.known[0], self.known[1], Space({"unused": ps.Integer(0, 1)})).seed
            ids = {f"{Randomness(derive_key(seeds(slot), 'objective')).integer(128):032x}": slot for slot in range(self.known[1])}
            assert {ids[trial] for trial in called}.isdisjoint(self.done)
        assert max(Counter(called).values(), default=1) <= 1 + (self.executor != "serial")  # a lost worker's trials are run again
        out = self.folder / "released"
        if out.exists():
            assert tree_of(out) == self.expected
        if found is None:
            assert self.known is None
            assert not out.exists()
            return
        secret, trials, released, done = found
        if released:
            assert (secret, trials, done) == (None, None, set())
            assert out.exists()
            self.ended = True  # also where the kill came between that and the end of the process
            return
        assert (secret, trials) == (self.known or (secret, trials))
        assert self.done <= done <= set(range(trials))
        self.known, self.done = (secret, trials), done

    def finish(self):
        while not self.ended:
            self.child()
        assert tree_of(self.folder / "released") == self.expected
        names = {path.name for path in self.folder.iterdir()}
        assert names <= {"calls", "draws", "released", LEDGERS}  # no part of a file
        assert len(list((self.folder / LEDGERS).iterdir())) == 1  # nor a journal
        # A run that is over is over.
        assert self.conductor.child(self.folder, self.executor)["code"] == 3
        assert "was already run and released" in (self.folder / "refused").read_text()
        assert tree_of(self.folder / "released") == self.expected


def moment(rng, seconds):
    """When to kill: half of the time anywhere in a run, half of the time at a line that matters."""
    if rng.random() < 0.5:
        return {"after": rng.uniform(0.0, seconds)}
    aim = rng.choice(list(AIMED))
    return {"within": aim, "line": rng.randrange(AIMED[aim])}


def killed_often(conductor, uninterrupted, executor, folder, rng, kills):
    """Runs, each killed several times and then left to end, until there were so many kills; how many runs there were."""
    expected, seconds = uninterrupted
    runs = total = 0
    while total < kills:
        runs += 1
        run = Watched(conductor, executor, folder / str(runs), expected)
        for _ in range(rng.randint(1, MOST_KILLS_OF_A_RUN)):
            if run.ended or total + run.kills >= kills:
                break
            if executor != "serial" and rng.random() < 0.3:
                (run.folder / "lose a worker").touch()
            run.child(**moment(rng, seconds))
        (run.folder / "lose a worker").unlink(missing_ok=True)
        run.finish()
        total += run.kills
    return runs


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_run_that_is_killed_three_times_releases_the_same(conductor, uninterrupted, executor, tmp_path):
    expected, seconds = uninterrupted
    run = Watched(conductor, executor, tmp_path / "run", expected)
    run.child(after=seconds / 2)
    run.child(within="record_trial", line=170)
    run.child(within="write_release", line=9)
    assert run.kills == 3
    assert run.known is not None
    run.finish()


def test_a_kill_while_secrets_are_destroyed_leaves_a_run_or_a_tombstone(conductor, uninterrupted, tmp_path):
    expected, _ = uninterrupted
    run = Watched(conductor, "serial", tmp_path / "run", expected)
    run.child(within="replace", line=1)
    assert (run.folder / "released").exists()
    run.child(within="overwrite", line=7)  # of the file that held the run: its journal was overwritten before
    assert run.kills == 2
    assert not [path for path in (run.folder / LEDGERS).iterdir() if run.known[0] in path.read_bytes()]


def test_a_lost_worker_changes_nothing(conductor, uninterrupted, tmp_path):
    run = Watched(conductor, "processes", tmp_path / "run", uninterrupted[0])
    (run.folder / "lose a worker").touch()
    run.finish()


@pytest.mark.soak
@pytest.mark.parametrize(("executor", "share"), [("serial", 120), ("processes", 80)])
def test_two_hundred_kills(conductor, uninterrupted, executor, share, tmp_path, campaign):
    rng = random.Random(20) if os.environ.get("CI") else random.SystemRandom()  # noqa: S311 - of moments, not of secrets
    runs = killed_often(conductor, uninterrupted, executor, tmp_path, rng, campaign(share))
    print(f"{campaign(share)} kills in {runs} runs on {executor}")  # noqa: T201 - shown with -rP
