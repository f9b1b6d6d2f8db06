"""The default engine: worker processes on this machine, one trial per core at a time."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from privselect._util.child_process import exit_with_parent
from privselect.errors import ParameterError
from privselect.tuning.executors import Engine
from privselect.tuning.executors.worker_setup import (
    check_installed,
    check_workers,
    pack_setup,
    run_in_worker,
    silence_worker,
    start_trackers,
    unpack_setup,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from privselect.tuning.trial import TrialSetup

_THREAD_VARIABLES = (*(f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")), "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True, init=False)
class Processes(Engine):
    """Fresh processes by loky; by default one for each core that this process may use.

    The setup reaches them through a pipe, never a file. They print nothing, ignore Ctrl-C, and exit with the coordinator, even if it
    is killed. Each uses one thread for linear algebra, unless the environment says otherwise.
    """

    name: ClassVar[str] = "processes"
    workers: int

    def __init__(self, workers: int | None = None) -> None:
        check_installed("loky", "tune")
        if shutil.which("pgrep") is None:
            check_installed("psutil", "tune")  # loky needs one of the two to kill the children of a worker
        object.__setattr__(self, "workers", check_workers(workers))

    @property
    def memory_share(self) -> int | None:
        """An equal share of 90% of the memory of the machine or its container. A trial that exceeds it fails; its worker stays."""
        try:
            available = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (AttributeError, ValueError, OSError):
            return None
        with contextlib.suppress(OSError, ValueError):  # not in a container, or in one without a limit
            available = min(available, int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
        return max(available * 9 // 10 // self.workers, 2**20)

    @property
    def for_one_trial(self) -> Engine:
        """The same engine with one worker."""
        return type(self)(1)

    def open(self, setup: TrialSetup) -> Executor:
        """Start all workers at once, so their number does not depend on how many are busy later."""
        return _PoolExecutor(pack_setup(setup), self.workers)


class _PoolExecutor(Executor):
    def __init__(self, parcel: bytes, workers: int) -> None:
        from loky import ProcessPoolExecutor
        from loky.backend import resource_tracker

        # Not left to the first worker: once started, Python's own tracker lets the signal through that _block_sigint holds back.
        start_trackers(resource_tracker)
        reader, self._alive = multiprocessing.Pipe(duplex=False)  # closes when the coordinator is gone, which the workers notice
        environment = {name: "1" for name in _THREAD_VARIABLES if name not in os.environ}
        environment["LOKY_MAX_MEMORY_LEAK_SIZE"] = str(sys.maxsize)  # do not replace a worker whose memory has grown
        # The parcel is in a list, which each worker empties, so its copy of the bytes is freed after unpacking.
        self._pool = ProcessPoolExecutor(workers, initializer=_start_worker, initargs=([parcel], reader, os.getpid()), env=environment)
        self._open = True
        self.submit(_do_nothing)  # loky starts its workers at the first call

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        if not self._open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        try:
            with _block_sigint():
                submitted: Future[Any] = self._pool.submit(_run_with_setup, function, arguments, named)
        except (RuntimeError, OSError) as lost:  # a worker is gone, perhaps during its start: report it like any lost worker
            submitted = Future()
            submitted.set_exception(lost)
        return submitted

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002 - the protocol's
        """Kill the workers: the result of a running trial is no longer needed."""
        self._open = False
        self._pool.shutdown(wait=wait, kill_workers=True)
        self._alive.close()


def _do_nothing(setup: TrialSetup) -> None:
    """Serve as a first call."""


@contextlib.contextmanager
def _block_sigint() -> Iterator[None]:
    """Start processes that never receive Ctrl-C, even while Python starts in them: a terminal sends it to the whole process group."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# -- in the workers ------------------------------------------------------------------------------------------------------------

_SETUP: list[TrialSetup | str] = []  # the setup, or why it could not be unpacked


def _start_worker(parcels: list[bytes], alive: Connection, coordinator: int) -> None:
    silence_worker()
    with contextlib.suppress(ImportError, AttributeError, OSError):
        _kill_on_hangup(alive)
    exit_with_parent(alive, coordinator)
    try:
        _SETUP.append(unpack_setup(parcels.pop()))
    except ParameterError as error:
        _SETUP.append(str(error))


def _run_with_setup(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    (setup,) = _SETUP
    if isinstance(setup, str):
        raise ParameterError(setup)
    return run_in_worker(setup, function, *arguments, **named)


def _kill_on_hangup(alive: Connection) -> None:
    """Let Linux kill this process when the pipe's other end closes, even while a C library holds the interpreter lock."""
    import fcntl

    # Opened again, because the process to be signalled is a property of the opened pipe, which all workers share.
    mine = os.open(f"/proc/self/fd/{alive.fileno()}", os.O_RDONLY | os.O_NONBLOCK)
    fcntl.fcntl(mine, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(mine, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(mine, fcntl.F_SETFL, fcntl.fcntl(mine, fcntl.F_GETFL) | fcntl.FASYNC)
