"""The ledgers of a folder: which runs of a plan there were. A ledger whose run was released is its tombstone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import LedgerError
from privselect.tuning.ledger import Ledger

if TYPE_CHECKING:
    from privselect.tuning.ledger import Begun

DEFAULT = ".privselect"
_HEX = 24  # of the plan's hash, in the name of a ledger


@dataclass(frozen=True, repr=False)
class Opened:
    """The ledger of the run to be made or resumed, what was begun in it, and which run of the plan it is."""

    ledger: Ledger
    begun: Begun | None
    number: int
    path: Path | None = None

    def discard(self) -> None:
        """Remove the file that was made for a run that never began."""
        if self.path is not None and self.begun is None:
            self.path.unlink(missing_ok=True)


def open_run(folder: str | Path | None, plan: str, *, again: bool) -> Opened:
    """The ledger of the unfinished run of this plan, or of a new one; after a released run that must be asked for."""
    if folder is None:
        return Opened(Ledger.in_memory(), None, 1)
    number = 1
    while True:
        path = Path(folder).absolute() / f"{plan.removeprefix('sha256:')[:_HEX]}-{number}.sqlite"
        if not path.exists():
            _check_asked(number, path, again=again)
        ledger = Ledger.open(path)
        try:
            begun = ledger.begun()
            if begun is None:
                _check_asked(number, path, again=again)
            if begun is None or not begun.released:
                _check_plan(begun, plan, path)
                return Opened(ledger, begun, number, path)
        except BaseException:
            ledger.close()
            raise
        ledger.close()
        number += 1


def _check_asked(number: int, path: Path, *, again: bool) -> None:
    if number > 1 and not again:
        raise LedgerError(
            f"this plan was run and released before, as {format_value(str(path.parent))} tells; running it once more costs as much again: "
            "ask for it (again=True, or --again), and the certificate covers all runs together"
        )


def check_target(folder: str | Path | None, plan: str, out: Path | None) -> None:
    """Refuse to begin where a run of another plan was begun for the same folder and not finished."""
    if folder is None or out is None:
        return
    for path in sorted(Path(folder).glob("*-*.sqlite")):
        if path.name.startswith(plan.removeprefix("sha256:")[:_HEX]):
            continue
        if Ledger.peek(path) == str(out):
            raise LedgerError(
                f"an unfinished run of another plan is to be released to {format_value(str(out))}: a run is resumed with its own plan alone; "
                f"take up that plan again, name another folder, or give that run up by removing {format_value(str(path))}"
            )


def _check_plan(begun: Begun | None, plan: str, path: Path) -> None:
    if begun is not None and begun.plan != plan:
        raise LedgerError(f"the ledger {format_value(str(path))} belongs to another plan; nothing in it was changed")
