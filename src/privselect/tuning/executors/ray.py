"""Trials on Ray: the cluster to which this process is connected, one at an address, or one on this machine, started for the run."""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import sys
import tempfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.executors import Engine
from privselect.tuning.executors.cluster_futures import ClusterExecutor, private_folder, run_on_cluster
from privselect.tuning.executors.worker_setup import check_installed, check_workers, pack_setup

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Executor

    from privselect.tuning.trial import TrialSetup

_AUTH_TOKEN = secrets.token_hex(32)  # for the ports of our own Ray; one per process, because Ray reads it once
_MAX_FOLDER_LENGTH = 40  # characters, because the paths of Ray's sockets in the folder are limited to 107


@dataclass(frozen=True, init=False)
class Ray(Engine):
    """A Ray cluster: the one at ``address``, or the one that this process already uses, which stays open after the run.

    Otherwise, a Ray on this machine, with its files in a folder of this user that is removed after the run. The workers of an existing
    cluster need privselect and the modules of the objective.
    """

    name: ClassVar[str] = "ray"
    notes: ClassVar[tuple[str, ...]] = (
        "the number and the times of the trials are visible to anyone who sees the logs, the state or the dashboard of the Ray cluster",
        "Ray listens on the network even when it runs on this machine only; its ports require a random token since Ray 2.52",
    )
    workers: int
    address: str | None

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        check_installed("ray", "ray")
        if address is not None and not isinstance(address, str):
            raise ParameterError(f"`address` must be a text such as 'auto', got {format_value(address)}")
        object.__setattr__(self, "workers", check_workers(workers))
        object.__setattr__(self, "address", address)

    def open(self, setup: TrialSetup) -> Executor:
        """Connect to Ray or start it, and store the setup, which each worker fetches once."""
        parcel = pack_setup(setup)
        with contextlib.ExitStack() as undo:
            # What Ray reads when it is imported: no usage report, and ports that require a token.
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            if "ray" not in sys.modules:
                os.environ.setdefault("RAY_AUTH_MODE", "token")
            import ray

            if not ray.is_initialized():
                undo.enter_context(_own_cluster(self.workers) if self.address is None else _connect(self.address))
            undo.enter_context(_without_messages())
            return _RayExecutor(parcel, undo)


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Hide what Ray prints in the coordinator: the output of workers, and a page for each lost one."""
    from ray._private import worker

    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False  # noqa: SLF001 - no public setting changes this on an open connection
    try:
        yield
    finally:
        worker._worker_logs_enabled = before  # noqa: SLF001 - as above


@contextlib.contextmanager
def _connect(address: str) -> Iterator[None]:
    import ray

    ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _own_cluster(workers: int) -> Iterator[None]:
    import ray

    root = tempfile.gettempdir()
    with private_folder(root if len(root) <= _MAX_FOLDER_LENGTH else "/tmp") as folder:  # noqa: S108 - a new folder
        # Without our own token, Ray would write one into the user's home folder. A token set by the user stays.
        own_token = "RAY_AUTH_TOKEN" not in os.environ
        os.environ.setdefault("RAY_AUTH_TOKEN", _AUTH_TOKEN)
        try:
            ray.init(
                address="local",
                num_cpus=workers,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                _temp_dir=str(folder / "ray"),  # Ray makes it accessible to everyone, but the folder around it is private
                _system_config={"memory_monitor_refresh_ms": 0},  # the monitor would kill workers when memory is short
            )
            yield
        finally:
            ray.shutdown()
            if own_token:
                os.environ.pop("RAY_AUTH_TOKEN", None)


class _RayExecutor(ClusterExecutor):
    def __init__(self, parcel: bytes, undo: contextlib.ExitStack) -> None:
        import ray

        self._parcel = ray.put(parcel)
        self._task = ray.remote(max_retries=0, retry_exceptions=False, num_cpus=1)(run_on_cluster)
        super().__init__(undo)

    def _send(self, *call: Any) -> tuple[Any, Any]:
        task = self._task.remote(self._token, self._parcel, *call)
        return task, task.future()

    def _result(self, ended: Any) -> Any:
        lost = ended.exception()
        if lost is None:
            return ended.result()
        cause = getattr(lost, "cause", None)  # what the worker itself raised
        raise cause if isinstance(cause, Exception) else lost

    def _stop(self, tasks: list[Any]) -> None:
        import ray

        for reference in tasks:
            with contextlib.suppress(Exception):  # it may have just ended
                ray.cancel(reference, force=True)
        del self._parcel, self._task
