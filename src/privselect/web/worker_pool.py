"""The processes that compute: a few, each with one question at a time, and ended where a question takes too long or nobody waits for it.

A question is bounded three ways: in time (its process is killed), in memory (its process refuses to grow) and in number (further ones
are asked to come again). So nothing that is asked ends the server, and a question waits at the most for the slices of those before it:
a slow one in front of it costs some seconds, not its whole time.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import select
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect.web.limits import KEPT_MEMORY, MEMORY, MOST_WAITING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess


@dataclass(frozen=True, slots=True)
class Lane:
    """Questions of one kind: how many at once, for how long, and for how long while others wait for the same place.

    The first is the time that somebody waits, the other the time that a process works: on a busy machine that is less.
    """

    seats: int
    seconds: float
    contended: float
    nice: int = 0  # so much the system prefers all others
    kept: bool = True  # whether its processes wait for the next question


ANSWERS = Lane(seats=2, seconds=20.0, contended=2.5)  # the usual answer takes less than a second
DETAILS = Lane(seats=1, seconds=30.0, contended=10.0, nice=5)
LONG = Lane(seats=1, seconds=120.0, contended=60.0, nice=10, kept=False)
_LOG = logging.getLogger(__name__)
_MOMENT = 0.05  # seconds between two looks at the clock


class BusyError(Exception):
    """More is being asked than can be answered now."""


class DroppedError(Exception):
    """The server is being ended, and its questions with it."""


class LimitError(Exception):
    """The question took more time or memory than one may; the message says which."""


class FailedError(Exception):
    """The question could not be answered, by a fault that is not the question's."""


class RefusalError(Exception):
    """The answer of a process is a refusal, about a field where it is one."""

    def __init__(self, message: str, field: str | None) -> None:
        super().__init__(message)
        self.field = field


class Crew:
    """The processes of a server; to be made and used in one event loop, and closed at its end."""

    def __init__(self) -> None:
        self._lanes = {lane: _Queue(lane) for lane in (ANSWERS, DETAILS, LONG)}
        self._dropped = False
        self._threads = ThreadPoolExecutor(max_workers=sum(lane.seats for lane in self._lanes), thread_name_prefix="crew")

    async def begin(self) -> None:
        """Have a process of each kept lane ready before the first question."""
        for lane, queue in self._lanes.items():
            if lane.kept:
                queue.idle.append(await self._begun(lane))

    async def ask(self, kind: str, fields: Mapping[str, Any], lane: Lane) -> Any:
        """The answer, or one of the errors above; cancelled, the question is dropped, and its process ended where it has begun."""
        queue = self._lanes[lane]
        if queue.waiting >= MOST_WAITING:
            raise BusyError
        queue.waiting += 1
        try:
            await queue.seats.acquire()
        finally:
            queue.waiting -= 1
        try:
            if self._dropped:
                raise DroppedError
            worker = queue.free() or await self._begun(lane)
            try:
                answer = await self._watched(worker, queue, kind, fields)
            except BaseException:
                worker.end()
                raise
            if lane.kept and worker.is_slim():
                queue.idle.append(worker)
            else:
                worker.end()
            return _opened(answer)
        finally:
            queue.seats.release()

    async def _begun(self, lane: Lane) -> _Worker:
        """A new process; ended again where nobody waits for it any more when it is there."""
        beginning = self._in_thread(_Worker, lane)
        try:
            worker: _Worker = await asyncio.shield(beginning)
        except asyncio.CancelledError:
            beginning.add_done_callback(lambda begun: begun.exception() or begun.result().end())
            raise
        except OSError as error:  # no process, or no descriptor, to be had
            _LOG.warning("no process could be begun: %s", error)
            raise BusyError from None
        return worker

    async def _watched(self, worker: _Worker, queue: _Queue, kind: str, fields: Mapping[str, Any]) -> Any:
        """The answer of a process, which is ended where it takes too long or where nobody waits for it any more."""
        asking = self._in_thread(worker.ask, kind, dict(fields))
        begun, worked = asyncio.get_running_loop().time(), worker.worked()
        try:
            while True:
                done, _ = await asyncio.wait([asking], timeout=_MOMENT)
                if done:
                    return asking.result()
                if self._dropped:
                    raise DroppedError
                spent = asyncio.get_running_loop().time() - begun
                if spent > queue.lane.seconds:
                    raise LimitError(f"the question takes longer than the {queue.lane.seconds:g} seconds that this page has for it")
                if queue.waiting and worker.worked() - worked > queue.lane.contended:
                    raise LimitError("the question takes longer than this page has for it while others wait")
        except EOFError:
            raise LimitError("the question takes more memory than this page has for it") from None
        finally:
            if not asking.done():
                worker.end()  # and with it the thread's waiting
                await asyncio.wait([asking])
                asking.exception()  # looked at: that its process ended is known

    def _in_thread(self, work: Any, *arguments: Any) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def drop(self) -> None:
        """End every question, within a moment, those that wait and those to come."""
        self._dropped = True

    def close(self) -> None:
        """End every process that waits for a question."""
        for queue in self._lanes.values():
            while queue.idle:
                queue.idle.pop().end()
        self._threads.shutdown(wait=False, cancel_futures=True)


class _Queue:
    """The seats of a lane, who waits for one, and the processes that wait for a question."""

    def __init__(self, lane: Lane) -> None:
        self.lane = lane
        self.seats = asyncio.Semaphore(lane.seats)
        self.waiting = 0
        self.idle: list[_Worker] = []

    def free(self) -> _Worker | None:
        """A process that waits, and has not died meanwhile."""
        while self.idle:
            worker = self.idle.pop()
            if worker.is_alive():
                return worker
            worker.end()
        return None


class _Worker:
    """One process, seen from the server."""

    def __init__(self, lane: Lane) -> None:
        context = _context()
        self._connection, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(target=_serve, args=(theirs, lane.nice), daemon=True)
        self._process.start()
        theirs.close()
        self._grown = False

    def ask(self, kind: str, fields: dict[str, Any]) -> Any:
        """Blocks until the answer is there; an ``EOFError`` where the process ended."""
        try:
            self._connection.send((kind, fields))
            answer, self._grown = self._connection.recv()
        except (OSError, ValueError):  # a connection that broke, or that was closed here
            raise EOFError from None
        return answer

    def is_alive(self) -> bool:
        """Whether the process can be asked."""
        return self._process.is_alive()

    def worked(self) -> float:
        """Seconds that the process has computed; those that have passed, where the system does not tell."""
        try:
            with open(f"/proc/{self._process.pid}/stat", "rb") as file:  # noqa: PTH123 - as quick as can be
                user, system = file.read().rpartition(b")")[2].split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
        except OSError:
            return time.monotonic()

    def is_slim(self) -> bool:
        """Whether the process is worth keeping: memory that it once took it may not give back."""
        return not self._grown

    def end(self) -> None:
        """At once, whatever it is doing."""
        self._process.kill()
        self._process.join()
        self._connection.close()


def prepare() -> None:
    """Start the process that others are copies of, deaf to Ctrl-C from its first moment; to be called in the main thread."""
    if _context().get_start_method() != "forkserver":
        return
    from multiprocessing import forkserver

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is ignored stays so in a new process
    try:
        forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, before)


def _context() -> Any:
    """New processes are copies of one that has all modules loaded, where the system can do that."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["privselect.web.handlers"])
    return context


def _opened(answer: tuple[str, Any]) -> Any:
    how, what = answer
    if how == "refused":
        raise RefusalError(*what)
    if how == "grown":
        raise LimitError("the question takes more memory than this page has for it")
    if how == "failed":
        raise FailedError
    return what


# -- in the process itself ---------------------------------------------------------------------------------------------------


def _serve(connection: Connection, nice: int) -> None:
    """Answer one question after the other until the server is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its processes

    from privselect.web.handlers import work

    if sys.platform != "win32":
        os.nice(nice)
        _limit_memory()
        threading.Thread(target=_end_with_server, args=(connection.fileno(),), daemon=True).start()
    while True:
        try:
            kind, fields = connection.recv()
        except (EOFError, OSError):
            return
        answer = _answered(work, kind, fields)
        # Where memory ran out in the midst of something, what is cached may be half done.
        connection.send((answer, answer[0] == "grown" or _resident() > KEPT_MEMORY))


def _answered(work: Any, kind: str, fields: dict[str, Any]) -> tuple[str, Any]:
    from privselect.web.parse_question import RefusedError

    try:
        return "answer", work(kind, fields)
    except RefusedError as error:
        return "refused", (" ".join(str(error).split()), error.field)
    except MemoryError:
        return "grown", None
    except Exception:  # noqa: BLE001 - whatever it is, the server says so and lives
        _LOG.exception("a question of the kind %s could not be answered", kind)
        return "failed", None


def _end_with_server(descriptor: int) -> None:
    """Where the server was killed, nobody else would end a long question."""
    watched = select.poll()
    watched.register(descriptor, 0)  # for the other end to close, and nothing else
    watched.poll()
    os._exit(1)


def _limit_memory() -> None:
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MEMORY if hard == resource.RLIM_INFINITY else min(MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


def _resident() -> int:
    """Bytes in memory now, where the system tells."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - as quick as can be
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
