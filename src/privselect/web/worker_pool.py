"""Worker processes that compute one question at a time.

Questions are limited in time (a slow worker is killed), in memory (a worker cannot allocate more) and in number (more are refused).
A quick question behind slow ones waits for a few seconds only, because slow questions get less time while others wait.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.child_process import exit_with_parent, limit_memory
from privselect.web.limits import MAX_IDLE_MEMORY, MAX_MEMORY, MAX_WAITING
from privselect.web.schemas import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


@dataclass(frozen=True, slots=True)
class JobClass:
    """The workers and time limits for one class of questions.

    ``seconds`` limits the time since the start. ``busy_seconds`` limits the CPU time while other questions wait.
    """

    workers: int
    seconds: float
    busy_seconds: float
    nice: int = 0
    reuse: bool = True  # whether a worker waits for the next question


ANSWER_JOBS = JobClass(workers=2, seconds=20.0, busy_seconds=2.5)  # the usual answer takes less than a second
DETAIL_JOBS = JobClass(workers=1, seconds=30.0, busy_seconds=10.0, nice=5)
LONG_JOBS = JobClass(workers=1, seconds=120.0, busy_seconds=60.0, nice=10, reuse=False)
_LOG = logging.getLogger(__name__)
_POLL_SECONDS = 0.05


class BusyError(Exception):
    """Too many questions are waiting."""


class CancelledByShutdownError(Exception):
    """The server is shutting down."""


class LimitError(Exception):
    """The question exceeded a limit on time or memory, which the message names."""


class InternalError(Exception):
    """A bug prevented an answer. The log has the details."""


class WorkerPool:
    """All worker processes of a server. Create and use it in one event loop, and close it there."""

    def __init__(self) -> None:
        self._queues = {jobs: _Queue(jobs) for jobs in (ANSWER_JOBS, DETAIL_JOBS, LONG_JOBS)}
        self._cancelled = False
        self._threads = ThreadPoolExecutor(max_workers=sum(jobs.workers for jobs in self._queues), thread_name_prefix="workers")

    async def start(self) -> None:
        """Start one worker of each reusable class, ahead of the first question."""
        for jobs, queue in self._queues.items():
            if jobs.reuse:
                queue.idle.append(await self._start_worker(jobs))

    async def run(self, kind: str, request: Any, jobs: JobClass) -> Any:
        """Return the answer to a request, or raise one of the errors above.

        If this call is cancelled, the question is dropped and its worker is killed.
        """
        queue = self._queues[jobs]
        if queue.waiting >= MAX_WAITING:
            raise BusyError
        queue.waiting += 1
        try:
            await queue.slots.acquire()
        finally:
            queue.waiting -= 1
        try:
            if self._cancelled:
                raise CancelledByShutdownError
            worker = queue.take_idle() or await self._start_worker(jobs)
            try:
                result = await self._run_with_limits(worker, queue, kind, request)
            except BaseException:
                worker.kill()
                raise
            if jobs.reuse and worker.reusable:
                queue.idle.append(worker)
            else:
                worker.kill()
            return _unwrap(result)
        finally:
            queue.slots.release()

    async def _start_worker(self, jobs: JobClass) -> _Worker:
        starting = self._in_thread(_Worker, jobs)
        try:
            worker: _Worker = await asyncio.shield(starting)
        except asyncio.CancelledError:
            starting.add_done_callback(lambda started: started.exception() or started.result().kill())
            raise
        except OSError as error:  # no process or no descriptor is available
            _LOG.warning("cannot start a worker process: %s", error)
            raise BusyError from None
        return worker

    async def _run_with_limits(self, worker: _Worker, queue: _Queue, kind: str, request: Any) -> Any:
        """Return the result of a worker, and kill it if it exceeds a limit or its question is dropped."""
        running = self._in_thread(worker.run, kind, request)
        clock = asyncio.get_running_loop().time
        started, cpu_before = clock(), worker.cpu_seconds()
        try:
            while True:
                done, _ = await asyncio.wait([running], timeout=_POLL_SECONDS)
                if done:
                    return running.result()
                if self._cancelled:
                    raise CancelledByShutdownError
                if clock() - started > queue.jobs.seconds:
                    raise LimitError(f"the question takes longer than the limit of {queue.jobs.seconds:g} seconds")
                if queue.waiting and worker.cpu_seconds() - cpu_before > queue.jobs.busy_seconds:
                    raise LimitError("the question takes too long while others wait")
        except EOFError:
            raise LimitError("the question takes more memory than the limit") from None
        finally:
            if not running.done():
                worker.kill()  # this also ends the wait of the thread
                await asyncio.wait([running])
                running.exception()  # marks it as retrieved

    def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def cancel_all(self) -> None:
        """Cancel every running, waiting and future question."""
        self._cancelled = True

    def close(self) -> None:
        """Kill the idle workers."""
        for queue in self._queues.values():
            while queue.idle:
                queue.idle.pop().kill()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Queue:
    """The slots of a job class, the number of waiting questions, and the idle workers."""

    def __init__(self, jobs: JobClass) -> None:
        self.jobs = jobs
        self.slots = asyncio.Semaphore(jobs.workers)
        self.waiting = 0
        self.idle: list[_Worker] = []

    def take_idle(self) -> _Worker | None:
        """Return an idle worker that is still alive, if there is one."""
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive():
                return worker
            worker.kill()
        return None


class _Worker:
    """The server's handle of one worker process."""

    def __init__(self, jobs: JobClass) -> None:
        context = _context()
        self._connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_worker_main, args=(theirs, jobs.nice), daemon=True)
        self._process.start()
        theirs.close()
        self.reusable = True

    def run(self, kind: str, request: Any) -> Any:
        """Wait for the result of a question; raise ``EOFError`` if the process dies."""
        try:
            self._connection.send((kind, request))
            result, self.reusable = self._connection.recv()
        except (OSError, ValueError):  # the connection broke, or it was closed here
            raise EOFError from None
        return result

    def is_alive(self) -> bool:
        """Return whether the process is alive."""
        return self._process.is_alive()

    def cpu_seconds(self) -> float:
        """Return the CPU time of the process, or a wall clock on systems without ``/proc``."""
        try:
            with open(f"/proc/{self._process.pid}/stat", "rb") as file:  # noqa: PTH123 - faster than Path
                user, system = file.read().rpartition(b")")[2].split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return time.monotonic()

    def kill(self) -> None:
        """Kill the process, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def start_forkserver() -> None:
    """Start the process that workers are forked from. Call this in the main thread.

    It ignores Ctrl-C from the start, because a child inherits ignored signals.
    """
    if _context().get_start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


def _context() -> Any:
    """Return a multiprocessing context that forks workers from a process with all modules loaded, if the system can."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["privselect.web.handlers"])
    return context


def _unwrap(result: tuple[str, Any]) -> Any:
    status, value = result
    if status == "refused":
        raise RefusedError(*value)
    if status == "out of memory":
        raise LimitError("the question takes more memory than the limit")
    if status == "failed":
        raise InternalError
    return value


# -- in the worker process ---------------------------------------------------------------------------------------------------


def _worker_main(connection: Connection, nice: int) -> None:
    """Handle requests until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # on Ctrl-C, the server kills its workers

    from privselect.web.handlers import handle

    if sys.platform != "win32":
        os.nice(nice)
        limit_memory(MAX_MEMORY)
        exit_with_parent(connection)
    while True:
        try:
            kind, request = connection.recv()
        except (EOFError, OSError):
            return
        result = _handle(handle, kind, request)
        # An interrupted computation may leave incomplete caches behind.
        connection.send((result, result[0] != "out of memory" and _resident_bytes() <= MAX_IDLE_MEMORY))


def _handle(handle: Callable[[str, Any], Any], kind: str, request: Any) -> tuple[str, Any]:
    try:
        return "answered", handle(kind, request)
    except RefusedError as error:
        return "refused", (" ".join(str(error).split()), error.field)
    except MemoryError:
        return "out of memory", None
    except Exception:  # noqa: BLE001 - the server reports any error and keeps running
        _LOG.exception("a question of kind %s failed", kind)
        return "failed", None


def _resident_bytes() -> int:
    """Return the memory of this process, or 0 on systems without ``/proc``."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - faster than Path
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
