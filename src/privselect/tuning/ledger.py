"""The ledger: the one place where a run's secrets are kept, until the release destroys them.

One SQLite file for each run, readable by its owner alone and opened by the coordinator alone. The secret is drawn once, in the
transaction that creates the run, together with K; everything else that is random is derived from the secret, so that a run that was
killed goes on as if it had not been. Of the trials, only which are done and the best so far are kept: a score that lost is never
written anywhere.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.atomic_files import sync_folder
from privselect._util.validation import format_value
from privselect.errors import LedgerError
from privselect.tuning.randomness.key_derivation import DERIVATION

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO
    from pathlib import Path

    from privselect.tuning.trial import Outcome

_APPLICATION = 0x70_73_6C_65  # "psle", in the header of the file: a ledger of privselect
_FORMAT = 1
_SCHEMA = """
CREATE TABLE run (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    plan TEXT NOT NULL,           -- the hash of what is run
    certificate TEXT NOT NULL,    -- issued before K was drawn
    target TEXT,                  -- the folder that the release is written to
    derivation INTEGER NOT NULL,
    secret BLOB,                  -- NULL after the release
    trials INTEGER,               -- K; NULL after the release
    fingerprint BLOB,             -- of the data, keyed with the secret; NULL before the data is known and after the release
    released INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE done (slot INTEGER PRIMARY KEY);
CREATE TABLE best (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    slot INTEGER NOT NULL, score REAL NOT NULL, mark BLOB NOT NULL, artifact BLOB NOT NULL
);
"""


@dataclass(frozen=True, repr=False)
class Begun:
    """A run as its ledger knows it."""

    plan: str
    certificate: str
    target: str | None
    secret: bytes
    trials: int
    fingerprint: bytes | None
    released: bool


@dataclass(frozen=True, repr=False)
class Best:
    """The best trial so far: its slot, score, tie mark and artifact."""

    slot: int
    score: float
    mark: bytes
    artifact: bytes


class Ledger:
    """The ledger of one run, in a file or, for runs that need not survive their process, in memory."""

    def __init__(self, connection: sqlite3.Connection, where: Path | None) -> None:
        self._connection = connection
        self._where = where
        self._bar: tuple[float, bytes] | None = None  # the best so far, so that a trial that lost needs no look at the file
        best = self.best() if where is not None and self.exists() else None  # in memory there is nothing yet
        if best is not None:
            self._bar = (best.score, best.mark)

    def __repr__(self) -> str:
        return "Ledger(...)"

    # -- opening --------------------------------------------------------------------------------------------------------------

    @classmethod
    def in_memory(cls) -> Ledger:
        """Behind the same class, for a run that cannot be resumed."""
        return cls(_connected(":memory:"), None)

    @classmethod
    def open(cls, path: Path) -> Ledger:
        """The ledger in a file, created if there is none; refused where it is not ours, or where another coordinator has it."""
        _create_private(path)
        _refuse_wal(path)
        with _told(path):
            connection = _connected(path)
        try:
            with _told(path):
                _lock(connection)
                _check_ours(connection, path)
                return cls(connection, path)
        except BaseException:
            connection.close()
            raise

    @staticmethod
    def peek(path: Path) -> str | None:
        """The folder that an unfinished run in this file is to be released to, without a lock; None where that cannot be told."""
        try:
            connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True)
            try:
                rows = connection.execute("SELECT target FROM run WHERE released = 0").fetchall()
            finally:
                connection.close()
        except sqlite3.Error:
            return None  # of another version, no ledger, or just being changed: not ours to judge
        return rows[0][0] if rows else None

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def exists(self) -> bool:
        """Whether a run was begun."""
        return bool(self._ask("SELECT count(*) FROM sqlite_schema WHERE name = 'run'")[0][0])

    # -- the run --------------------------------------------------------------------------------------------------------------

    def begin(self, begun: Begun) -> None:
        """Create the run: the secret and K, in one transaction, once and for all."""
        with self._transaction():
            _create(self._connection, (begun.plan, begun.certificate, begun.target, DERIVATION, begun.secret, begun.trials, 0))

    def begun(self) -> Begun | None:
        """The run, if one was begun."""
        if not self.exists():
            return None
        rows = self._ask("SELECT plan, certificate, target, secret, trials, fingerprint, released, derivation FROM run")
        if len(rows) != 1:
            raise LedgerError(f"the ledger {self._named()} is damaged: it holds no run")
        plan, certificate, target, secret, trials, fingerprint, released, derivation = rows[0]
        if derivation != DERIVATION and not released:
            raise LedgerError(f"the ledger {self._named()} was begun by another version of privselect, which alone can finish it")
        return Begun(plan, certificate, target, secret or b"", trials or 0, fingerprint, bool(released))

    def bind(self, fingerprint: bytes) -> None:
        """Remember which data the run is on."""
        with self._transaction():
            self._connection.execute("UPDATE run SET fingerprint = ?", (fingerprint,))

    # -- the trials -----------------------------------------------------------------------------------------------------------

    def missing(self, trials: int) -> Iterator[int]:
        """The slots below ``trials`` that are not done, one after the other."""
        for slot in range(trials):
            if not self._ask("SELECT 1 FROM done WHERE slot = ?", (slot,)):
                yield slot

    def record(self, slot: int, outcome: Outcome | None, mark: bytes) -> None:
        """A slot's first result counts; of a result that is not the best so far nothing is kept."""
        best = outcome if outcome is not None and (self._bar is None or (outcome.score, mark) > self._bar) else None
        # Where the best so far loses, the journal must not keep it either.
        with self._transaction(keep_journal=best is None):
            if self._connection.execute("INSERT OR IGNORE INTO done VALUES (?)", (slot,)).rowcount == 0:
                return
            if best is not None:
                self._connection.execute("INSERT OR REPLACE INTO best VALUES (1, ?, ?, ?, ?)", (slot, best.score, mark, best.artifact))
        if best is not None:
            self._bar = (best.score, mark)

    def best(self) -> Best | None:
        """The best trial so far, if one did not fail."""
        rows = self._ask("SELECT slot, score, mark, artifact FROM best")
        return Best(*rows[0]) if rows else None

    # -- the end --------------------------------------------------------------------------------------------------------------

    def destroy_secrets(self) -> None:
        """After the release: the secret, K, the fingerprint, the trials and the winner's seed go; what is left is the tombstone.

        It is made anew and takes the ledger's place at once: a file that had held the run would tell of K by its size, and by how
        often SQLite counted it changed. What the old file held is then overwritten.
        """
        rows = self._ask("SELECT plan, certificate, target, derivation FROM run")
        with _told(self._where):
            tombstone = (*rows[0], None, None, 1)
            if self._where is None:
                self._connection.close()
                self._connection = _connected(":memory:")
                _create(self._connection, tombstone)
            else:
                _replace(self._where, tombstone)
                self._connection.close()
                self._connection = _connected(self._where)
        self._bar = None

    # -- within ---------------------------------------------------------------------------------------------------------------

    def _ask(self, question: str, values: tuple[object, ...] = ()) -> list[tuple[Any, ...]]:
        with _told(self._where):
            return self._connection.execute(question, values).fetchall()

    @contextlib.contextmanager
    def _transaction(self, *, keep_journal: bool = True) -> Iterator[None]:
        """All or nothing. What it changes stays readable in SQLite's journal until the next one, unless that is not to be kept."""
        with _told(self._where):
            if self._where is not None:
                self._connection.execute(f"PRAGMA journal_size_limit = {-1 if keep_journal else 0}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")
                raise

    def _named(self) -> str:
        return "in memory" if self._where is None else format_value(str(self._where))


def _connected(where: Path | str) -> sqlite3.Connection:
    return sqlite3.connect(where, isolation_level=None, timeout=0.0, check_same_thread=False)


def _create(connection: sqlite3.Connection, run: tuple[object, ...]) -> None:
    """A ledger's tables, with its one run."""
    # One statement at a time: executescript would commit in between.
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    connection.execute(
        "INSERT INTO run (only, plan, certificate, target, derivation, secret, trials, released) VALUES (1, ?, ?, ?, ?, ?, ?, ?)", run
    )
    connection.execute(f"PRAGMA application_id = {_APPLICATION}")
    connection.execute(f"PRAGMA user_version = {_FORMAT}")


def _replace(path: Path, tombstone: tuple[object, ...]) -> None:
    """A kill leaves the one or the other, whole."""
    part = path.with_name(f".{path.name}.part")
    try:
        part.unlink(missing_ok=True)
        _create_private(part)
        made = _connected(part)
        try:
            made.execute("PRAGMA journal_mode = MEMORY")  # nobody reads the file before it is whole
            made.execute("BEGIN")
            _create(made, tombstone)
            made.execute("COMMIT")
        finally:
            made.close()
        # Between transactions the journal is of no use; one that was left by a kill would outlast the connection.
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
        raise LedgerError(f"the ledger {format_value(str(path))} could not be written ({error.strerror}); the run can be resumed") from None


def _overwrite(file: FileIO) -> None:
    left = file.seek(0, os.SEEK_END)
    file.seek(0)
    while left > 0:
        left -= file.write(bytes(min(left, 2**20)))
    os.fsync(file.fileno())


def _create_private(path: Path) -> None:
    """A file that its owner alone can read, in a folder that its owner alone can enter."""
    folder = path.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode & 0o777
        if mode & 0o077:
            raise LedgerError(
                f"the folder of a ledger must be open to its owner alone (mode 0700), got {format_value(str(folder))} of mode {mode:04o}"
            )
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
        if path.stat().st_mode & 0o077:
            raise LedgerError(f"a ledger must be readable by its owner alone (mode 0600), got {format_value(str(path))}")
    except OSError as error:
        raise LedgerError(f"the ledger must be a file that can be written, got {format_value(str(path))} ({error.strerror})") from None


def _refuse_wal(path: Path) -> None:
    """To open a database that has a write-ahead log changes it; a ledger never has one."""
    if path.with_name(f"{path.name}-wal").exists():
        raise LedgerError(f"the file {format_value(str(path))} is no ledger of privselect; nothing in it was changed")


def _lock(connection: sqlite3.Connection) -> None:
    """Held until the connection closes, also by the death of the process; works without shared memory, so on network file systems."""
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA secure_delete = ON")  # what is deleted is overwritten
    connection.execute("PRAGMA temp_store = MEMORY")  # nothing of it in a folder for temporary files
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN EXCLUSIVE")
    connection.execute("COMMIT")


def _check_ours(connection: sqlite3.Connection, path: Path) -> None:
    if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
        return  # a file that was just made, perhaps by a coordinator that was killed before it began the run
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise LedgerError(f"the file {format_value(str(path))} is no ledger of privselect; nothing in it was changed")
    if version != _FORMAT:
        raise LedgerError(f"the ledger {format_value(str(path))} is of format {version}, this privselect reads format {_FORMAT}")
    if connection.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
        raise LedgerError(f"the ledger {format_value(str(path))} is damaged; nothing in it was changed")


@contextlib.contextmanager
def _told(where: Path | None) -> Iterator[None]:
    """What SQLite complains about, as one sentence."""
    try:
        yield
    except sqlite3.Error as error:
        name = "in memory" if where is None else format_value(str(where))
        raise LedgerError(_REASONS.get(getattr(error, "sqlite_errorcode", 0) & 0xFF, _ELSE).format(name=name)) from None


_ELSE = "the ledger {name} could not be read or written"
_REASONS = {
    sqlite3.SQLITE_BUSY: "the ledger {name} is in use: another coordinator is working on this run",
    sqlite3.SQLITE_LOCKED: "the ledger {name} is in use: another coordinator is working on this run",
    sqlite3.SQLITE_NOTADB: "the file {name} is no ledger of privselect; nothing in it was changed",
    sqlite3.SQLITE_CORRUPT: "the ledger {name} is damaged; nothing in it was changed",
    sqlite3.SQLITE_FULL: "the disk is full: the ledger {name} could not be written; the run can be resumed when there is room",
    sqlite3.SQLITE_IOERR: "the ledger {name} could not be read or written; the run can be resumed when the disk works again",
    sqlite3.SQLITE_READONLY: "the ledger {name} must be a file that can be written",
}
