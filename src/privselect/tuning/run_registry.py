"""The folder of ledgers: which runs of a plan were made. The ledger of a released run stays as its tombstone."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import LedgerError
from privselect.tuning.ledger import Ledger

if TYPE_CHECKING:
    from privselect.tuning.ledger import RunRecord

DEFAULT_LEDGER_FOLDER = ".privselect"
_NAME_DIGITS = 24  # hex digits of the plan's hash in the name of a ledger


@dataclass(frozen=True, repr=False)
class OpenedRun:
    """The ledger of the run to start or resume, what it records so far, and the run's number among those of the plan."""

    plan_hash: str
    ledger: Ledger
    record: RunRecord | None
    number: int
    path: Path | None = None

    def cannot_resume(self, reason: str, remedy: str = "") -> LedgerError:
        """Return the error that refuses to resume this run, with the ways to continue."""
        run = self.plan_hash.removeprefix("sha256:")[:8]
        ways = f"{remedy}, or delete" if remedy else "Delete"
        path = format_value(str(self.path))
        return LedgerError(f"cannot resume run {run}: {reason}. {ways} {path} to abandon it (its privacy cost remains spent)")


def open_run(folder: str | Path | None, plan_hash: str, *, again: bool, kind: type[Ledger] = Ledger) -> OpenedRun:
    """Open the ledger of the plan's unfinished run, or of a new run; after a released run, a new one needs ``again``."""
    if folder is None:
        return OpenedRun(plan_hash, kind.in_memory(), None, 1)
    number = 1
    while True:
        path = Path(folder).absolute() / f"{_file_prefix(plan_hash)}-{number}.sqlite"
        if not path.exists():
            _check_again(number, path, again=again)
        ledger = kind.open(path)
        with ExitStack() as undo:
            undo.callback(ledger.close)
            record = ledger.run_record()
            if record is None:
                _check_again(number, path, again=again)
            elif not record.released and record.plan != plan_hash:
                raise LedgerError(f"the ledger {format_value(str(path))} belongs to another plan; nothing in it was changed")
            if record is None or not record.released:
                undo.pop_all()
                return OpenedRun(plan_hash, ledger, record, number, path)
        number += 1


def check_folder_unclaimed(folder: str | Path | None, plan_hash: str, out: Path | None) -> None:
    """Refuse to start if an unfinished run of another plan is to be released to the same folder."""
    if folder is None or out is None:
        return
    for path in sorted(Path(folder).glob("*-*.sqlite")):
        if path.name.startswith(_file_prefix(plan_hash)):
            continue
        found = Ledger.glance(path)
        if found is not None and not found.released and found.target == str(out):
            raise LedgerError(
                f"`out` must not belong to an unfinished run of another plan, got {format_value(str(out))}. Resume that run with its own "
                f"plan, choose another folder, or delete {format_value(str(path))} to abandon it (its privacy cost remains spent)"
            )


def find_run_of_problem(folder: str | Path, problem: str) -> str | None:
    """Return the certificate of a run of the same open problem, of an unfinished one if there is one."""
    runs = [found for path in sorted(Path(folder).glob("*-*.sqlite")) if (found := Ledger.glance(path)) and found.problem == problem]
    runs.sort(key=lambda found: found.released)
    return runs[0].certificate if runs else None


def _file_prefix(plan_hash: str) -> str:
    return plan_hash.removeprefix("sha256:")[:_NAME_DIGITS]


def _check_again(number: int, path: Path, *, again: bool) -> None:
    if number > 1 and not again:
        raise LedgerError(
            f"this plan was already run and released (see {format_value(str(path.parent))}). Another run costs as much again: pass "
            "again=True or --again, and the certificate covers all runs together"
        )
