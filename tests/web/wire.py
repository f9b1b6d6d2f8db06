"""Helpers: questions, requests to the handlers without a server, and raw HTTP."""

import contextlib
import json

from pydantic import ValidationError

from privselect.web.handlers import handle
from privselect.web.schemas import AdviceRequest, AnswerRequest, DesignRequest, RefusedError, SolvedRequest, explain_invalid

QUICK = {"mechanism": "gaussian(sigma=4)", "count": "geometric(mean=30)", "epsilon": "?", "delta": "1e-6"}
SLOW = {
    "mechanism": "dpsgd(noise_multiplier=1.3, sampling_probability=0.01, steps=4000)",
    "count": "geometric(mean=30, cap=?)",
    "epsilon": 5,
    "delta": "1e-6",
}
JSON = {"content-type": "application/json"}
HALF = b"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"


def ask(kind, fields):
    """Validate a body as the server does, and return the answer of a worker."""
    model = {"answer": AnswerRequest, "design": DesignRequest, "advise": AdviceRequest}.get(kind, SolvedRequest)
    try:
        request = model(**fields)
    except ValidationError as invalid:
        error = invalid.errors()[0]
        _, message, field = explain_invalid({**error, "loc": ("body", *error["loc"])})
        raise RefusedError(message, field) from None
    return handle(kind, request)


def is_alive(server):
    return server.post("answer", **QUICK).status_code == 200


def read_all(connection):
    """Return everything received until the other side closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def read_until_reset(connection):
    """Return everything received until the connection closes or is reset."""
    said = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            said += piece
    return bytes(said)


def request(fields):
    """Return the bytes of a request that closes its connection."""
    body = json.dumps(fields).encode()
    head = f"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
