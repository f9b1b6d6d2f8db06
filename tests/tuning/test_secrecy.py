"""K, losing scores and what trials say are found nowhere: not in files, outputs, representations or errors."""

import importlib.util
import os
import sqlite3
import struct
import sys
import threading
import traceback
import warnings
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

import privselect as ps
from privselect.errors import AbortedError, LedgerError
from privselect.tuning.executors import Serial
from privselect.tuning.ledger import Best, Ledger, RunRecord
from privselect.tuning.randomness import Randomness, Stream
from privselect.tuning.runner import RunDraws, Runner, RunnerOptions
from privselect.tuning.space import Space
from privselect.tuning.suggest import Suggest
from privselect.tuning.trial import Outcome, TrialSetup, run_trial
from run_apart import run_apart

SCRIPT = Path(__file__).with_name("secret_run.py")
CANARY = "canary-4711"
SECRET = bytes(range(100, 132))
EXECUTORS = ["serial", "processes"]


def tree_of(folder):
    """Names, modes, sizes and bytes of all below, and the times of what was released."""
    found = []
    for path in sorted(folder.rglob("*")):
        status = path.stat()
        time = status.st_mtime_ns if "released" in path.parts else None
        found.append((str(path.relative_to(folder)), status.st_mode, status.st_size if path.is_file() else None, time))
        found.append(path.read_bytes() if path.is_file() else None)
    return found


@pytest.mark.parametrize("kind", ["same", "same stages"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_runs_with_the_same_winner_and_different_k_leave_the_same(tmp_path, executor, kind):
    # By these seeds K is 28 and 60. Nothing else of the secret may be seen either: in each run other trials fail, talk and take time.
    runs = {}
    for seed in (12, 5):
        runs[seed] = run_apart(tmp_path / "place", SCRIPT, kind, ".", seed, EXECUTOR=executor)
        (tmp_path / "place").rename(tmp_path / str(seed))
    for name in ("work", "temporary", "home"):
        assert tree_of(tmp_path / "12" / name) == tree_of(tmp_path / "5" / name)
    assert runs[12].returncode == runs[5].returncode == 0, runs[12].stderr.decode()
    assert runs[12].stdout == runs[5].stdout
    assert runs[12].stderr == runs[5].stderr == b"ends\n"
    assert runs[12].stdout.startswith(b"begins\nreleased ")
    assert CANARY.encode() not in runs[12].stdout
    assert [path.name for path in (tmp_path / "5" / "work").iterdir()] == ["released"]
    assert not list((tmp_path / "5" / "temporary").iterdir())
    # The ledgers, too, are the same once the run is released.
    assert tree_of(tmp_path / "12" / "ledgers") == tree_of(tmp_path / "5" / "ledgers")


def score_forms(score):
    """Decimal by 15 to 17 digits, with and without "0.", hexadecimal, and binary of 64 bits in both orders.

    Not as 32-bit floats: one of a thousand patterns of 4 bytes is found by chance in half a megabyte with probability 0.1.
    """
    decimals = [f"{score:.{digits}g}" for digits in (15, 16, 17)] + [repr(score)]
    binary = struct.pack(">d", score), struct.pack("<d", score)
    texts = decimals + [text.removeprefix("0.") for text in decimals] + [score.hex(), *(form.hex() for form in binary)]
    return [*binary, *(text.encode() for text in texts), *(text.upper().encode() for text in texts)]


def count_forms(count):
    """As text between characters that are neither digits nor letters, hexadecimal, and binary of 64 bits in both orders.

    The bare digits and shorter binary forms are found by chance in hashes, floats and models, so they are not looked for.
    """
    marks = [b" %s ", b'"%s"', b"=%s", b": %s", b"(%s)", b"/%s", b"%s trials"]
    texts = [str(count).encode(), hex(count).encode()]
    return [mark % text for mark in marks for text in texts] + [struct.pack(">q", count), struct.pack("<q", count)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["canaries", "canaries stages"])
def test_a_run_of_1009_trials_leaves_neither_their_number_nor_a_losing_score_anywhere(tmp_path, kind):
    ended = run_apart(tmp_path, SCRIPT, kind, ".", 4692, EXECUTOR="serial")
    assert ended.returncode == 0, ended.stderr.decode()
    scores = [float(line) for line in (tmp_path / "aside" / "scores").read_text().split()]
    trained = kind.endswith("stages")
    assert len(scores) == len(set(scores)) == 1009 + trained
    best = max(scores[:1009])  # the score of the final training is not released either
    lost = [form for score in scores if score != best for form in score_forms(score)]
    places = {str(path): path.read_bytes() for name in ("work", "temporary", "home", "ledgers") for path in files_in(tmp_path / name)}
    places |= {"stdout": ended.stdout, "stderr": ended.stderr}
    assert len(places) == 4 + 1 + 2  # the release, the tombstone, the outputs; no core, no cache, no log
    for name, content in places.items():
        assert not [form for form in lost if form in content], name
        assert not [form for form in count_forms(1009) if form in content], name
        assert CANARY.encode() not in content, name
    assert any(form in places["stdout"] for form in score_forms(best))  # the search does find what is there
    # In mid-run the ledger holds the best so far and none that lost.
    snapshot = {path.name: path.read_bytes() for path in files_in(tmp_path / "aside" / "snapshot")}
    before = scores[: scores.index(held_in(tmp_path / "aside" / "snapshot"))]
    assert before
    for name, content in snapshot.items():
        assert not [form for score in before for form in score_forms(score) if form in content], name


def files_in(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def held_in(folder):
    """The best score in a copy of a ledger."""
    (path,) = folder.glob("*.sqlite")
    connection = sqlite3.connect(path)
    try:
        return connection.execute("SELECT score FROM best").fetchone()[0]
    finally:
        connection.close()


def failing(error):
    def objective(_candidate, _data, _randomness):
        try:
            int(CANARY)
        except ValueError:
            raise error  # noqa: B904 - as a trainer might

    return objective


@pytest.mark.parametrize(
    "error", [ValueError(CANARY), SystemExit(CANARY), MemoryError(CANARY), RecursionError(CANARY), BaseException(CANARY)]
)
def test_what_a_trial_raises_is_not_shown(capfd, error):
    assert run_trial(TrialSetup(failing(error), None), {}, SECRET) is None
    assert capfd.readouterr() == ("", "")


def test_an_interrupt_does_not_show_what_the_trial_was_handling():
    with pytest.raises(KeyboardInterrupt) as caught:
        run_trial(TrialSetup(failing(KeyboardInterrupt(CANARY)), None), {}, SECRET)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_warnings_of_a_trial_are_not_told_to_a_caller_who_records_them():
    def objective(_candidate, _data, _randomness):
        warnings.warn(CANARY, UserWarning, stacklevel=1)
        return 1.0, None

    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        assert run_trial(TrialSetup(objective, None), {}, SECRET) == Outcome(1.0, b"")
        assert heard == []
        warnings.warn("of the caller", UserWarning, stacklevel=1)
    assert [str(warning.message) for warning in heard] == ["of the caller"]


def test_what_a_trial_says_is_not_shown_and_outputs_are_back_afterwards(capfd):
    spec = importlib.util.spec_from_file_location("secret_run", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def objective(_candidate, _data, _randomness):
        with pytest.warns(UserWarning, match=CANARY):
            script.chatter(0.1)
        return 1.0, None

    assert run_trial(TrialSetup(objective, None), {}, SECRET) == Outcome(1.0, b"")
    print("heard")  # noqa: T201
    os.write(1, b"heard\n")
    assert capfd.readouterr() == ("heard\nheard\n", "")


def test_warnings_and_hooks_of_the_caller_hear_nothing(monkeypatch):
    heard = []
    for module, hook in ((threading, "excepthook"), (sys, "unraisablehook")):
        monkeypatch.setattr(module, hook, heard.append)

    class Dying:
        def __del__(self):
            raise ValueError(CANARY)

    def objective(_candidate, _data, _randomness):
        warnings.warn(CANARY, stacklevel=1)
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        Dying()
        return 1.0, None

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert run_trial(TrialSetup(objective, None), {}, SECRET) == Outcome(1.0, b"")
        assert not seen
        assert not heard
        warnings.warn("heard", stacklevel=1)
        assert len(seen) == 1
    assert threading.excepthook == sys.unraisablehook == heard.append


def test_representations_tell_nothing_secret():
    space = Space({"depth": ps.Choice([4711])})
    drawn = RunDraws(SECRET, 1009, space)
    randomness = Randomness(SECRET)
    suggest = Suggest(Stream(SECRET))
    suggest.choice("depth", [4711])
    outcome = Outcome(0.4711, b"4711")
    future = Future()
    future.set_result(outcome)
    ledger = Ledger.in_memory()
    begun = RunRecord("4711", "4711", "4711", SECRET, 1009, SECRET, released=False)
    ledger.begin(RunRecord("p", "c", None, SECRET, 1009, None, released=False))
    work = TrialSetup(len, np.array([4711]))
    runner = Runner(ledger, drawn, RunnerOptions(Serial()))
    told = [drawn, randomness, suggest, outcome, future, begun, Best(1009, 0.4711, SECRET, b"4711"), work, runner, ledger, Stream(SECRET)]
    told += [randomness.stream(), RunnerOptions(Serial(), stop_at=1.0), ps.NoisyCount(len, sigma=2.0, holdout=[4711])]
    for thing in told:
        for text in (repr(thing), str(thing), f"{thing}", repr([thing]), repr({"a": (thing,)})):
            assert not [secret for secret in ("1009", "4711", "\\x64", "defghi", SECRET.hex()) if secret in text]


class Broken(Ledger):
    """Fails when the third result comes in."""

    def record_trial(self, slot, outcome, mark, stage):
        if slot == 2:
            raise RuntimeError("unexpected")
        super().record_trial(slot, outcome, mark, stage)


def test_an_unexpected_error_of_the_runner_shows_neither_k_nor_scores():
    def objective(_candidate, _data, randomness):
        return 0.4711 + randomness.integer(128) / 2**138, None

    ledger = Broken.in_memory()
    ledger.begin(RunRecord("p", "c", None, SECRET, 1009, None, released=False))
    drawn = RunDraws(SECRET, 1009, Space({"depth": ps.Choice([8192])}))
    with pytest.raises(RuntimeError) as caught:
        Runner(ledger, drawn, RunnerOptions(Serial())).run(TrialSetup(objective, None))
    told = "".join(traceback.format_exception(caught.value))
    assert not [secret for secret in ("1009", "0.4711", "8192", repr(SECRET)) if secret in told.replace("0.4711 + r", "")]


def test_a_full_disk_is_told_without_a_word_of_what_was_written():
    ledger = Ledger.in_memory()
    ledger.begin(RunRecord("p", "c", None, SECRET, 1009, None, released=False))
    ledger._connection.execute("PRAGMA max_page_count = 5")
    with pytest.raises(LedgerError, match="the disk is full") as caught:
        ledger.record_trial(0, Outcome(0.4711, bytes(10**6)), SECRET)
    assert not [secret for secret in ("4711", "1009") if secret in str(caught.value)]
    assert caught.value.__suppress_context__


def failing_space(suggest):
    raise ValueError(f"{CANARY} {suggest.integer('depth', 10**6, 2 * 10**6)}")


def test_what_a_space_raises_after_the_draw_is_not_shown():
    drawn = RunDraws(SECRET, 1009, Space(failing_space))
    ledger = Ledger.in_memory()
    ledger.begin(RunRecord("p", "c", None, SECRET, 1009, None, released=False))
    with pytest.raises(AbortedError) as caught:
        Runner(ledger, drawn, RunnerOptions(Serial())).run(TrialSetup(len, None))
    told = "".join(traceback.format_exception(caught.value))
    assert f"{CANARY} 1" not in told
    assert "1009" not in told
