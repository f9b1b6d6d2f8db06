"""A release at a fixed time, where that is certain to be kept: then the time of the release tells nothing about K."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect.counts import Count
    from privselect.tuning.executors.base import Engine

_START = 60.0  # seconds for loading data and starting workers
_BETWEEN = 1.0  # seconds between two trials of a worker


def read_moment(given: Any) -> datetime | None:
    """A time with its zone, such as 2030-01-31T23:59:00Z."""
    if given is None:
        return None
    moment = given
    if isinstance(given, str):
        try:
            moment = datetime.fromisoformat(given)
        except ValueError:
            moment = None
    if not isinstance(moment, datetime) or moment.tzinfo is None:
        raise ParameterError(f"`release_at` must be a time with its zone, such as 2030-01-31T23:59:00Z, got {format_value(given)}")
    return moment


def check_certain(moment: datetime, count: Count, engine: Engine, timeout: float | None) -> None:
    """Refuse a time that a run might miss: without a bound on K and on each trial nothing is certain."""
    if count.largest is None:
        raise ParameterError(f"`release_at` needs a law of K with a largest K, such as one with a cap, got {count}")
    if timeout is None:
        raise ParameterError("`release_at` needs a `timeout` for each trial, got none")
    rounds = -(-count.largest // engine.workers)
    needed, left = rounds * (timeout + _BETWEEN) + _START, (moment - datetime.now(UTC)).total_seconds()
    if left < needed:
        raise ParameterError(
            f"`release_at` must be at least {needed:.0f} seconds away, in which {count.largest} trials are certain to end, got {left:.0f}"
        )


def as_monotonic(moment: datetime) -> float:
    """The same moment on the clock that never jumps."""
    return time.monotonic() + (moment - datetime.now(UTC)).total_seconds()


def wait_until(moment: datetime) -> None:
    """Sleep until then."""
    while (left := (moment - datetime.now(UTC)).total_seconds()) > 0.0:
        time.sleep(min(left, 60.0))
