"""Connections: how long one may be silent, and how they end with the server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import FrameType

PATIENCE = 20.0  # seconds for the head of a request, and for a client that has stopped reading
_FAREWELL = 1.0  # seconds for the last answers, less than uvicorn waits before it complains


class Connection(H11Protocol):
    """Ended where a request is begun and its head never comes, or where an answer is not read; uvicorn would wait forever."""

    _ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """The clock runs from here on."""
        super().connection_made(transport)
        self._look()

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        super().data_received(data)
        self._look()

    def pause_writing(self) -> None:
        """The client does not read."""
        super().pause_writing()
        self._look()

    def resume_writing(self) -> None:
        """It reads again, and is given time for the rest."""
        super().resume_writing()
        self._stop_clock()
        self._look()

    def on_response_complete(self) -> None:
        """The last answer of a connection may still have to be read."""
        super().on_response_complete()
        if self.transport.is_closing():
            self._look()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing was asked for a while."""
        super().timeout_keep_alive_handler()
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is left to be ended."""
        super().connection_lost(exc)
        self._stop_clock()

    def _look(self) -> None:
        """Start the clock where the client is waited for, and only then; a byte now and then does not set it back."""
        if self.conn.their_state is h11.IDLE or self.flow.write_paused or self.transport.is_closing():
            self._ending = self._ending or self.loop.call_later(PATIENCE, self.transport.abort)
        else:
            self._stop_clock()

    def _stop_clock(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None


class Server(uvicorn.Server):
    """Tells when it is ready, and ends within moments and in silence."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take connections."""
        await super().startup(sockets)
        if self.started and not self.should_exit:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Questions at work are dropped with a word to their askers; who is still connected a moment later is not waited for."""
        self.lifespan.state["crew"].drop()
        farewell = asyncio.get_running_loop().call_later(_FAREWELL, self._abort)
        await super().shutdown(sockets)
        farewell.cancel()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second Ctrl-C changes nothing: the end is near, and would only be less tidy."""
        if not self.should_exit:
            super().handle_exit(sig, frame)

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()
