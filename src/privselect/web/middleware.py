"""ASGI middleware: security headers on every response, and limits on the host, type, size and duration of requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
from functools import partial
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request

from privselect.web.limits import MAX_REQUEST_BYTES
from privselect.web.schemas import error_body

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
BODY_SECONDS = 10.0  # from the head of a request to the end of its body
_DISCARD_SECONDS = 2.0
_DISCARD_BYTES = 4_000_000


class RequestGuard:
    """The middleware in front of the application."""

    def __init__(self, app: ASGIApp, hosts: Collection[str] | None = None) -> None:
        self._app = app
        self._hosts = None if hosts is None else frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        headers, chunks = Headers(scope=scope), Request(scope, receive).stream()
        refuse = partial(_refuse, chunks, send_with_headers)
        if self._hosts is not None and _host(headers) not in self._hosts:
            # DNS rebinding: a foreign page whose name resolves to this machine must not read the answers.
            # Starlette's TrustedHostMiddleware does the same, but answers in plain text and does not name the allowed hosts.
            await refuse(400, f"`Host` must be one of {', '.join(sorted(self._hosts))}")
            return
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # A form on a foreign page can send other types without a CORS check.
            await refuse(415, "the content type must be application/json")
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read_body(headers, chunks)
        except ClientDisconnect:
            return
        except TimeoutError:
            await refuse(408, f"a request must be complete within {BODY_SECONDS:g} seconds")
            return
        if body is None:
            await refuse(413, f"a request must have at most {MAX_REQUEST_BYTES} bytes")
            return
        await self._app(scope, _replay(body, receive), send_with_headers)


def _host(headers: Headers) -> str:
    host = headers.get("host", "").lower()
    return host.rsplit(":", 1)[0] if not host.endswith("]") else host


async def _read_body(headers: Headers, chunks: AsyncIterator[bytes]) -> bytes | None:
    """Return the whole body, or None if it is too large. The stated length is not trusted."""
    length = headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and int(length[:20]) > MAX_REQUEST_BYTES:
        return None
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > MAX_REQUEST_BYTES:
            return None
    return body


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a ``receive`` that gives the body again, and then waits for the client to disconnect."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


async def _refuse(chunks: AsyncIterator[bytes], send: Send, status: int, message: str) -> None:
    """Send an error and close the connection, after reading the rest of the request up to a limit.

    If the connection closed while the client still sends, the client would get a reset and lose the answer.
    """
    body = json.dumps(error_body(message)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": True})
    discarded = 0
    with contextlib.suppress(TimeoutError, ClientDisconnect):
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for chunk in chunks:
                discarded += len(chunk)
                if discarded > _DISCARD_BYTES:
                    break
    await send({"type": "http.response.body", "body": b""})
