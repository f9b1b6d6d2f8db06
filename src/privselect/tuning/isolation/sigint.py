"""Ctrl-C comes before the winner is written, or too late: never in between."""

from __future__ import annotations

import contextlib
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C waits for nothing and stops nothing here, so that whoever pressed it knows whether something was released."""
    if threading.current_thread() is not threading.main_thread():
        yield  # a signal reaches the main thread alone
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
