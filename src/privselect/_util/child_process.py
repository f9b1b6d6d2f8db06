"""Limits that a worker process sets on itself: its memory, and exiting when its parent is gone."""

from __future__ import annotations

import os
import select
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection


def limit_memory(limit: int) -> None:
    """Limit this process's memory to ``limit`` bytes, so exceeding it raises MemoryError instead of killing the process."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def exit_with_parent(pipe: Connection, parent: int | None = None) -> None:
    """Exit this process when the other end of ``pipe`` closes, or when its parent is no longer ``parent``.

    A thread watches for it. The data in the pipe is not read.
    """
    threading.Thread(target=_exit_on_hangup, args=(pipe, parent), daemon=True).start()


def _exit_on_hangup(pipe: Connection, parent: int | None) -> None:
    try:
        poll = select.poll()
        poll.register(pipe, select.POLLHUP)  # data in the pipe is ignored
        while not poll.poll(1000) and (parent is None or os.getppid() == parent):
            pass
    finally:
        os._exit(1)  # also after an error: without a watcher, this process could outlive its parent
