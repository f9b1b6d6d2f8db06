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
_LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_MAX_DESCRIPTORS = 4096
_OWN_DESCRIPTORS = 64  # reserved for worker processes and files
_BACKLOG = 2048
KEEP_ALIVE = 30  # seconds that a connection may wait for its next request


def serve(host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until interrupted.

    Args:
        host: The address to listen on.
        port: The port; 0 takes any free one.
        ready: Called with the URL when the server accepts connections.
    """
    try:
        import uvicorn

        from privselect.web.app import application
        from privselect.web.uvicorn_server import Server
        from privselect.web.worker_pool import start_forkserver
    except ModuleNotFoundError as error:
        if error.name not in {"uvicorn", "fastapi", "starlette", "pydantic"}:
            raise
        raise MissingExtraError("the page needs FastAPI and uvicorn; install them with: pip install 'privselect[web]'") from None

    # One worker per core: threads inside a worker would compete with the other workers.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    listening = _listen(host, port)
    url = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}/"

    config = uvicorn.Config(
        application(_LOCAL_HOSTS if host in LOCAL else None),
        log_level="warning",
        access_log=False,  # questions are private
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=2,
        backlog=_BACKLOG,
        lifespan="on",
        loop="asyncio",  # other event loops do not use our accept()
        http="h11",  # its connections have the idle timeouts
        ws="none",
    )
    with contextlib.suppress(KeyboardInterrupt):
        start_forkserver()
        Server(config, lambda: ready(url)).run(sockets=[listening])


class _ListeningSocket(socket.socket):
    """A socket that closes each new connection whose descriptor is ``limit`` or more.

    Without a free descriptor, ``accept`` would fail and the event loop would retry it in a busy loop. uvicorn's
    ``limit_concurrency`` refuses requests, not connections.
    """

    limit = sys.maxsize

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept the next connection, or close it if there are too many."""
        connection, address = super().accept()
        if connection.fileno() >= self.limit:  # the system gives the smallest free number
            connection.close()
            raise ConnectionAbortedError  # the event loop ignores this error
        return connection, address


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = _ListeningSocket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise _invalid_host(host, error) from None
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRNOTAVAIL:
            raise _invalid_host(host, error) from None
        raise ParameterError(f"`port` must be free on {host}, got {port} ({error.strerror}). Use --port 0 for any free port.") from None
    listening.limit = _descriptor_limit()
    return listening


def _invalid_host(host: str, error: Exception) -> ParameterError:
    return ParameterError(f"`host` must be an address of this machine, got {format_value(host)} ({error})")


def _descriptor_limit() -> int:
    """Return how many descriptors connections may use, after raising the limit of this process."""
    if sys.platform == "win32":
        return sys.maxsize  # sockets are not numbered from 0 there
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = _MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(_MAX_DESCRIPTORS, hard)
    if soft < limit:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    return max(limit - _OWN_DESCRIPTORS, limit // 2)
