"""Run the application on this machine."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import sys
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})  # addresses that only this machine reaches
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_DESCRIPTORS = 4096
_OWN_DESCRIPTORS = 64  # for the processes and for files that are being sent
_BACKLOG = 2048
KEEP_ALIVE = 30  # seconds that a connection may wait for its next request


def serve(host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; ``ready`` is told the address once connections are taken. Port 0 is any free one."""
    try:
        import uvicorn

        from privselect.web.app import application
        from privselect.web.idle_timeouts import Connection, Server
        from privselect.web.worker_pool import prepare
    except ModuleNotFoundError as error:
        if error.name not in {"uvicorn", "fastapi", "starlette", "pydantic"}:
            raise
        raise MissingExtraError("the page needs FastAPI and uvicorn; install them with: pip install 'privselect[web]'") from None

    # Each process has a core: more threads inside it would only compete.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    listening = _listen(host, port)
    address = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}/"

    config = uvicorn.Config(
        application(_LOCAL_NAMES if host in LOCAL else None),
        log_level="warning",
        access_log=False,  # what is asked is nobody's business
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=2,
        backlog=_BACKLOG,
        lifespan="on",
        loop="asyncio",  # others take connections by themselves, however many
        http=Connection,
        ws="none",
    )
    with contextlib.suppress(KeyboardInterrupt):
        prepare()
        Server(config, lambda: ready(address)).run(sockets=[listening])


class _Listening(socket.socket):
    """A socket that takes no connection whose descriptor is ``most`` or more, which is how many are open at the most.

    Without a free descriptor a connection could neither be taken nor refused, and the event loop would try again and again.
    """

    most = sys.maxsize

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; one too many is closed at once."""
        connection, address = super().accept()
        if connection.fileno() >= self.most:  # the system gives the lowest number that is free
            connection.close()
            raise ConnectionAbortedError  # which the event loop passes over
        return connection, address


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = _Listening(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise _no_host(host, error) from None
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _no_host(host, error) from None
        raise ParameterError(
            f"`port` must be one that is free on {host}, got {port} ({error.strerror}); --port 0 takes any free one"
        ) from None
    listening.most = _most_descriptors()
    return listening


def _no_host(host: str, error: Exception) -> ParameterError:
    return ParameterError(f"`host` must be an address of this machine, got {format_value(host)} ({error})")


def _most_descriptors() -> int:
    """For connections: as many as the system lets a process have, up to some thousands, but for some of its own."""
    if sys.platform == "win32":
        return sys.maxsize  # descriptors are no numbers in a row there, and do not run out
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_DESCRIPTORS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return max(wanted - _OWN_DESCRIPTORS, wanted // 2)
