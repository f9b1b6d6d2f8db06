"""The uvicorn server with idle timeouts for connections and a fast, silent shutdown. uvicorn has no option for either."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, cast

import h11
import uvicorn

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

    from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS = 20.0  # for the head of a request, and for a client that does not read its answer
_PROGRESS_BYTES = 16_384  # a client that reads less than this in time counts as idle
_CHECK_TICKS = 5  # of 0.1 seconds
_SHUTDOWN_SECONDS = 1.0  # for the last answers; uvicorn logs an error if shutdown takes longer than its own limit


class Server(uvicorn.Server):
    """A server that reports when it is ready, aborts idle connections, and shuts down within about a second."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._idle: dict[H11Protocol, tuple[object, float]] = {}  # connection -> its progress and the time since then

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections and report it."""
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._ready()

    async def on_tick(self, counter: int) -> bool:
        """Check the connections every half second."""
        if counter % _CHECK_TICKS == 0:
            self._abort_idle_connections()
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Cancel all questions with an error to their clients, then abort the connections that remain."""
        self.lifespan.state["workers"].cancel_all()
        deadline = asyncio.get_running_loop().call_later(_SHUTDOWN_SECONDS, self._abort_all)
        await super().shutdown(sockets)
        deadline.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Ignore a second Ctrl-C: shutdown already takes about a second."""
        if not self.should_exit:
            super().handle_exit(sig, frame)

    def _abort_idle_connections(self) -> None:
        now = time.monotonic()
        idle: dict[H11Protocol, tuple[object, float]] = {}
        for connection in cast("list[H11Protocol]", list(self.server_state.connections)):
            if _waits_for_client(connection):
                progress = connection.cycle, connection.transport.get_write_buffer_size() // _PROGRESS_BYTES
                before, since = self._idle.get(connection, (progress, now))
                idle[connection] = progress, since if progress == before else now
                if now - idle[connection][1] > IDLE_SECONDS:
                    connection.transport.abort()
        self._idle = idle

    def _abort_all(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _waits_for_client(connection: H11Protocol) -> bool:
    """Return whether an h11 connection lacks the head of a request, or has an answer that the client does not read.

    Between requests, uvicorn's own keep-alive timeout runs instead.
    """
    lacks_head = connection.conn.their_state is h11.IDLE and connection.timeout_keep_alive_task is None
    return lacks_head or connection.flow.write_paused or connection.transport.is_closing()
