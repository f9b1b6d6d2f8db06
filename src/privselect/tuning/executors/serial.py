"""One trial after the other, in this process."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privselect.tuning.executors.base import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.trial import Work


@dataclass(frozen=True)
class Serial(Engine):
    """No other process: for small runs, tests and debugging."""

    name: ClassVar[str] = "serial"
    can_limit_memory: ClassVar[bool] = False  # the limit would bind the coordinator too
    workers: ClassVar[int] = 1  # type: ignore[misc]

    def open(self, work: Work) -> Executor:
        """Runs what is submitted at once."""
        return _Here(work)


class _Here(Executor):
    def __init__(self, work: Work) -> None:
        self._work = work

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(self._work, *arguments, **named))
        return future
