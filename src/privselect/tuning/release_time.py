"""A release at a fixed time, which then reveals nothing about K, and the longest time that a run can take."""

from __future__ import annotations

import contextlib
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.tuning.tuning_run import TuningRun

_STARTUP_SECONDS = 60.0  # of each stage, for loading data and starting workers
_SECONDS_BETWEEN_TRIALS = 1.0  # of one worker


def parse_release_time(value: Any) -> datetime | None:
    """Return a time with its time zone, such as 2030-01-31T23:59:00Z; None stays None."""
    moment = value
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            moment = datetime.fromisoformat(value)
    if moment is None or (isinstance(moment, datetime) and moment.tzinfo is not None):
        return moment
    raise ParameterError(f"`release_at` must be a time with a time zone, such as 2030-01-31T23:59:00Z, got {format_value(value)}")


def longest_seconds(run: TuningRun) -> float | None:
    """Return the most that both stages can take, or None if K or the time of a trial has no bound."""
    count = run.spec.count
    if count.largest is None or run.timeout is None:
        return None
    rounds = -(-count.largest // run.engine.workers)
    search = rounds * (run.timeout + _SECONDS_BETWEEN_TRIALS) + _STARTUP_SECONDS
    if run.spec.final is None:
        return search
    return None if run.final_timeout is None else search + run.final_timeout + _SECONDS_BETWEEN_TRIALS + _STARTUP_SECONDS


def check_release_time(moment: datetime, run: TuningRun) -> None:
    """Refuse a release time that the run might miss. This needs a bound on K and on the time of each trial."""
    count = run.spec.count
    if count.largest is None:
        raise ParameterError(f"`release_at` needs a law of K with a largest K, such as geometric(mean=30, cap=100), got {count}")
    if run.timeout is None:
        raise ParameterError("`release_at` needs a `timeout` for each trial, got none")
    needed, left = longest_seconds(run), seconds_until(moment)
    if needed is None:
        raise ParameterError("`release_at` needs a `final_timeout` for the final training, got none")
    if left < needed:
        final = "" if run.spec.final is None else " and the final training"
        raise ParameterError(
            f"`release_at` must be at least {needed:.0f} seconds from now, the most that {count.largest} trials{final} can take, "
            f"got {left:.0f}"
        )


def seconds_until(moment: datetime) -> float:
    """Return the number of seconds from now to this moment, negative if it has passed."""
    return (moment - datetime.now(UTC)).total_seconds()


def wait_until(moment: datetime) -> None:
    """Sleep until this moment."""
    while (left := seconds_until(moment)) > 0.0:
        time.sleep(min(left, 60.0))
