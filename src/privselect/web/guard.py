"""What stands before the application: headers on every answer, and refusals of what is too large, of another type or for another host."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from privselect.web.limits import MOST_BYTES
from privselect.web.schemas import complaint

if TYPE_CHECKING:
    from collections.abc import Collection

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

        headers = Headers(scope=scope)
        if self._hosts is not None and _host(headers) not in self._hosts:
            # A page from elsewhere whose name was made to point here must not read the answers.
            await _refuse(sent, 400, f"the page must be asked for at one of {', '.join(sorted(self._hosts))}")
            return
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            # A form of a page from elsewhere can send any other type without being asked whether it may.
            await _refuse(sent, 415, "the body must be of the type application/json")
            return
        length = headers.get("content-length", "0")
        if length.isascii() and length.isdigit() and int(length[:20]) > MOST_BYTES:
            await _refuse(sent, 413, _TOO_LARGE)
            return
        body = await _body(receive)
        if body is None:
            await _refuse(sent, 413, _TOO_LARGE)
            return
        await self._app(scope, _replayed(body, receive), sent)


_TOO_LARGE = f"a request must have at most {MOST_BYTES} bytes, got more"


def _host(headers: Headers) -> str:
    host = headers.get("host", "").lower()
    return host.rsplit(":", 1)[0] if not host.endswith("]") else host


async def _body(receive: Receive) -> bytes | None:
    """All of it, however it is said to be long; None where it is too long."""
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return body
        body += bytes(message.get("body", b""))
        if len(body) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return body


def _replayed(body: bytes, receive: Receive) -> Receive:
    told = False

    async def again() -> Message:
        nonlocal told
        if told:
            return await receive()  # that the client has gone, when it has
        told = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def _refuse(send: Send, status: int, message: str) -> None:
    body = json.dumps(complaint(message)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
