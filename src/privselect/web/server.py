"""Run the application on this machine."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from typing import TYPE_CHECKING

from privselect.errors import MissingExtraError, ParameterError
from privselect.parameters import shown

if TYPE_CHECKING:
    from collections.abc import Callable

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})  # addresses that only this machine reaches
_LOCAL_NAMES = ("127.0.0.1", "localhost", "[::1]")
_CONNECTIONS = 4096
_BACKLOG = 2048


def serve(host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve until interrupted; ``ready`` is told the address once connections are taken. Port 0 is any free one."""
    try:
        import uvicorn

        from privselect.web.app import application
    except ModuleNotFoundError as error:
        if error.name not in {"uvicorn", "fastapi", "starlette", "pydantic"}:
            raise
        raise MissingExtraError("the page needs FastAPI and uvicorn; install them with: pip install 'privselect[web]'") from None

    # Each process has a core: more threads inside it would only compete.
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    _allow_connections()
    listening = _listen(host, port)
    address = f"http://{host if ':' not in host else f'[{host}]'}:{listening.getsockname()[1]}/"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if self.started:
                ready(address)

    config = uvicorn.Config(
        application(_LOCAL_NAMES if host in LOCAL else None),
        log_level="warning",
        access_log=False,  # what is asked is nobody's business
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=2,
        backlog=_BACKLOG,
        lifespan="on",
        ws="none",
    )
    with contextlib.suppress(KeyboardInterrupt):
        Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
    except (OSError, UnicodeError) as error:
        raise ParameterError(f"`host` must be an address of this machine, got {shown(host)} ({error})") from None
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise ParameterError(
            f"`port` must be one that is free on {host}, got {port} ({error.strerror}); --port 0 takes any free one"
        ) from None
    return listening


def _allow_connections() -> None:
    """As many open connections as the system lets a process have, up to some thousands."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _CONNECTIONS if hard == resource.RLIM_INFINITY else min(_CONNECTIONS, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
