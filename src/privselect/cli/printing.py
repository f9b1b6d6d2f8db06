"""What commands print."""

from __future__ import annotations

import json
import math
import os
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.interval import Interval


@contextmanager
def working(what: str) -> Iterator[None]:
    """A spinner where somebody watches: on a terminal, beside the answer."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with _terminal() as file, Console(file=file, stderr=True).status(what):
        yield


@contextmanager
def _terminal() -> Iterator[IO[str] | None]:
    """The terminal by a descriptor of its own: while a trial is silenced the spinner turns on, and tells nothing of when trials end."""
    try:
        own = os.dup(sys.stderr.fileno())
    except (OSError, ValueError):  # stderr is no file, as in a test
        yield None
        return
    with os.fdopen(own, "w", encoding=sys.stderr.encoding) as file:
        yield file


def print_json(payload: dict[str, object]) -> None:
    """Strict JSON: null stands for what is not finite."""
    print(json.dumps(_finite(payload), indent=2, allow_nan=False))


def print_answer(question: str, answer: Interval, alone: Interval | None) -> None:
    """One line for the answer, and one for a single trial where that is another question."""
    width = len(question) if alone is None else max(len(question), len("one trial alone"))
    print(f"{question:{width}}  {_said(answer)}")
    if alone is not None:
        print(f"{'one trial alone':{width}}  {_said(alone)}")


def _said(answer: Interval) -> str:
    if answer.upper != math.inf:
        return str(answer)
    if answer.lower == math.inf:
        return "infinite"
    return "infinite, as far as is proved" + (f" (at least {answer.lower})" if answer.lower else "")


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return value
