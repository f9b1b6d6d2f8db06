"""On Ray: the one that this process is connected to, one at an address, or one on this machine, made for the run."""

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
from privselect.tuning.executors.base import Engine
from privselect.tuning.executors.cluster_futures import Bridge
from privselect.tuning.executors.worker_setup import Cache, check_installed, checked_workers, packed, private_folder, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from privselect.tuning.trial import Work

_KEY = secrets.token_hex(32)  # for the ports of our own Ray; one for this process, as Ray reads it once
_LONGEST = 40  # characters of the folder: the names of Ray's sockets in it have a limit of 107


@dataclass(frozen=True, init=False)
class Ray(Engine):
    """With ``address=``, the cluster there; where this process uses Ray already, that one, which is left as it is.

    Otherwise a Ray on this machine, with its files in a folder of this user, removed after the run. Workers of a cluster need
    privselect and the modules of the objective.
    """

    name: ClassVar[str] = "ray"
    notes: ClassVar[tuple[str, ...]] = (
        "whoever sees the logs, the state or the dashboard of the Ray cluster sees how many trials are run, and when",
        "Ray listens on the network also where it runs on this machine alone; its ports ask for a random key since Ray 2.52",
    )
    workers: int
    address: str | None

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        check_installed("ray", "ray")
        if address is not None and not isinstance(address, str):
            raise ParameterError(f"`address` must be a text such as 'auto', got {format_value(address)}")
        object.__setattr__(self, "workers", checked_workers(workers))
        object.__setattr__(self, "address", address)

    def open(self, work: Work) -> Executor:
        """Connects or starts, and puts the work where each worker takes it once."""
        parcel = packed(work)
        with contextlib.ExitStack() as undo:
            _before_the_import()
            import ray

            if not ray.is_initialized():
                undo.enter_context(_own(self.workers) if self.address is None else _connected(self.address))
            undo.enter_context(_without_its_messages())
            return _Tasks(parcel, undo.pop_all())


def _before_the_import() -> None:
    """What Ray reads from the environment once, when it is imported: no report to its makers, and ports that ask for a key."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "ray" not in sys.modules:
        os.environ.setdefault("RAY_AUTH_MODE", "token")


@contextlib.contextmanager
def _environment(wanted: dict[str, str]) -> Iterator[None]:
    """Settings that Ray reads from the environment; what the user has set stays."""
    added = {name: value for name, value in wanted.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _without_its_messages() -> Iterator[None]:
    """Ray prints in the coordinator what its workers print, and a page on each that is lost."""
    from ray._private import worker

    before = getattr(worker, "_worker_logs_enabled", True)
    worker._worker_logs_enabled = False  # noqa: SLF001 - it has no setting for it
    try:
        yield
    finally:
        worker._worker_logs_enabled = before  # noqa: SLF001 - as above


@contextlib.contextmanager
def _connected(address: str) -> Iterator[None]:
    import ray

    ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)
    try:
        yield
    finally:
        ray.shutdown()


@contextlib.contextmanager
def _own(workers: int) -> Iterator[None]:
    import ray

    # Without a key of ours, Ray would write one of its own into the user's home.
    with private_folder(_short_root()) as folder, _environment({"RAY_AUTH_TOKEN": _KEY}):
        try:
            ray.init(
                address="local",
                num_cpus=workers,
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.CRITICAL,
                _temp_dir=str(folder / "ray"),  # which it opens to everybody, inside one that nobody else may enter
                _system_config={"memory_monitor_refresh_ms": 0},  # which would kill a worker when memory is short
            )
            yield
        finally:
            ray.shutdown()


def _short_root() -> str:
    root = tempfile.gettempdir()
    return root if len(root) <= _LONGEST else "/tmp"  # noqa: S108 - a fresh folder of this user's is made there


class _Tasks(Bridge):
    def __init__(self, parcel: bytes, undo: contextlib.ExitStack) -> None:
        import ray

        super().__init__(undo)
        try:
            self._parcel = ray.put(parcel)
            self._task = ray.remote(max_retries=0, retry_exceptions=False, num_cpus=1)(_run_there)
        except BaseException:
            undo.close()
            raise

    def _send(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        return self._task.remote(self._token, self._parcel, function, arguments, named)

    def _listen(self, task: Any, done: Callable[[Any], None]) -> None:
        task.future().add_done_callback(done)

    def _result(self, ended: Any) -> Any:
        lost = ended.exception()
        if lost is None:
            return ended.result()
        cause = getattr(lost, "cause", None)  # what a worker raised itself is the cause of Ray's error
        raise cause if isinstance(cause, Exception) else lost

    def _stop(self, tasks: list[Any]) -> None:
        import ray

        for reference in tasks:
            with contextlib.suppress(Exception):  # of one that has just ended
                ray.cancel(reference, force=True)
        del self._parcel, self._task


# The rest runs in the workers.


def _run_there(token: str, parcel: bytes, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return run(_cache().get(token, parcel), function, *arguments, **named)


def _cache() -> Cache:
    # By the module's name: Ray may bring this function by value, with a copy of what it refers to.
    return sys.modules[__name__]._CACHE  # type: ignore[no-any-return]  # noqa: SLF001


_CACHE = Cache()
