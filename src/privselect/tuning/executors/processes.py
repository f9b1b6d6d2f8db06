"""One trial for each core at a time, in processes of this machine: the engine to begin with."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import threading
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privselect.errors import ParameterError
from privselect.tuning.executors.base import Engine
from privselect.tuning.executors.worker_setup import (
    be_silent,
    check_installed,
    checked_workers,
    packed,
    run,
    start_trackers,
    unpacked,
    usable_memory,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from privselect.tuning.trial import Work

_THREADS = (*(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")), "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, init=False)
class Processes(Engine):
    """Fresh processes by loky; by default one for each core that this process may use.

    The work reaches them through a pipe, never a file. They print nothing, do not hear Ctrl-C, and end with the coordinator, also
    where that is killed. Each has one thread for linear algebra, unless the environment says otherwise.
    """

    name: ClassVar[str] = "processes"
    workers: int

    def __init__(self, workers: int | None = None) -> None:
        object.__setattr__(self, "workers", checked_workers(workers))
        check_installed("loky", "tune")
        if shutil.which("pgrep") is None:
            check_installed("psutil", "tune")  # loky ends the children of a worker by one of the two

    @property
    def memory_share(self) -> int | None:
        """What is there, less a tenth, in equal parts: a trial that asks for more fails, and no worker is killed for it."""
        there = usable_memory()
        return None if there is None else max(there * 9 // 10 // self.workers, 2**20)

    def open(self, work: Work) -> Executor:
        """Starts all workers at once: how many are busy later is seen, how many there are was said."""
        return _Pool(packed(work), self.workers)


class _Pool(Executor):
    def __init__(self, parcel: bytes, workers: int) -> None:
        from loky import ProcessPoolExecutor
        from loky.backend import resource_tracker

        # Not left to the first worker: once Python's own is started, it lets through the signal that _deaf_children holds back.
        start_trackers(resource_tracker)
        reader, self._alive = multiprocessing.Pipe(duplex=False)  # the workers' end tells them when the coordinator is gone
        # In a list, which each worker empties: its copy of the bytes must not stay beside what they become.
        self._pool = ProcessPoolExecutor(workers, initializer=_start, initargs=([parcel], reader, os.getpid()), env=_single_threaded())
        self._open = True
        self.submit(_nothing)

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if not self._open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        try:
            with _deaf_children():
                submitted: Future[Any] = self._pool.submit(_run_here, function, arguments, named)
        except (RuntimeError, OSError) as lost:  # a worker is gone, maybe while it was started: told like every such loss
            submitted = Future()
            submitted.set_exception(lost)
        return submitted

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002 - the protocol's
        """Kills the workers: nobody waits for a trial whose run is over."""
        self._open = False
        self._pool.shutdown(wait=wait, kill_workers=True)
        self._alive.close()


def _nothing(work: Work) -> None:
    """A first call, for which loky starts its workers."""


@contextlib.contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started within never hear Ctrl-C, not even while Python starts in them: a terminal sends it to all of the group."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _single_threaded() -> dict[str, str]:
    """One trial for each core leaves no core for a second thread of linear algebra."""
    return {name: "1" for name in _THREADS if name not in os.environ}


# The rest runs in the workers.

_HERE: list[Work | str] = []  # the work, or why there is none


def _start(parcels: list[bytes], alive: Connection, coordinator: int) -> None:
    be_silent()
    _end_with_the_coordinator(alive, coordinator)
    _stay()
    try:
        _HERE.append(unpacked(parcels.pop()))
    except ParameterError as error:
        _HERE.append(str(error))


def _run_here(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    (work,) = _HERE
    if isinstance(work, str):
        raise ParameterError(work)
    return run(work, function, *arguments, **named)


def _stay() -> None:
    """Loky replaces a worker that has grown, and warns; here a worker stays as long as its executor."""
    from loky import process_executor

    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize  # noqa: SLF001 - older versions read no setting


def _end_with_the_coordinator(alive: Connection, coordinator: int) -> None:
    """No worker goes on with private data when nobody waits for it."""
    with contextlib.suppress(ImportError, AttributeError, OSError):
        _killed_on_hangup(alive)
    threading.Thread(target=_watch, args=(alive, coordinator), daemon=True).start()


def _killed_on_hangup(alive: Connection) -> None:
    """Linux kills this process itself when the pipe's other end closes, whatever library in C runs just then."""
    import fcntl

    # Opened anew: who is to be told belongs to the opened pipe, which all workers share.
    mine = os.open(f"/proc/self/fd/{alive.fileno()}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(mine, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(mine, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(mine, fcntl.F_SETFL, fcntl.fcntl(mine, fcntl.F_GETFL) | fcntl.FASYNC)


def _watch(alive: Connection, coordinator: int) -> None:
    """Elsewhere, or should a child of the coordinator hold the pipe, a thread looks each second."""
    with contextlib.suppress(OSError, EOFError):
        while os.getppid() == coordinator and not alive.poll(1.0):
            pass
    os._exit(1)
