"""SIGKILL at any moment: a run that is taken up again releases what it would have released, and nothing before that.

Each run is made by a child of tuned_run.py with one fixed secret. It is killed again and again, at random moments and at lines of the
code where a run begins, records, releases and destroys its secrets, until one child comes to its end. Runs are of one stage, a search,
or of two: a final training follows.
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
from privselect.tuning.runner import FinalDraw, RunDraws
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
    "stages": 3000,
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
STAGES = pytest.mark.parametrize("stages", [False, True], ids=["search", "two stages"])
TRIALS = 35  # K, by the secret of these runs
FINAL = ("final", 0)


class Conductor:
    """Hands orders to tuned_run.py."""

    def __init__(self):
        environment = {**os.environ, "SOURCE_DATE_EPOCH": "1700000000", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [sys.executable, SCRIPT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
        assert self.process.stdout.readline() == "ready\n"

    def child(self, folder, executor, *, stages, **when):
        self.process.stdin.write(json.dumps({"folder": str(folder), "executor": executor, "stages": stages, **when}) + "\n")
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
    """What a run of one stage, and one of two, releases that nobody kills, and how long it takes."""
    found = {}
    for stages in (False, True):
        folder = tmp_path_factory.mktemp("uninterrupted")
        answer = conductor.child(folder, "serial", stages=stages)
        assert answer["code"] == 0, (folder / "refused").read_text()
        assert lines_of(folder / "draws") == [str(TRIALS)]
        assert len(lines_of(folder / "calls")) == TRIALS + stages
        found[stages] = tree_of(folder / "released"), answer["seconds"]
    assert found[False][0] != found[True][0]
    return found


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
                return secret, trials, bool(released), set(connection.execute("SELECT stage, slot FROM done"))
        finally:
            connection.close()
    return None


class Watched:
    """One run through its kills: what must hold after each of them is checked there and then."""

    def __init__(self, conductor, executor, folder, expected, *, stages):
        self.conductor, self.executor, self.folder, self.expected, self.stages = conductor, executor, folder, expected, stages
        folder.mkdir()
        self.kills = 0
        self.known = None  # secret and K, once they are committed
        self.done = set()
        self.ended = False

    def child(self, **when):
        calls, draws = len(lines_of(self.folder / "calls")), len(lines_of(self.folder / "draws"))
        answer = self.conductor.child(self.folder, self.executor, stages=self.stages, **when)
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
            secret, trials = self.known
            draws = RunDraws(secret, trials, Space({"unused": ps.Integer(0, 1)}))
            seeds = {("search", slot): draws.seed(slot) for slot in range(trials)} | {FINAL: FinalDraw(secret, {}).seed(0)}
            ids = {f"{Randomness(derive_key(seed, 'objective')).integer(128):032x}": slot for slot, seed in seeds.items()}
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
        search = {("search", slot) for slot in range(trials)}
        assert self.done <= done <= search | ({FINAL} if self.stages else set())
        assert FINAL not in done or search <= done  # the training begins when the search has ended
        self.known, self.done = (secret, trials), done

    def finish(self):
        while not self.ended:
            self.child()
        assert tree_of(self.folder / "released") == self.expected
        names = {path.name for path in self.folder.iterdir()}
        assert names <= {"calls", "draws", "released", LEDGERS}  # no part of a file
        assert len(list((self.folder / LEDGERS).iterdir())) == 1  # nor a journal
        # A run that is over is over.
        assert self.conductor.child(self.folder, self.executor, stages=self.stages)["code"] == 3
        assert "was already run and released" in (self.folder / "refused").read_text()
        assert tree_of(self.folder / "released") == self.expected


def moment(rng, seconds):
    """When to kill: half of the time anywhere in a run, half of the time at a line that matters."""
    if rng.random() < 0.5:
        return {"after": rng.uniform(0.0, seconds)}
    aim = rng.choice(list(AIMED))
    return {"within": aim, "line": rng.randrange(AIMED[aim])}


def killed_often(conductor, uninterrupted, executor, folder, rng, kills, *, stages):
    """Runs, each killed several times and then left to end, until there were so many kills; how many runs there were."""
    expected, seconds = uninterrupted[stages]
    runs = total = 0
    while total < kills:
        runs += 1
        run = Watched(conductor, executor, folder / str(runs), expected, stages=stages)
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


@STAGES
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_run_that_is_killed_three_times_releases_the_same(conductor, uninterrupted, executor, stages, tmp_path):
    expected, seconds = uninterrupted[stages]
    run = Watched(conductor, executor, tmp_path / "run", expected, stages=stages)
    run.child(after=seconds / 2)
    run.child(within="record_trial", line=170)
    run.child(within="write_release", line=9)
    assert run.kills == 3
    assert run.known is not None
    run.finish()


def test_a_kill_between_the_stages_and_in_the_second_resumes_there(conductor, uninterrupted, tmp_path):
    expected, _ = uninterrupted[True]
    run = Watched(conductor, "serial", tmp_path / "run", expected, stages=True)
    run.child(within="stage_begins", line=1, call=1)  # the call before is that of the search
    search = {("search", slot) for slot in range(TRIALS)}
    assert (run.kills, run.done) == (1, search)
    run.child(within="record_trial", line=1)  # of the final training, which is the only one left
    assert (run.kills, run.done) == (2, search)
    calls = len(lines_of(run.folder / "calls"))
    run.finish()
    assert len(lines_of(run.folder / "calls")) == calls + 1


@STAGES
def test_a_kill_while_secrets_are_destroyed_leaves_a_run_or_a_tombstone(conductor, uninterrupted, stages, tmp_path):
    expected, _ = uninterrupted[stages]
    run = Watched(conductor, "serial", tmp_path / "run", expected, stages=stages)
    run.child(within="replace", line=1)
    assert (run.folder / "released").exists()
    run.child(within="overwrite", line=7)  # of the file that held the run: its journal was overwritten before
    assert run.kills == 2
    assert not [path for path in (run.folder / LEDGERS).iterdir() if run.known[0] in path.read_bytes()]


@STAGES
def test_a_lost_worker_changes_nothing(conductor, uninterrupted, stages, tmp_path):
    run = Watched(conductor, "processes", tmp_path / "run", uninterrupted[stages][0], stages=stages)
    (run.folder / "lose a worker").touch()
    run.finish()


@pytest.mark.soak
@STAGES
@pytest.mark.parametrize(("executor", "share"), [("serial", 120), ("processes", 80)])
def test_two_hundred_kills(conductor, uninterrupted, executor, share, stages, tmp_path, campaign):
    rng = random.Random(20) if os.environ.get("CI") else random.SystemRandom()  # noqa: S311 - of moments, not of secrets
    runs = killed_often(conductor, uninterrupted, executor, tmp_path, rng, campaign(share), stages=stages)
    print(f"{campaign(share)} kills in {runs} runs on {executor}")  # noqa: T201 - shown with -rP
