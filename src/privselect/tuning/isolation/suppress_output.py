"""Nothing that a trial prints, warns or logs may be seen: how often, and what, would tell K and the scores that lost."""

from __future__ import annotations

import contextlib
import ctypes
import io
import logging
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Nowhere(io.TextIOBase):
    """Takes text and keeps none of it."""

    def write(self, text: str, /) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class _Silence:
    """Entered once for the process however many threads ask: the first closes the outputs, the last opens them again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._undo = contextlib.ExitStack()

    def enter(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._undo = _closed_outputs()

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._undo.close()


_SILENCE = _Silence()


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Python's streams, the process's own outputs (what libraries in C print) and logging go nowhere."""
    _SILENCE.enter()
    try:
        yield
    finally:
        _SILENCE.leave()


def _closed_outputs() -> contextlib.ExitStack:
    undo = contextlib.ExitStack()
    try:
        streams = (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)
        _flush(streams)
        for descriptor in (1, 2):
            _redirect(descriptor, undo)
        # Before the outputs are back: what a trial left in buffers, such as those of a stream that a library had kept.
        undo.callback(_flush, streams)
        undo.enter_context(contextlib.redirect_stdout(_Nowhere()))
        undo.enter_context(contextlib.redirect_stderr(_Nowhere()))
        # A caller may record warnings and stray exceptions, or hand them on to a service. Nor may the caller's filters make an error of a
        # warning: another process has other ones, and a trial is the same everywhere.
        undo.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        for module, hook in ((warnings, "showwarning"), (threading, "excepthook"), (sys, "unraisablehook")):
            undo.callback(setattr, module, hook, getattr(module, hook))
            setattr(module, hook, _nothing)
        undo.callback(logging.disable, logging.root.manager.disable)
        logging.disable(sys.maxsize)  # levels are numbers, and a user may have one above all
    except BaseException:
        undo.close()
        raise
    return undo


def _nothing(*_: object, **__: object) -> None:
    """In the place of what would show something."""


def _flush(streams: tuple[Any, ...]) -> None:
    for stream in streams:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            stream.flush()
    with contextlib.suppress(AttributeError, TypeError, OSError):
        ctypes.CDLL(None).fflush(None)  # the buffers of libraries in C


def _redirect(descriptor: int, undo: contextlib.ExitStack) -> None:
    try:
        kept = os.dup(descriptor)
    except OSError:
        return  # the process has no such output
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
    undo.callback(os.close, kept)
    undo.callback(os.dup2, kept, descriptor)
