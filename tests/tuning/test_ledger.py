"""The ledger: private to its owner and to one coordinator, and without a word of what lost or of what was released."""

import os
import random
import shutil
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from privselect.errors import LedgerError
from privselect.tuning import ledger as module
from privselect.tuning.ledger import Ledger, RunRecord
from privselect.tuning.randomness import DERIVATION_VERSION
from privselect.tuning.trial import Outcome

SECRET = bytes(range(100, 132))
FINGERPRINT = bytes(range(32, 64))
CERTIFICATE = '{"certificate": "' + 5000 * "x" + '"}'


def new_record(trials=1009, secret=SECRET):
    return RunRecord("sha256:" + 64 * "a", CERTIFICATE, "somewhere/out", secret, trials, None, released=False)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def everything_in(folder):
    """The bytes of all files of a folder, the journal among them."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def forms_of(score):
    """A score as a ledger might hold it: SQLite's own form, the machine's, and text of 12 digits or more."""
    return struct.pack(">d", score), struct.pack("<d", score), repr(score).encode(), f"{score:.12g}".encode()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledgers" / "plan-1.sqlite"


@pytest.fixture
def ledger(path):
    opened = Ledger.open(path)
    yield opened
    opened.close()


@pytest.fixture(params=["file", "memory"])
def either(request, path):
    opened = Ledger.open(path) if request.param == "file" else Ledger.in_memory()
    yield opened
    opened.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_folder_the_file_and_its_journal_are_open_to_their_owner_alone(path, umask):
    before = os.umask(umask)
    try:
        ledger = Ledger.open(path)
        ledger.begin(new_record())
        ledger.record_trial(0, Outcome(0.5, b"a"), b"m")
        assert mode_of(path.parent) == 0o700
        assert {mode_of(file) for file in path.parent.iterdir()} == {0o600}
        ledger.destroy_secrets()
        assert {mode_of(file) for file in path.parent.iterdir()} == {0o600}
        ledger.close()
    finally:
        os.umask(before)


def test_a_folder_or_a_file_that_others_can_read_is_refused(path):
    path.parent.mkdir(mode=0o755)
    path.parent.chmod(0o755)
    with pytest.raises(LedgerError, match="0700"):
        Ledger.open(path)
    path.parent.chmod(0o700)
    path.touch()
    path.chmod(0o640)
    with pytest.raises(LedgerError, match="0600"):
        Ledger.open(path)


def test_a_second_coordinator_is_refused_until_the_first_lets_go(path, ledger):
    ledger.begin(new_record())
    with pytest.raises(LedgerError, match="another process is running this plan"):
        Ledger.open(path)
    ledger.record_trial(0, Outcome(0.5, b"a"), b"m")
    assert "another process is running this plan" in opened_elsewhere(path)
    ledger.close()
    assert opened_elsewhere(path) == "opened"


def test_a_second_coordinator_is_refused_before_a_run_is_begun(path, ledger):
    assert not ledger.exists()
    assert "another process is running this plan" in opened_elsewhere(path)


def opened_elsewhere(path):
    """What another process has to say when it opens the ledger."""
    use = (
        "import sys, pathlib\nfrom privselect.tuning.ledger import Ledger\nfrom privselect.errors import LedgerError\n"
        "try:\n    Ledger.open(pathlib.Path(sys.argv[1])).close()\n    print('opened')\nexcept LedgerError as error:\n    print(error)"
    )
    return subprocess.run([sys.executable, "-c", use, str(path)], capture_output=True, text=True, check=True).stdout.strip()


def test_a_run_is_what_was_begun_also_after_opening_again(path):
    ledger = Ledger.open(path)
    assert ledger.run_record() is None
    ledger.begin(new_record())
    ledger.set_fingerprint(FINGERPRINT)
    ledger.record_trial(1, Outcome(0.5, b"artifact"), b"m")
    ledger.close()
    ledger = Ledger.open(path)
    found = ledger.run_record()
    assert (found.plan, found.certificate, found.target) == (new_record().plan, CERTIFICATE, "somewhere/out")
    assert (found.secret, found.trials, found.fingerprint, found.released) == (SECRET, 1009, FINGERPRINT, False)
    assert list(ledger.missing_slots(4)) == [0, 2, 3]
    ledger.record_trial(2, Outcome(0.4, b"worse"), b"z")
    best = ledger.best()
    assert (best.slot, best.score, best.mark, best.artifact) == (1, 0.5, b"m", b"artifact")
    ledger.close()


def test_a_run_is_begun_once(either):
    either.begin(new_record())
    with pytest.raises(LedgerError):
        either.begin(new_record(trials=3, secret=bytes(32)))
    assert either.run_record().trials == 1009
    assert either.run_record().secret == SECRET


def test_the_first_result_of_a_slot_counts(either):
    either.begin(new_record())
    either.record_trial(0, Outcome(0.25, b"first"), b"m")
    either.record_trial(0, Outcome(0.75, b"second"), b"m")
    either.record_trial(1, None, b"m")
    either.record_trial(1, Outcome(0.75, b"third"), b"m")
    assert either.best().artifact == b"first"
    assert list(either.missing_slots(3)) == [2]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_ties_are_broken_by_the_mark_and_not_by_arrival(either, order):
    either.begin(new_record())
    marks = (b"\x01", b"\xff", b"\x7f")
    for slot in order:
        either.record_trial(slot, Outcome(0.5, b"a%d" % slot), marks[slot])
    assert either.best().slot == 1


def test_without_trials_or_with_failures_alone_there_is_no_best(either):
    either.begin(new_record(trials=0))
    assert either.run_record().trials == 0
    assert either.best() is None
    either.record_trial(0, None, b"m")
    assert either.best() is None


def test_no_score_that_lost_is_in_any_file_after_any_step(path, ledger):
    ledger.begin(new_record())
    rng = random.Random(5)  # noqa: S311
    lost, best = [], None
    for slot in range(60):
        score = rng.random()
        artifact = b"artifact %d " % slot + rng.randbytes(rng.randrange(9000))
        ledger.record_trial(slot, Outcome(score, artifact), rng.randbytes(16))
        if best is not None and best[0] >= score:
            lost.append((score, artifact))
        else:
            lost += [] if best is None else [best]
            best = (score, artifact)
        for name, content in everything_in(path.parent).items():
            for losing, left in lost:
                assert not [form for form in forms_of(losing) if form in content], name
                assert left[:12] not in content
    assert ledger.best().score == best[0]
    assert struct.pack(">d", best[0]) in path.read_bytes()  # the search does find what is there


def test_after_the_release_no_file_holds_a_secret(path, ledger):
    ledger.begin(new_record())
    ledger.set_fingerprint(FINGERPRINT)
    rng = random.Random(6)  # noqa: S311
    outcomes = [Outcome(rng.random(), rng.randbytes(6000)) for _ in range(300)]
    marks = [rng.randbytes(16) for _ in outcomes]
    for slot, (outcome, mark) in enumerate(zip(outcomes, marks, strict=True)):
        ledger.record_trial(slot, outcome, mark)
    ledger.destroy_secrets()
    assert list(everything_in(path.parent)) == ["plan-1.sqlite"]
    content = path.read_bytes()
    assert SECRET not in content
    assert FINGERPRINT not in content
    for outcome, mark in zip(outcomes, marks, strict=True):
        assert not [form for form in forms_of(outcome.score) if form in content]
        assert mark not in content
        assert outcome.artifact[:16] not in content
    found = ledger.run_record()
    assert (found.released, found.plan, found.secret, found.trials, found.fingerprint) == (True, new_record().plan, b"", 0, None)
    assert ledger.best() is None
    ledger.close()
    assert path.read_bytes() == content
    rows = rows_of(path)
    assert rows["run"] == [(1, new_record().plan, None, CERTIFICATE, "somewhere/out", DERIVATION_VERSION, None, None, None, 1)]
    assert rows["done"] == rows["best"] == []


def rows_of(path):
    connection = sqlite3.connect(path)
    rows = {table: connection.execute(f"SELECT * FROM {table}").fetchall() for table in ("run", "done", "best")}  # noqa: S608
    connection.close()
    return rows


def test_what_the_release_leaves_is_the_same_to_the_byte_whatever_was_run(tmp_path):
    left = []
    for trials, opened in ((0, 1), (1, 1), (40, 1), (40, 7), (400, 3)):
        path = tmp_path / f"{trials}-{opened}" / "plan-1.sqlite"
        ledger = Ledger.open(path)
        ledger.begin(new_record(trials, os.urandom(32)))
        ledger.set_fingerprint(os.urandom(32))
        for slot in range(trials):
            if slot % 5 == 0 and opened > slot // 5 + 1:
                ledger.close()
                ledger = Ledger.open(path)
            ledger.record_trial(slot, Outcome(slot + 0.5, os.urandom(10 * slot)), os.urandom(16))
        ledger.destroy_secrets()
        ledger.close()
        left.append(everything_in(path.parent))
    assert all(files == left[0] for files in left)
    assert list(left[0]) == ["plan-1.sqlite"]


def test_what_a_kill_left_in_the_journal_goes_too(path):
    ledger = Ledger.open(path)
    ledger.begin(new_record())
    ledger.set_fingerprint(FINGERPRINT)
    left = everything_in(path.parent)
    ledger.close()
    for name, content in left.items():  # as a kill would have left it
        (path.parent / name).write_bytes(content)
        (path.parent / name).chmod(0o600)
    assert any(SECRET in content for name, content in left.items() if name.endswith("-journal"))
    ledger = Ledger.open(path)
    ledger.destroy_secrets()
    assert list(everything_in(path.parent)) == [path.name]
    ledger.close()
    assert list(everything_in(path.parent)) == [path.name]


def test_the_old_file_is_overwritten_not_only_unnamed(path, ledger):
    ledger.begin(new_record())
    ledger.record_trial(0, Outcome(0.123456789, b"artifact" * 2000), b"m")
    kept = path.parent / "kept"
    kept.hardlink_to(path)
    ledger.destroy_secrets()
    assert set(kept.read_bytes()) == {0}


@pytest.mark.parametrize("stop", ["_create_private", "_connect", "_create", "sync_folder", "_overwrite"])
def test_a_failure_while_secrets_are_destroyed_leaves_the_run_or_its_tombstone(path, monkeypatch, stop):
    ledger = Ledger.open(path)
    ledger.begin(new_record())
    ledger.record_trial(0, Outcome(0.5, b"artifact"), b"m")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, stop, full)
        with pytest.raises(LedgerError, match="No space left"):
            ledger.destroy_secrets()
    ledger.close()
    ledger = Ledger.open(path)
    if ledger.run_record().released:
        assert stop in {"sync_folder", "_overwrite"}
    else:
        assert ledger.best().artifact == b"artifact"
        ledger.destroy_secrets()
    ledger.close()
    assert list(everything_in(path.parent)) == ["plan-1.sqlite"]
    assert SECRET not in path.read_bytes()


def test_nothing_is_written_to_folders_for_temporary_files(path, monkeypatch, tmp_path):
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    for name in ("TMPDIR", "SQLITE_TMPDIR", "TEMP", "TMP"):
        monkeypatch.setenv(name, str(elsewhere))
    monkeypatch.setattr(tempfile, "tempdir", None)
    before = elsewhere.stat().st_mtime_ns  # changes with every name in it, also one that is gone again
    ledger = Ledger.open(path)
    ledger.begin(new_record())
    for slot in range(200):
        ledger.record_trial(slot, Outcome(slot + 0.5, bytes(20_000)), b"m")
    ledger.destroy_secrets()
    ledger.close()
    assert elsewhere.stat().st_mtime_ns == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("trials", [0, 3])
def test_no_journal_is_left_by_an_orderly_end(path, trials):
    ledger = Ledger.open(path)
    ledger.begin(new_record())
    for slot in range(trials):
        ledger.record_trial(slot, Outcome(slot + 0.5, b"a"), b"m")
    ledger.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_empty_file_and_one_left_before_the_run_began_are_fresh(path):
    path.parent.mkdir(mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    ledger = Ledger.open(path)
    assert ledger.run_record() is None
    left = path.with_name("copy-1.sqlite")
    shutil.copy(path, left)  # as a kill would leave it
    for opened in (ledger, Ledger.open(left)):
        opened.begin(new_record())
        assert opened.run_record().trials == 1009
        opened.close()


def make_text(path):
    path.write_bytes(b"a diary, not a ledger\n" * 300)


def make_other_database(path):
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE run (only INTEGER)")
    connection.execute("INSERT INTO run VALUES (1)")
    connection.commit()
    connection.close()


def make_write_ahead(path):
    source = path.with_name("source")
    connection = sqlite3.connect(source)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE a (b)")
    connection.commit()
    for ending in ("", "-wal", "-shm"):
        shutil.copy(f"{source}{ending}", f"{path}{ending}")
    connection.close()
    source.unlink()


def make_ledger(path, change="", trials=2000):
    path.unlink()
    ledger = Ledger.open(path)
    ledger.begin(new_record())
    with ledger._transaction():
        ledger._connection.executemany("INSERT INTO done VALUES ('search', ?)", [(slot,) for slot in range(trials)])
    ledger.close()
    if change:
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.commit()
        connection.close()


def make_truncated(path):
    make_ledger(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_scrambled(path):
    make_ledger(path)
    content = bytearray(path.read_bytes())
    content[4096 * 2 : 4096 * 5] = random.Random(7).randbytes(4096 * 3)  # noqa: S311
    path.write_bytes(bytes(content))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (make_text, "is not a ledger of privselect; nothing in it was changed"),
        (make_other_database, "is not a ledger of privselect; nothing in it was changed"),
        (make_write_ahead, "is not a ledger of privselect; nothing in it was changed"),
        (make_truncated, "is damaged; nothing in it was changed"),
        (make_scrambled, "is damaged; nothing in it was changed"),
        (lambda path: make_ledger(path, "PRAGMA user_version = 1"), "has format 1; this version of privselect reads format 2"),
        (lambda path: make_ledger(path, "PRAGMA application_id = 1"), "is not a ledger of privselect; nothing in it was changed"),
        (lambda path: make_ledger(path, "UPDATE run SET derivation = derivation + 1"), "was started by another version of privselect"),
        (lambda path: make_ledger(path, "DELETE FROM run"), "is damaged: it contains no run"),
    ],
    ids=["text", "database", "write-ahead", "truncated", "scrambled", "format", "application", "derivation", "empty"],
)
def test_what_is_not_a_sound_ledger_is_refused_and_left_as_it_is(path, make, said):
    path.parent.mkdir(mode=0o700)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    make(path)
    for file in path.parent.iterdir():
        file.chmod(0o600)
    before, times = everything_in(path.parent), {file.name: file.stat().st_mtime_ns for file in path.parent.iterdir()}
    with pytest.raises(LedgerError) as caught:
        opened_and_asked(path)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert everything_in(path.parent) == before
    assert {file.name: file.stat().st_mtime_ns for file in path.parent.iterdir()} == times


def opened_and_asked(path):
    ledger = Ledger.open(path)
    try:
        ledger.run_record()
    finally:
        ledger.close()


def test_a_tombstone_of_another_version_is_a_tombstone(path, ledger):
    ledger.begin(new_record())
    ledger.destroy_secrets()
    ledger.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE run SET derivation = 99")
    connection.commit()
    connection.close()
    ledger = Ledger.open(path)
    assert ledger.run_record().released
    ledger.close()


@pytest.mark.parametrize("place", ["/dev/null/ledger/a-1.sqlite", "/proc/none/a-1.sqlite"])
def test_a_place_that_cannot_be_written_is_refused_in_one_sentence(place):
    with pytest.raises(LedgerError, match="must be a writable file") as caught:
        Ledger.open(Path(place))
    assert "\n" not in str(caught.value)


def test_representations_tell_nothing(either):
    either.begin(new_record())
    either.record_trial(0, Outcome(0.123456789, b"artifact"), b"mark")
    told = repr(either) + repr(either.run_record()) + repr(either.best()) + repr(Outcome(0.123456789, b"artifact"))
    assert not [secret for secret in ("1009", "0.1234", "artifact", "mark'", "xxx", str(SECRET)) if secret in told]
