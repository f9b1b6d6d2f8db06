"""On a Dask cluster: one that is given, or one on this machine, made for the run and closed after it."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import signal
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.executors.base import Engine
from privselect.tuning.executors.cluster_futures import Bridge
from privselect.tuning.executors.worker_setup import Cache, be_silent, check_installed, checked_workers, packed, private_folder, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from privselect.tuning.trial import Work


@dataclass(frozen=True, init=False)
class Dask(Engine):
    """With ``client=``, the cluster of that ``distributed.Client``, whose workers need privselect and the modules of the objective.

    Without it, a cluster of fresh processes on this machine, whose ports take only who holds a key that lives in memory. A script
    that makes one must start under ``if __name__ == "__main__":``, as Dask's workers import it.
    """

    name: ClassVar[str] = "dask"
    can_limit_time: ClassVar[bool] = False  # a worker runs its trials in a thread, which no signal reaches
    can_limit_memory: ClassVar[bool] = False  # the limit would stay on a worker that others use too
    notes: ClassVar[tuple[str, ...]] = (
        "whoever sees the Dask scheduler, its dashboard, its logs or its network sees how many trials are run, and when",
        "a Dask cluster that was given may spill the data to the disks of its workers, and ends a trial in its own time",
    )
    workers: int
    client: Any

    def __init__(self, client: Any = None, workers: int | None = None) -> None:
        check_installed("distributed", "dask")
        if client is None:
            check_installed("cryptography", "dask")
            number = checked_workers(workers)
        else:
            number = checked_workers(_threads(client) if workers is None else workers)
        object.__setattr__(self, "client", client)
        object.__setattr__(self, "workers", number)

    def open(self, work: Work) -> Executor:
        """Ships the work to every worker there is; one that comes later asks another for it."""
        parcel = packed(work)
        with contextlib.ExitStack() as undo:
            undo.enter_context(_no_logs())
            client = self.client if self.client is not None else undo.enter_context(_own_cluster(self.workers))
            return _Tasks(client, parcel, undo.pop_all())


@contextlib.contextmanager
def _no_logs() -> Iterator[None]:
    """The scheduler and the client write what happens to tasks and workers into the coordinator's log."""
    import_module("distributed")
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    loggers = [logger for logger in map(logging.getLogger, names) if not logger.disabled]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger in loggers:
            logger.disabled = False


def _threads(client: Any) -> int:
    try:
        return max(1, int(sum(client.nthreads().values())))
    except AttributeError:
        raise ParameterError(f"`client` must be a distributed.Client, got {format_value(type(client).__name__)}") from None


@contextlib.contextmanager
def _own_cluster(workers: int) -> Iterator[Any]:
    dask: Any = import_module("dask")
    distributed: Any = import_module("distributed")
    # No page of the scheduler or of a worker, and no limit of memory: it would kill or pause workers.
    pages: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    page = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with private_folder() as folder, dask.config.set({**pages, "temporary-directory": str(folder)}):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            security=True,
            scheduler_kwargs=page,
            silence_logs=logging.CRITICAL,
            memory_limit=0,
            local_directory=str(folder),
        )
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.register_plugin(_silent_workers())
                yield client
                _kill(cluster)
        finally:
            cluster.close()


def _kill(cluster: Any) -> None:
    """At once: asked kindly, a worker would end its trial first."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        with contextlib.suppress(ProcessLookupError, TypeError):  # gone, or not there yet
            os.kill(nanny.pid, signal.SIGKILL)


def _silent_workers() -> Any:
    plugin: Any = import_module("distributed").WorkerPlugin

    class Silent(plugin):  # type: ignore[misc]
        """Our own workers write nowhere, and leave Ctrl-C to the coordinator."""

        name = "privselect-silent"

        def setup(self, worker: object) -> None:  # noqa: ARG002 - Dask's protocol
            be_silent()

    return Silent()


class _Tasks(Bridge):
    def __init__(self, client: Any, parcel: bytes, undo: contextlib.ExitStack) -> None:
        super().__init__(undo)
        self._client = client
        try:
            self._parcel = client.scatter(parcel, broadcast=True, hash=False)
        except BaseException:
            undo.close()
            raise

    def _send(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        # The name of a task tells nothing, and no two tasks are one, also where candidate and seed are the same.
        return self._client.submit(
            _run_there, self._token, self._parcel, function, arguments, named, key=secrets.token_hex(16), pure=False, retries=0
        )

    def _listen(self, task: Any, done: Callable[[Any], None]) -> None:
        task.add_done_callback(done)

    def _result(self, ended: Any) -> Any:
        try:
            return ended.result()
        finally:
            ended.release()  # what lost the selection does not stay in a worker

    def _stop(self, tasks: list[Any]) -> None:
        self._client.cancel([*tasks, self._parcel], force=True)
        self._client.run(_forget, self._token)


# The rest runs in the workers.

_CACHE = Cache()


def _run_there(token: str, parcel: bytes, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return run(_CACHE.get(token, parcel), function, *arguments, **named)


def _forget(token: str) -> None:
    _CACHE.forget(token)
