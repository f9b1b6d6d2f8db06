"""What commands print, and their exit codes."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from privselect._util.atomic_files import write_error
from privselect._util.rounding import finite_or_none, format_digits_down, format_digits_up

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from rich.table import Table

    from privselect.interval import Interval

EXIT_FAILED, EXIT_REFUSED, EXIT_INTERRUPTED = 1, 2, 130
DIGITS = 4  # significant digits of a bound, unless more are requested


class _StatusLine:
    """What is being done, and for how long."""

    def __init__(self, label: str) -> None:
        self._label, self._began = label, time.monotonic()

    def tell(self, label: str) -> None:
        """Show another label; the time goes on."""
        self._label = label

    def __rich__(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{self._label}  {hours}:{minutes:02}:{seconds:02}"


@contextmanager
def spinner(label: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with the elapsed time on a terminal during the work; yield the function that changes the label."""
    line = _StatusLine(label)
    if sys.stderr is None or not sys.stderr.isatty():
        yield line.tell
        return
    from rich.console import Console

    with _duplicate_stderr() as file, Console(file=file, stderr=True).status(line):
        yield line.tell


@contextmanager
def _duplicate_stderr() -> Iterator[IO[str] | None]:
    """Open the terminal a second time.

    The output of trials is suppressed. A spinner that stopped with it would reveal when trials end.
    """
    try:
        descriptor = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):  # stderr is not a file, as in a test
        yield None
        return
    with os.fdopen(descriptor, "w", encoding=sys.stderr.encoding) as file:
        yield file


@contextmanager
def plot_errors(path: Path) -> Iterator[None]:
    """Turn a failure to write the plot into an error message about ``--plot``."""
    try:
        yield
    except OSError as error:
        raise write_error("plot", path, error) from None


def print_json(values: Mapping[str, object]) -> None:
    """Print strict JSON, with null for infinite and NaN floats."""
    print(json.dumps(finite_or_none(dict(values)), indent=2, allow_nan=False))


def print_table(table: Table) -> None:
    """Print a rich table, without color if stdout is not a terminal."""
    from rich.console import Console

    Console().print(table)


def print_intervals(intervals: Mapping[str, Interval], digits: int = DIGITS) -> None:
    """Print one line per interval: its label, then its bounds, rounded outward to ``digits`` significant digits."""
    width = max(map(len, intervals))
    for label, interval in intervals.items():
        print(f"{label:{width}}  {format_interval(interval, digits)}")


def format_interval(interval: Interval, digits: int = DIGITS) -> str:
    """Format both bounds in words, rounded outward."""
    lower, upper = None if interval.lower is None else float(interval.lower), float(interval.upper)
    if lower == math.inf:
        return "infinite"
    if upper == math.inf:
        return "no finite upper bound is proved" + (f" (at least {format_digits_down(lower, digits)})" if lower else "")
    if lower is None:
        return f"at most {format_digits_up(upper, digits)}"
    return f"between {format_digits_down(lower, digits)} and {format_digits_up(upper, digits)}"
