"""Where trials run: one file for each engine.

An :class:`Engine` opens an executor (:class:`concurrent.futures.Executor`) for one :class:`~privselect.tuning.trial.TrialSetup`, which
it sends to each worker once. ``executor.submit(function, candidate, seed)`` then runs ``function(setup, candidate, seed)`` in a worker.
The function is :func:`~privselect.tuning.trial.run_trial`, which never raises, so a future that raises means that its worker was lost.
The runner then closes the executor, opens another and submits the same trial again. A trial is a pure function, so a trial that an
engine runs twice does no harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, cast

from privselect._util.validation import format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.trial import TrialSetup

NAMES = ("serial", "processes", "dask", "ray")


class Engine(ABC):
    """Where trials run. An engine is a description and holds nothing of a run."""

    name: ClassVar[str]
    workers: int
    can_limit_time: ClassVar[bool] = True  # whether a trial can be stopped at a time limit
    can_limit_memory: ClassVar[bool] = True
    notes: ClassVar[tuple[str, ...]] = ()  # for the certificate: what becomes visible with this engine

    @property
    def memory_share(self) -> int | None:
        """The default memory limit of a worker in bytes, or None if this engine does not know its machines."""
        return None

    @property
    def for_one_trial(self) -> Engine:
        """The engine for a stage with one trial, which may then use the memory of all workers."""
        return self

    @abstractmethod
    def open(self, setup: TrialSetup) -> Executor:
        """Return an executor that has the setup. Its ``shutdown`` stops every worker, even in the middle of a trial."""


def read_engine(given: Engine | str, workers: int | None = None) -> Engine:
    """Return the engine, also from its name and a number of workers, by default the number of cores."""
    if isinstance(given, Engine):
        return given
    if given == "serial":
        return Serial()
    if isinstance(given, str) and given in NAMES:
        module: Any = import_module(f"{__name__}.{given}")  # its class is Processes, Dask or Ray
        return cast("Engine", getattr(module, given.capitalize())(workers=workers))
    raise ParameterError(f"`executor` must be one of {', '.join(NAMES)}, got {format_value(given)}")


@dataclass(frozen=True)
class Serial(Engine):
    """One trial after the other in this process: for small runs, tests and debugging."""

    name: ClassVar[str] = "serial"
    can_limit_memory: ClassVar[bool] = False  # the limit would apply to the coordinator too
    workers: ClassVar[int] = 1  # type: ignore[misc]

    def open(self, setup: TrialSetup) -> Executor:
        """Return an executor that runs each trial when it is submitted."""
        return _SerialExecutor(setup)


class _SerialExecutor(Executor):
    def __init__(self, setup: TrialSetup) -> None:
        self._setup = setup

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(self._setup, *arguments, **named))
        return future
