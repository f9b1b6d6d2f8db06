"""Isolate a trial: hide its output, limit its time and memory, and hold back Ctrl-C during the release.

What a trial prints, warns or logs must not be seen: how often it does so, and the text, would reveal K and the losing scores.
"""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
import signal
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class _NullStream(io.TextIOBase):
    """A text stream that discards what is written."""

    def write(self, text: str, /) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class _OutputSuppression:
    """Output suppression for the whole process: the first thread to enter closes the outputs, the last to leave reopens them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._undo = contextlib.ExitStack()

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._undo = _close_outputs()

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._undo.close()


_SUPPRESSION = _OutputSuppression()


@contextlib.contextmanager
def suppress_output() -> Iterator[None]:
    """Discard Python's streams, the process's own outputs (to which C libraries print) and logging."""
    _SUPPRESSION.enter()
    try:
        yield
    finally:
        _SUPPRESSION.leave()


def _close_outputs() -> contextlib.ExitStack:
    undo = contextlib.ExitStack()
    try:
        streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        _flush(streams)
        for descriptor in (1, 2):
            _redirect(descriptor, undo)
        # Before the outputs are restored: discard what a trial left in buffers, such as those of a stream that a library had kept.
        undo.callback(_flush, streams)
        undo.enter_context(contextlib.redirect_stdout(_NullStream()))
        undo.enter_context(contextlib.redirect_stderr(_NullStream()))
        # A caller may record warnings and stray exceptions, or forward them to a service. And the caller's filters must not turn a
        # warning into an error: another process has other filters, and a trial must be the same everywhere.
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for module, hook in ((warnings, "showwarning"), (threading, "excepthook"), (sys, "unraisablehook")):
            undo.callback(setattr, module, hook, getattr(module, hook))
            setattr(module, hook, _ignore)
        undo.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)  # levels are numbers, and a user may have defined one above CRITICAL
    except BaseException:
        undo.close()
        raise
    return undo


def _ignore(*_: object, **__: object) -> None:
    """Replace a hook that would show something."""


def _flush(streams: tuple[Any, ...]) -> None:
    for stream in streams:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.flush()
    with contextlib.suppress(AttributeError, TypeError, OSError):
        ctypes.CDLL(None).fflush(None)  # the buffers of C libraries


def _redirect(descriptor: int, undo: contextlib.ExitStack) -> None:
    try:
        kept = os.dup(descriptor)
    except OSError:
        return  # the process has no such output
    discard_descriptor(descriptor)
    undo.callback(os.close, kept)
    undo.callback(os.dup2, kept, descriptor)


def discard_descriptor(descriptor: int) -> None:
    """Send what is written to this file descriptor to the null device."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, descriptor)
    os.close(null)


# -- time and memory -----------------------------------------------------------------------------------------------------------


class TrialTimeout(BaseException):
    """Raised when a trial's time is over. ``except Exception`` in a trainer does not catch it."""


def can_limit_time() -> bool:
    """Return whether a trial run in this thread can be stopped: only the main thread receives signals."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextlib.contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Raise ``TrialTimeout`` inside the block after this many seconds; None means no limit."""
    if seconds is None:
        yield
        return
    if not can_limit_time():
        raise RuntimeError  # an engine that cannot enforce a time limit is refused before the draw; never run without the limit
    running = True

    def stop(*_: object) -> None:
        if running:
            raise TrialTimeout

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, seconds)  # repeated, in case the trial swallows the first alarm
    try:
        try:
            yield
        finally:
            running = False
    finally:  # an alarm just before `running = False` must not skip the cleanup
        running = False
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


# -- Ctrl-C --------------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def ignore_sigint() -> Iterator[None]:
    """Ignore Ctrl-C inside the block, so an interrupted run has either released its winner or not, never half of it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
