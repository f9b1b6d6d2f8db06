"""What stands before the application: headers on every answer, and refusals of what is too large, of another type or for another host."""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from privselect.web.limits import MOST_BYTES
from privselect.web.schemas import complaint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-cache",
}
BODY_SECONDS = 10.0  # from the head of a request to its end
_REST_SECONDS = 2.0
_REST_BYTES = 4_000_000  # of a request that is refused, read so that the client sees why


class Guard:
    """An application behind it."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers, pieces = Headers(scope=scope), _pieces(receive)
        refuse = partial(_refuse, pieces, sent)
        if self._hosts is not None and _host(headers) not in self._hosts:
            # A page from elsewhere whose name was made to point here must not read the answers.
            await refuse(400, f"the page must be asked for at one of {', '.join(sorted(self._hosts))}")
            return
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # A form of a page from elsewhere can send any other type without being asked whether it may.
            await refuse(415, "the body must be of the type application/json")
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _body(headers, pieces)
        except _GoneError:
            return
        except _TooLargeError:
            await refuse(413, f"a request must have at most {MOST_BYTES} bytes, got more")
            return
        except TimeoutError:
            await refuse(408, f"a request must be complete within {BODY_SECONDS:g} seconds, got a part of it")
            return
        await self._app(scope, _replayed(body, receive), sent)


class _GoneError(Exception):
    """The client has left in the midst of its request."""


class _TooLargeError(Exception):
    """The body is, or is said to be, too long."""


def _host(headers: Headers) -> str:
    host = headers.get("host", "").lower()
    return host.rsplit(":", 1)[0] if not host.endswith("]") else host


async def _body(headers: Headers, pieces: AsyncIterator[bytes]) -> bytes:
    """All of it, however it is said to be long."""
    length = headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > MOST_BYTES:
        raise _TooLargeError
    body = b""
    async for piece in pieces:
        body += piece
        if len(body) > MOST_BYTES:
            raise _TooLargeError
    return body


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    """Of the body, as they come, to its end."""
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _GoneError
        yield bytes(message.get("body", b""))
        more = message.get("more_body", False)


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()  # that the client has gone, when it has
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(pieces: AsyncIterator[bytes], send: Send, status: int, message: str) -> None:
    """An answer, and the connection is closed behind it; the rest of the request is read before, as far as that is no burden.

    Closed on a client that still sends, a connection is reset, and the answer lost with it.
    """
    body = json.dumps(complaint(message)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    with contextlib.suppress(TimeoutError, _GoneError):
        async with asyncio.timeout(_REST_SECONDS):
            await _discard(pieces)
    await send({"type": "http.response.body", "body": b""})


async def _discard(pieces: AsyncIterator[bytes]) -> None:
    length = 0
    async for piece in pieces:
        length += len(piece)
        if length > _REST_BYTES:
            return
