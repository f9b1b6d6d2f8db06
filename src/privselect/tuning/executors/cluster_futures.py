"""Tasks of a cluster as futures of Python, which the cluster's own would leave open when it ends."""

from __future__ import annotations

import contextlib
import secrets
import threading
from abc import abstractmethod
from concurrent.futures import Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any

from privselect.tuning.executors.worker_setup import told

if TYPE_CHECKING:
    from collections.abc import Callable


class Bridge(Executor):
    """What Dask and Ray share. ``undo`` closes the cluster, where it is our own, and whatever else was opened for the run."""

    def __init__(self, undo: contextlib.ExitStack) -> None:
        self._undo = undo
        self._token = secrets.token_hex(16)  # by which a worker knows the work that it has unpacked
        self._lock = threading.Lock()
        self._pending: dict[Future[Any], Any] = {}
        self._open = True

    @abstractmethod
    def _send(self, function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The cluster's task."""

    @abstractmethod
    def _listen(self, task: Any, done: Callable[[Any], None]) -> None:
        """Call ``done`` when the task has ended, however it did."""

    @abstractmethod
    def _result(self, ended: Any) -> Any:
        """What the task returned; raises what it raised, or that it was lost."""

    @abstractmethod
    def _stop(self, tasks: list[Any]) -> None:
        """Stop these tasks and take the work back; may fail where the cluster is gone."""

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        """A future that always ends, also where the cluster does not."""
        if not self._open:
            raise RuntimeError("cannot schedule new futures after shutdown")
        promise: Future[Any] = Future()
        promise.set_running_or_notify_cancel()
        task = self._send(function, arguments, named)
        with self._lock:
            self._pending[promise] = task
        self._listen(task, partial(self._hand_over, promise))
        return promise

    def _hand_over(self, promise: Future[Any], ended: Any) -> None:
        outcome, lost = None, None
        try:
            outcome = self._result(ended)
        except BaseException as error:  # noqa: BLE001 - killed, cancelled or never heard of again: all are losses
            lost = told(error)
        with self._lock:
            if self._pending.pop(promise, None) is None:
                return  # shut down meanwhile
        if lost is None:
            promise.set_result(outcome)
        else:
            promise.set_exception(lost)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = True) -> None:  # noqa: ARG002, FBT001, FBT002 - the protocol's
        """Stops what runs or waits, takes the work back from the workers, and closes the cluster where it is our own."""
        if not self._open:
            return
        self._open = False
        with self._lock:
            abandoned, self._pending = self._pending, {}
        with contextlib.suppress(Exception):  # a cluster that is gone has nothing to give back
            self._stop(list(abandoned.values()))
        for promise in abandoned:
            promise.set_exception(RuntimeError("the executor was shut down"))
        abandoned.clear()
        self._undo.close()
