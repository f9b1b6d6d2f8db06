"""The ledger of a visible search: every trial with its candidate, recorded before it runs, and with its result.

A trial counts as spent from the moment it is recorded. If its process is killed, it can only be finished with the same candidate and
the same randomness, so a number of trials is never exceeded and no noise is used for two candidates.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from privselect.tuning.ledger import Ledger
from privselect.tuning.release import to_json_bytes

if TYPE_CHECKING:
    from privselect.tuning.space import Candidate
    from privselect.tuning.trial import Outcome

_TABLES = (
    """CREATE TABLE IF NOT EXISTS visible (
    slot INTEGER PRIMARY KEY,
    candidate TEXT NOT NULL,      -- JSON
    done INTEGER NOT NULL DEFAULT 0,
    score REAL,                   -- NULL before the end, and if the trial failed
    artifact BLOB,
    facts TEXT NOT NULL DEFAULT '{}'  -- JSON; what else is known about the trial
)""",
    "CREATE TABLE IF NOT EXISTS chosen (only INTEGER PRIMARY KEY CHECK (only = 1), choice TEXT NOT NULL)",  # for the final training
)


@dataclass(frozen=True, repr=False)
class VisibleRow:
    """What the ledger records about one trial."""

    slot: int
    candidate: Candidate
    done: bool
    score: float | None
    artifact: bytes | None
    facts: dict[str, Any] = field(default_factory=dict)


class VisibleLedger(Ledger):
    """A ledger that keeps every trial, because every trial is shown."""

    def begin_trial(self, slot: int, candidate: Candidate) -> None:
        """Record a trial and its candidate. From now on it counts as spent."""
        with self._transaction():
            self._create_tables()
            self._connection.execute("INSERT INTO visible (slot, candidate) VALUES (?, ?)", (slot, _text(candidate)))

    def set_candidate(self, slot: int, candidate: Candidate) -> None:
        """Record what the objective has drawn so far in a trial that is not done."""
        with self._transaction():
            self._connection.execute("UPDATE visible SET candidate = ? WHERE slot = ? AND done = 0", (_text(candidate), slot))

    def finish_trial(self, slot: int, candidate: Candidate | None, outcome: Outcome | None, facts: dict[str, Any]) -> None:
        """Record the result of a trial, None if it failed, and its candidate if the objective drew it. The first result counts."""
        score, artifact = (None, None) if outcome is None else (outcome.score, outcome.artifact)
        drawn = None if candidate is None else _text(candidate)
        with self._transaction():
            self._connection.execute(
                "UPDATE visible SET done = 1, candidate = coalesce(?, candidate), score = ?, artifact = ?, facts = ? "
                "WHERE slot = ? AND done = 0",
                (drawn, score, artifact, _text(facts), slot),
            )

    def visible_trials(self) -> list[VisibleRow]:
        """Return all trials in order; only the last one may be without a result."""
        if not self._query("SELECT count(*) FROM sqlite_schema WHERE name = 'visible'")[0][0]:
            return []
        rows = self._query("SELECT slot, candidate, done, score, artifact, facts FROM visible ORDER BY slot")
        return [
            VisibleRow(slot, json.loads(candidate), bool(done), score, artifact, json.loads(facts))
            for slot, candidate, done, score, artifact, facts in rows
        ]

    def choose_final(self, choice: dict[str, Any]) -> None:
        """Record with what the final training is made, before it begins."""
        with self._transaction():
            self._create_tables()
            self._connection.execute("INSERT INTO chosen VALUES (1, ?)", (_text(choice),))

    def chosen_final(self) -> dict[str, Any] | None:
        """Return with what the final training is made, None before it begins."""
        if not self._query("SELECT count(*) FROM sqlite_schema WHERE name = 'chosen'")[0][0]:
            return None
        rows = self._query("SELECT choice FROM chosen")
        return json.loads(rows[0][0]) if rows else None

    def _create_tables(self) -> None:
        for statement in _TABLES:
            self._connection.execute(statement)


def _text(value: Any) -> str:
    return to_json_bytes(value).decode("utf-8")
