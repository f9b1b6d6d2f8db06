"""The ledger: the only place that keeps a run's secrets, until the release destroys them.

Each run has one SQLite file, readable by its owner only and opened by the coordinator only. The secret and K are drawn once, in the
transaction that creates the run. Everything else random is derived from the secret, so a killed run continues as if it had not been
killed. Of the trials of each stage, the ledger keeps which are done and the best so far: a losing score is never written.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from privselect._util.atomic_files import sync_folder
from privselect._util.validation import format_value
from privselect.errors import LedgerError
from privselect.tuning.randomness import DERIVATION_VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

    from privselect.tuning.trial import Outcome

_APPLICATION = 0x70_73_6C_65  # "psle", in the header of the file: a ledger of privselect
_FORMAT = 2
SEARCH, FINAL = "search", "final"  # the stages of a run
_SCHEMA = """
CREATE TABLE run (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    plan TEXT NOT NULL,           -- the hash of what is run
    problem TEXT,                 -- the hash of the open problem that the plan was solved from; NULL if nothing was open
    certificate TEXT NOT NULL,    -- issued before K was drawn
    target TEXT,                  -- the folder that the release is written to
    derivation INTEGER NOT NULL,
    secret BLOB,                  -- NULL after the release
    trials INTEGER,               -- K; NULL after the release
    fingerprint BLOB,             -- of the data, keyed with the secret; NULL before the data is known and after the release
    released INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE done (stage TEXT NOT NULL, slot INTEGER NOT NULL, PRIMARY KEY (stage, slot)) WITHOUT ROWID;
CREATE TABLE best (
    stage TEXT PRIMARY KEY NOT NULL,
    slot INTEGER NOT NULL, score REAL NOT NULL, mark BLOB NOT NULL, artifact BLOB NOT NULL
);
"""


@dataclass(frozen=True, repr=False)
class RunRecord:
    """What the ledger records about a run."""

    plan: str
    certificate: str
    target: str | None
    secret: bytes
    trials: int
    fingerprint: bytes | None
    released: bool
    problem: str | None = None


class Glance(NamedTuple):
    """The public part of a record."""

    plan: str
    problem: str | None
    certificate: str
    target: str | None
    released: bool


@dataclass(frozen=True, repr=False)
class Best:
    """The best trial of a stage so far: its slot, score, tie mark and artifact."""

    slot: int
    score: float
    mark: bytes
    artifact: bytes


class Ledger:
    """The ledger of one run, in a file, or in memory for a run that need not survive its process."""

    def __init__(self, connection: sqlite3.Connection, path: Path | None) -> None:
        self._connection = connection
        self._path = path
        self._best_keys: dict[str, tuple[float, bytes]] = {}  # the best so far, so a losing trial needs no access to the file
        for stage in (SEARCH, FINAL) if path is not None and self.exists() else ():  # in memory there is nothing yet
            if (best := self.best(stage)) is not None:
                self._best_keys[stage] = (best.score, best.mark)

    def __repr__(self) -> str:
        return "Ledger(...)"

    # -- opening --------------------------------------------------------------------------------------------------------------

    @classmethod
    def in_memory(cls) -> Ledger:
        """Return a ledger in memory, for a run that cannot be resumed."""
        return cls(_connect(":memory:"), None)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """Open the ledger in a file, or create it. Refuse a file that is not a ledger or that another coordinator has open."""
        _create_private(path)
        _refuse_wal(path)
        with _sqlite_errors(path):
            connection = _connect(path)
        try:
            with _sqlite_errors(path):
                _lock(connection)
                _check_is_ledger(connection, path)
                return cls(connection, path)
        except BaseException:
            connection.close()
            raise

    @staticmethod
    def glance(path: Path) -> Glance | None:
        """Return what a file records about its run that is public, without a lock, or None if unknown."""
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
            try:
                rows = connection.execute("SELECT plan, problem, certificate, target, released FROM run").fetchall()
            finally:
                connection.close()
        except sqlite3.Error:
            return None  # another version, not a ledger, or being changed right now
        for plan, problem, certificate, target, released in rows:
            return Glance(plan, problem, certificate, target, bool(released))
        return None

    def close(self) -> None:
        """Close the file and release its lock."""
        self._connection.close()

    def exists(self) -> bool:
        """Return whether a run was started."""
        return bool(self._query("SELECT count(*) FROM sqlite_schema WHERE name = 'run'")[0][0])

    # -- the run --------------------------------------------------------------------------------------------------------------

    def begin(self, record: RunRecord) -> None:
        """Create the run with its secret and K, in one transaction."""
        with self._transaction():
            public = (record.plan, record.problem, record.certificate, record.target, DERIVATION_VERSION)
            _create(self._connection, (*public, record.secret, record.trials, 0))

    def run_record(self) -> RunRecord | None:
        """Return the run, if one was started."""
        if not self.exists():
            return None
        rows = self._query("SELECT plan, certificate, target, secret, trials, fingerprint, released, problem, derivation FROM run")
        if len(rows) != 1:
            raise LedgerError(f"the ledger {self._name()} is damaged: it contains no run")
        plan, certificate, target, secret, trials, fingerprint, released, problem, derivation = rows[0]
        if derivation != DERIVATION_VERSION and not released:
            raise LedgerError(f"the ledger {self._name()} was started by another version of privselect. Resume the run with that version")
        return RunRecord(plan, certificate, target, secret or b"", trials or 0, fingerprint, bool(released), problem)

    def set_fingerprint(self, fingerprint: bytes) -> None:
        """Record the fingerprint of the run's data."""
        with self._transaction():
            self._connection.execute("UPDATE run SET fingerprint = ?", (fingerprint,))

    # -- the trials of a stage ------------------------------------------------------------------------------------------------

    def missing_slots(self, trials: int, stage: str = SEARCH) -> Iterator[int]:
        """Yield the slots below ``trials`` that are not done."""
        for slot in range(trials):
            if not self._query("SELECT 1 FROM done WHERE stage = ? AND slot = ?", (stage, slot)):
                yield slot

    def record_trial(self, slot: int, outcome: Outcome | None, mark: bytes, stage: str = SEARCH) -> None:
        """Record that a slot is done. Its first result counts; a result that is not the best so far is not kept."""
        best_key = self._best_keys.get(stage)
        best = outcome if outcome is not None and (best_key is None or (outcome.score, mark) > best_key) else None
        # When the best so far is replaced, the journal must not keep it either.
        with self._transaction(keep_journal=best is None):
            if self._connection.execute("INSERT OR IGNORE INTO done VALUES (?, ?)", (stage, slot)).rowcount == 0:
                return
            if best is not None:
                values = (stage, slot, best.score, mark, best.artifact)
                self._connection.execute("INSERT OR REPLACE INTO best VALUES (?, ?, ?, ?, ?)", values)
        if best is not None:
            self._best_keys[stage] = (best.score, mark)

    def best(self, stage: str = SEARCH) -> Best | None:
        """Return the best trial of a stage so far, or None if all failed."""
        rows = self._query("SELECT slot, score, mark, artifact FROM best WHERE stage = ?", (stage,))
        return Best(*rows[0]) if rows else None

    # -- after the release --------------------------------------------------------------------------------------------------------------

    def destroy_secrets(self) -> None:
        """Destroy the secret, K, the fingerprint, the trials and the winner's seed; a tombstone remains.

        The tombstone is a new file that replaces the ledger in one step, because the old file's size and SQLite's change counter
        would reveal K. The old content is then overwritten.
        """
        rows = self._query("SELECT plan, problem, certificate, target, derivation FROM run")
        with _sqlite_errors(self._path):
            tombstone = (*rows[0], None, None, 1)
            if self._path is None:
                self._connection.close()
                self._connection = _connect(":memory:")
                _create(self._connection, tombstone)
            else:
                _replace_with_tombstone(self._path, tombstone)
                self._connection.close()
                self._connection = _connect(self._path)
        self._best_keys.clear()

    # -- SQLite ---------------------------------------------------------------------------------------------------------------

    def _query(self, statement: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with _sqlite_errors(self._path):
            return self._connection.execute(statement, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self, *, keep_journal: bool = True) -> Iterator[None]:
        """Run all or nothing. With ``keep_journal``, the replaced content stays readable in SQLite's journal until the next transaction."""
        with _sqlite_errors(self._path):
            if self._path is not None:
                self._connection.execute(f"PRAGMA journal_size_limit = {-1 if keep_journal else 0}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _name(self) -> str:
        return "in memory" if self._path is None else format_value(str(self._path))


def _connect(path: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, timeout=0.0, check_same_thread=False)


def _create(connection: sqlite3.Connection, run: tuple[object, ...]) -> None:
    """Create the tables of a ledger, with its one run."""
    # One statement at a time, because executescript would commit in between.
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO run (only, plan, problem, certificate, target, derivation, secret, trials, released) "
        "VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)",
        run,
    )
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _replace_with_tombstone(path: Path, tombstone: tuple[object, ...]) -> None:
    """Replace the ledger by its tombstone; a kill leaves one or the other complete."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        _create_private(part)
        new = _connect(part)
        try:
            new.execute("PRAGMA journal_mode = MEMORY")  # no process reads the file before it is complete
            new.execute("BEGIN")
            _create(new, tombstone)
            new.execute("COMMIT")
        finally:
            new.close()
        # The journal has no use between transactions; one left by a kill would outlast the connection.
        journal = path.with_name(f"{path.name}-journal")
        if journal.exists():
            with journal.open("r+b", buffering=0) as old:
                _overwrite(old)
            journal.unlink()
        with path.open("r+b", buffering=0) as old:
            part.replace(path)
            sync_folder(path.parent)
            _overwrite(old)
    except OSError as error:
        raise LedgerError(
            f"the ledger {format_value(str(path))} could not be written ({error.strerror}). Run the same command again to resume"
        ) from None


def _overwrite(file: FileIO) -> None:
    left = file.seek(0, os.SEEK_END)
    file.seek(0)
    while left > 0:
        left -= file.write(bytes(min(left, 2**20)))
    os.fsync(file.fileno())


def _create_private(path: Path) -> None:
    """Create a file that only its owner can read, in a folder that only its owner can enter."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode & 0o777
        if mode & 0o077:
            raise LedgerError(
                f"the folder of a ledger must be open to its owner only (mode 0700), got {format_value(str(folder))} of mode {mode:04o}"
            )
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        if path.stat().st_mode & 0o077:
            raise LedgerError(f"a ledger must be readable by its owner only (mode 0600), got {format_value(str(path))}")
    except OSError as error:
        raise LedgerError(f"the ledger must be a writable file, got {format_value(str(path))} ({error.strerror})") from None


def _refuse_wal(path: Path) -> None:
    """Refuse a database with a write-ahead log: opening it would change it, and a ledger never has one."""
    if path.with_name(f"{path.name}-wal").exists():
        raise LedgerError(f"the file {format_value(str(path))} is not a ledger of privselect; nothing in it was changed")


def _lock(connection: sqlite3.Connection) -> None:
    """Lock the file until the connection closes or the process dies. No shared memory is needed, so it works on network file systems."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA secure_delete = ON")  # deleted content is overwritten
    connection.execute("PRAGMA temp_store = MEMORY")  # nothing is written to a folder for temporary files
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")


def _check_is_ledger(connection: sqlite3.Connection, path: Path) -> None:
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        return  # a new file, perhaps of a coordinator that was killed before it started the run
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise LedgerError(f"the file {format_value(str(path))} is not a ledger of privselect; nothing in it was changed")
    if version != _FORMAT:
        raise LedgerError(f"the ledger {format_value(str(path))} has format {version}; this version of privselect reads format {_FORMAT}")
    if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        raise LedgerError(f"the ledger {format_value(str(path))} is damaged; nothing in it was changed")


@contextlib.contextmanager
def _sqlite_errors(path: Path | None) -> Iterator[None]:
    """Turn errors of SQLite into a LedgerError with one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        name = "in memory" if path is None else format_value(str(path))
        raise LedgerError(_MESSAGES.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, _OTHER_ERROR).format(name=name)) from None


_OTHER_ERROR = "the ledger {name} could not be read or written"
_MESSAGES = {
    sqlite3.SQLITE_BUSY: "the ledger {name} is in use: another process is running this plan",
    sqlite3.SQLITE_LOCKED: "the ledger {name} is in use: another process is running this plan",
    sqlite3.SQLITE_NOTADB: "the file {name} is not a ledger of privselect; nothing in it was changed",
    sqlite3.SQLITE_CORRUPT: "the ledger {name} is damaged; nothing in it was changed",
    sqlite3.SQLITE_FULL: "the disk is full: the ledger {name} could not be written. Free some space, then run the command again to resume",
    sqlite3.SQLITE_IOERR: "the ledger {name} could not be read or written. Check the disk, then run the same command again to resume",
    sqlite3.SQLITE_READONLY: "the ledger {name} must be a writable file",
}
