"""The error of a trial that does not run what the plan says."""

from __future__ import annotations

from typing import NamedTuple

_MESSAGES: list[str] = []  # of all violations in this process


def recorded_violations() -> tuple[str, ...]:
    """Return the messages of all violations in this process, including those that a trainer caught or that ended a thread only."""
    return tuple(_MESSAGES)


class PlanViolation(BaseException):
    """Raised in a trial to stop the whole run without a release. ``except Exception`` in a trainer does not catch it.

    Any other exception is a failure of one trial, which then gets the worst score. After a plan violation the guarantee itself would
    be wrong. ``message`` is shown, so it must be a fixed text that depends on no record; ``details`` are shown in a dry run only.
    """

    def __init__(self, message: str, details: str = "") -> None:
        super().__init__(message, details)  # both, so a pickled copy from another process has the same message
        self.message, self.details = message, details
        _MESSAGES.append(message)

    def __str__(self) -> str:
        return f"{self.message}: {self.details}" if self.details else self.message


class ViolationResult(NamedTuple):
    """The result that a worker returns instead of an outcome when the trial violated the plan."""

    message: str
