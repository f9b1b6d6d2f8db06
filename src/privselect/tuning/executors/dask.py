"""Trials on a Dask cluster: a given one, or one on this machine, started for the run and closed afterwards."""

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
from privselect.tuning.executors import Engine
from privselect.tuning.executors.cluster_futures import ClusterExecutor, forget_setup, private_folder, run_on_cluster
from privselect.tuning.executors.worker_setup import check_installed, check_workers, pack_setup, silence_worker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from privselect.tuning.trial import TrialSetup


@dataclass(frozen=True, init=False)
class Dask(Engine):
    """A Dask cluster. With ``client=``, the cluster of that ``distributed.Client``.

    Its workers need privselect and the modules of the objective. Without ``client``, a cluster of new processes on this machine, with
    ports protected by a key that stays in memory. A script that starts one needs ``if __name__ == "__main__":``, because Dask's
    workers import the script.
    """

    name: ClassVar[str] = "dask"
    can_limit_time: ClassVar[bool] = False  # a worker runs its trials in a thread, which receives no signals
    can_limit_memory: ClassVar[bool] = False  # the limit would stay on a worker that others use too
    notes: ClassVar[tuple[str, ...]] = (
        "the number and the times of the trials are visible to anyone who sees the Dask scheduler, its dashboard, its logs or its network",
        "an existing Dask cluster may write the data to the disks of its workers, and does not stop a running trial immediately",
    )
    workers: int
    client: Any

    def __init__(self, client: Any = None, workers: int | None = None) -> None:
        check_installed("distributed", "dask")
        if client is None:
            check_installed("cryptography", "dask")
        elif workers is None:
            workers = _thread_count(client)
        object.__setattr__(self, "client", client)
        object.__setattr__(self, "workers", check_workers(workers))

    def open(self, setup: TrialSetup) -> Executor:
        """Send the setup to every worker; one that joins later gets it from another worker."""
        parcel = pack_setup(setup)
        with contextlib.ExitStack() as undo:
            undo.enter_context(_without_logs())
            client = self.client if self.client is not None else undo.enter_context(_own_cluster(self.workers))
            return _DaskExecutor(client, parcel, undo)


@contextlib.contextmanager
def _without_logs() -> Iterator[None]:
    """Disable the loggers of the scheduler and the client, which report on tasks and workers in the coordinator."""
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


def _thread_count(client: Any) -> int:
    try:
        return max(1, int(sum(client.nthreads().values())))
    except AttributeError:
        raise ParameterError(f"`client` must be a distributed.Client, got {format_value(type(client).__name__)}") from None


@contextlib.contextmanager
def _own_cluster(workers: int) -> Iterator[Any]:
    dask: Any = import_module("dask")
    distributed: Any = import_module("distributed")
    # No web pages of the scheduler or of a worker, and no memory limit, which would kill or pause workers.
    pages: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    dashboard = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    with private_folder() as folder, dask.config.set({**pages, "temporary-directory": str(folder)}):
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
            security=True,
            scheduler_kwargs=dashboard,
            silence_logs=logging.CRITICAL,
            memory_limit=0,
            local_directory=str(folder),
        )
        try:
            with distributed.Client(cluster, set_as_default=False) as client:
                client.register_plugin(_silence_plugin())
                yield client
                _kill_workers(cluster)
        finally:
            cluster.close()


def _kill_workers(cluster: Any) -> None:
    """Kill the workers immediately; Dask's own stop would wait for the running trials."""
    for nanny in cluster.workers.values():
        nanny.auto_restart = False
        with contextlib.suppress(ProcessLookupError, TypeError):  # already gone, or not started yet
            os.kill(nanny.pid, signal.SIGKILL)


def _silence_plugin() -> Any:
    plugin: Any = import_module("distributed").WorkerPlugin

    class Silence(plugin):  # type: ignore[misc]
        """Silence our own workers and let them ignore Ctrl-C."""

        name = "privselect-silent"

        def setup(self, worker: object) -> None:  # noqa: ARG002 - Dask's protocol
            silence_worker()

    return Silence()


class _DaskExecutor(ClusterExecutor):
    def __init__(self, client: Any, parcel: bytes, undo: contextlib.ExitStack) -> None:
        self._client = client
        self._parcel = client.scatter(parcel, broadcast=True, hash=False)
        super().__init__(undo)

    def _send(self, *call: Any) -> tuple[Any, Any]:
        # A random key reveals nothing, and keeps tasks with the same candidate and seed apart.
        key = secrets.token_hex(16)
        task = self._client.submit(run_on_cluster, self._token, self._parcel, *call, key=key, pure=False, retries=0)
        return task, task

    def _result(self, ended: Any) -> Any:
        try:
            return ended.result()
        finally:
            ended.release()  # a losing trial's result must not stay in a worker

    def _stop(self, tasks: list[Any]) -> None:
        self._client.cancel([*tasks, self._parcel], force=True)
        self._client.run(forget_setup, self._token)
