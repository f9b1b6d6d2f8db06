"""A real server: its responses and refusals. No request ends it."""

import asyncio
import json
import socket
import subprocess
import sys
import time

import httpx
import pytest
from wire import QUICK, SLOW, is_alive, read_all, request

from privselect.cli import main
from privselect.web.limits import MAX_REQUEST_BYTES

HEADERS = {
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
}


def test_the_page_and_its_files_are_served(server):
    page = server.client.get("/")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert "<script>" not in page.text
    assert server.client.get("/static/planner.js").status_code == 200
    assert server.client.get("/static/vendor/uPlot.LICENSE").status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/style.css", "/api/openapi.json", "/nothing", "/api/answer"])
def test_every_answer_has_strict_headers(server, path):
    headers = server.client.get(path).headers
    assert HEADERS.items() <= headers.items()
    policy = dict(part.strip().split(" ", 1) for part in headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert "unsafe" not in headers["content-security-policy"]
    assert "server" not in headers


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/vendor/../../app.py", "/docs", "/redoc"]
)
def test_nothing_else_is_served(server, path):
    with server.connect() as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        assert read_all(raw).startswith(b"HTTP/1.1 404")


def test_a_head_is_the_page_without_its_body(server):
    found = server.client.head("/")
    assert found.status_code == 200
    assert found.headers["content-length"] == server.client.get("/").headers["content-length"]
    assert found.content == b""


def test_a_name_that_was_made_to_point_here_is_refused(server):
    found = server.client.get("/", headers={"host": "elsewhere.example"})
    assert found.status_code == 400
    assert "localhost" in found.json()["error"]["message"]
    assert server.client.get("/", headers={"host": f"localhost:{server.client.base_url.port}"}).status_code == 200


def test_a_question_with_its_answer(server, question):
    found = server.post("answer", **question)
    assert found.status_code == 200
    assert found.json()["unknown"] == "noise_multiplier"
    settled = {**question, "value": found.json()["value"]}
    for kind in ("curves", "compare"):
        assert server.post(kind, **settled).status_code == 200
    plan = server.post("plan", **settled)
    assert plan.headers["content-disposition"] == 'attachment; filename="plan.toml"'
    assert "noise_multiplier=?" in plan.text
    certificate = server.post("certificate", **settled)
    assert certificate.headers["content-disposition"] == 'attachment; filename="certificate-draft.json"'
    assert certificate.json()["draft"] is True


NUMBER = b'{"mechanism": "gaussian(sigma=?)", "epsilon": %s, "delta": 1e-6}'
LONG_LAW = "finite({" + ", ".join(f"{k}: 1" for k in range(1, 1200)) + "})"
BODIES = {
    "nothing": (b"", 422),
    "half": (b"{", 400),
    "null": (b"null", 422),
    "a list": (b"[]", 422),
    "a text": (b'"text"', 422),
    "no utf-8": (b"\xff\xfe", 400),
    "no utf-8 in a text": (NUMBER % b'"\xff"', 400),
    "deep": (b"[" * 30_000, 400),
    "no numbers": (b'{"mechanism": NaN, "epsilon": Infinity, "delta": -Infinity}', 422),
    "infinite": (NUMBER % b"1e999", 422),
    "many digits": (NUMBER % (b"9" * 5000), 400),
    "true": (NUMBER % b"true", 422),
    "half a character": (b'{"mechanism": "\\ud800", "epsilon": "?", "delta": 1e-6}', 422),
    "a null character": (b'{"mechanism": "gaussian(sigma=4)", "epsilon": "\\u0000", "delta": "?"}', 422),
    "brackets": (json.dumps({**QUICK, "mechanism": "(" * 10_000}).encode(), 422),
    "a long text": (json.dumps({**QUICK, "mechanism": "x" * 10_001}).encode(), 422),
    "a long law": (json.dumps({**QUICK, "count": LONG_LAW, "mechanism": "gaussian(sigma=-4)"}).encode(), 422),
    "another field": (json.dumps({**QUICK, "more": 1}).encode(), 422),
    "just too large": (b"x" * (MAX_REQUEST_BYTES + 1), 413),
    "a megabyte": (b"x" * 1_000_000, 413),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_body_is_refused_in_a_sentence(server, name):
    body, status = BODIES[name]
    found = server.client.post("/api/answer", content=body, headers={"content-type": "application/json"})
    assert found.status_code == status
    message = found.json()["error"]["message"]
    assert len(message) < 400
    assert status != 400 or message.startswith("the body must be JSON")
    assert is_alive(server)


def test_a_body_in_pieces_cannot_hide_its_size(server):
    pieces = (b"x" * 10_000 for _ in range(100))
    assert server.client.post("/api/answer", content=pieces, headers={"content-type": "application/json"}).status_code == 413


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonp"])
def test_only_json_is_read(server, kind):
    found = server.client.post("/api/answer", content=json.dumps(QUICK), headers={"content-type": kind})
    assert found.status_code == 415


FIELDS = {
    ("epsilon", None): "`epsilon` must be in [0, inf), got None",
    ("delta", "1" * 401): "`delta` must have at most 400 characters, got '111",
    ("mechanism", 4): "`mechanism` must be a text form such as gaussian(sigma=4) of at most 10000 characters, got 4",
    ("count", False): "`count` must be a text form such as geometric(mean=30)",
    ("count", ""): "`count` must be a text form",
    ("delta", "nonsense"): "`delta` must be in [1e-50, 1), got 'nonsense'",
}


@pytest.mark.parametrize("place", FIELDS)
def test_a_refusal_stands_beside_its_field(server, place):
    field, value = place
    found = server.post("answer", **{**QUICK, field: value})
    assert found.status_code == 422
    assert found.json()["error"]["field"] == field
    assert FIELDS[place] in found.json()["error"]["message"]


def test_a_missing_field_is_named(server):
    found = server.post("answer", mechanism="gaussian(sigma=4)", epsilon="?")
    assert found.json()["error"] == {"field": "delta", "message": "`delta` is missing"}


def test_slow_questions_do_not_block_the_others(server):
    async def scenario():
        async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            slow = [asyncio.ensure_future(client.post("/api/answer", json=SLOW)) for _ in range(2)]
            await asyncio.sleep(0.5)
            begun = time.monotonic()
            quick = await client.post("/api/answer", json=QUICK)
            spent = time.monotonic() - begun
            page = await client.get("/")
            ended, others = await asyncio.wait(slow, return_when=asyncio.FIRST_COMPLETED)
            for one in others:
                one.cancel()
            return quick, spent, page, ended.pop().result()

    quick, spent, page, slow = asyncio.run(scenario())
    assert quick.status_code == page.status_code == 200
    assert spent < 15.0  # without the limit, the slow questions hold the workers for 20 seconds or more
    assert slow.status_code == 422
    assert "takes too long while others wait" in slow.json()["error"]["message"]


def test_clients_that_leave_take_their_questions_with_them(server):
    leaving = [server.connect() for _ in range(20)]
    for one in leaving:
        one.sendall(request(SLOW))
    time.sleep(0.7)
    for one in leaving:
        one.close()
    begun = time.monotonic()
    assert is_alive(server)
    assert time.monotonic() - begun < 10.0  # twenty slow questions take 40 seconds


def test_a_thousand_requests_at_once(server):
    place = (server.client.base_url.host, server.client.base_url.port)

    async def one(sigma):
        reader, writer = await asyncio.open_connection(*place)
        writer.write(request({**QUICK, "mechanism": f"gaussian(sigma={sigma})"}))
        said = await reader.read()
        writer.close()
        return said

    async def scenario():
        return await asyncio.gather(*(one(4 + place / 100) for place in range(1000)))

    found = asyncio.run(scenario())
    statuses = {said[: said.index(b"\r\n")] for said in found}
    assert statuses == {b"HTTP/1.1 200 OK", b"HTTP/1.1 429 Too Many Requests"}
    busy = next(said for said in found if b" 429 " in said[:20])
    assert b"Server busy. Retry in a few seconds." in busy
    assert b"retry-after: 2" in busy
    assert is_alive(server)


def test_a_port_that_is_taken_is_one_sentence(capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert refused(capsys, "--port", str(port)).startswith(f"error: `port` must be free on 127.0.0.1, got {port}")


@pytest.mark.parametrize("port", ["-1", "65536", "x", "80.5"])
def test_a_port_that_is_none_is_one_sentence(capsys, port):
    assert f"`port` must be an integer >= 0 and <= 65535, got '{port}'" in refused(capsys, f"--port={port}")


def test_a_host_that_is_none_is_one_sentence(capsys):
    assert "`host` must be an address of this machine, got 'no.such.host.invalid'" in refused(capsys, "--host", "no.such.host.invalid")


def test_a_host_that_is_another_machine_is_one_sentence(capsys):
    address = "192.0.2.1"  # reserved for documentation
    assert f"`host` must be an address of this machine, got '{address}'" in refused(capsys, "--host", address, "--port", "0")


def test_without_fastapi_the_extra_is_named():
    code = "import sys; sys.modules['fastapi'] = None\nfrom privselect.cli import main\nmain(['serve'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "error: the page needs FastAPI and uvicorn; install them with: pip install 'privselect[web]'\n",
    )


def refused(capsys, *options):
    with pytest.raises(SystemExit) as stop:
        main(["serve", *options])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    return said.err
