"""What Dask and Ray share: an executor on tasks of a cluster, the setup kept in each worker, and a private folder."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import tempfile
import threading
from abc import abstractmethod
from concurrent.futures import Executor, Future
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError
from privselect.tuning.executors.worker_setup import run_in_worker, start_trackers, unpack_setup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.tuning.trial import TrialSetup


class ClusterExecutor(Executor):
    """Run tasks on a cluster as Python futures, which always end, even if the cluster does not answer.

    ``undo`` closes our own cluster, and everything else opened for the run. A subclass calls this constructor last: until then, the
    caller closes them after an error.
    """

    def __init__(self, undo: contextlib.ExitStack) -> None:
        self._undo = undo.pop_all()
        self._token = secrets.token_hex(16)  # by which a worker finds the setup that it has unpacked
        self._lock = threading.Lock()
        self._pending: dict[Future[Any], Any] = {}
        self._open = True

    @abstractmethod
    def _send(self, *call: Any) -> tuple[Any, Any]:
        """Submit :func:`run_on_cluster` with this call; return the task, and its future, which accepts callbacks."""

    @abstractmethod
    def _result(self, ended: Any) -> Any:
        """Return the result of the task; raise its error, or an error if it was lost."""

    @abstractmethod
    def _stop(self, tasks: list[Any]) -> None:
        """Stop these tasks and delete the setup; may fail if the cluster is gone."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """Return a future that always ends, even if the cluster does not answer."""
        if not self._open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        future: Future[Any] = Future()
        future.set_running_or_notify_cancel()
        task, running = self._send(function, arguments, named)
        with self._lock:
            self._pending[future] = task
        running.add_done_callback(partial(self._hand_over, future))
        return future

    def _hand_over(self, future: Future[Any], ended: Any) -> None:
        outcome: Any = None
        lost: Exception | None = None
        try:
            outcome = self._result(ended)
        except BaseException as error:  # noqa: BLE001 - a killed, cancelled or vanished task counts as a lost worker
            # Not the cluster's own error about a lost worker, whose text contains machine names and tracebacks.
            lost = error if isinstance(error, ParameterError) else RuntimeError("a worker was lost")
        with self._lock:
            if self._pending.pop(future, None) is None:
                return  # shut down in the meantime
        if lost is None:
            future.set_result(outcome)
        else:
            future.set_exception(lost)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002 - the protocol's
        """Stop running and waiting tasks, delete the setup in the workers, and close the cluster if it is our own."""
        if not self._open:
            return
        self._open = False
        with self._lock:
            abandoned, self._pending = self._pending, {}
        with contextlib.suppress(Exception):  # the cluster may be gone
            self._stop(list(abandoned.values()))
        for future in abandoned:
            future.set_exception(RuntimeError("the executor was shut down"))
        abandoned.clear()
        self._undo.close()


# -- in the workers ------------------------------------------------------------------------------------------------------------

_SETUPS: dict[str, TrialSetup] = {}  # the setup that this worker unpacked last, by a random token
_LOCK = threading.Lock()


def run_on_cluster(token: str, parcel: bytes, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Run the function on the setup with this token."""
    # Looked up in the module, because Ray may send this function by value, with copies of the objects it refers to.
    return run_in_worker(import_module(__name__).cached_setup(token, parcel), function, *arguments, **named)


def cached_setup(token: str, parcel: bytes) -> TrialSetup:
    """Return the setup, unpacked if this worker has not done so yet."""
    with _LOCK:
        if token not in _SETUPS:
            _SETUPS.clear()
            _SETUPS[token] = unpack_setup(parcel)
        return _SETUPS[token]


def forget_setup(token: str) -> None:
    """Delete the setup, so private data does not stay in the worker after the run."""
    with _LOCK:
        _SETUPS.pop(token, None)


# -- our own cluster -----------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def private_folder(root: str | None = None) -> Iterator[Path]:
    """Create a folder for the files of our own cluster, accessible to this user only, and removed even if the coordinator is killed."""
    from loky.backend import resource_tracker

    start_trackers(resource_tracker)
    folder = tempfile.mkdtemp(prefix="ps-", dir=root)
    resource_tracker.register(folder, "folder")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        resource_tracker.unregister(folder, "folder")
