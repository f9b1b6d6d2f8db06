"""Questions, and how they go over the wire."""

import contextlib
import json

QUICK = {"mechanism": "gaussian(sigma=4)", "count": "geometric(mean=30)", "epsilon": "?", "delta": "1e-6"}
SLOW = {
    "mechanism": "dpsgd(noise_multiplier=1.3, sampling_probability=0.01, steps=4000)",
    "count": "geometric(mean=30, cap=?)",
    "epsilon": 5,
    "delta": "1e-6",
}
JSON = {"content-type": "application/json"}
HALF = b"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"


def lives(server):
    return server.post("answer", **QUICK).status_code == 200


def heard(connection):
    """All that is said until the other side closes."""
    return b"".join(iter(lambda: connection.recv(65536), b""))


def received(connection):
    """The same, of a connection that may be reset."""
    said = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            said += piece
    return bytes(said)


def request(fields):
    """As it goes over the wire; the connection is closed after it."""
    body = json.dumps(fields).encode()
    head = f"POST /api/answer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body
