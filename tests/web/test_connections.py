"""Connections to a real server: unfinished, unread, too many, and during its shutdown."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

import httpx
import pytest
from wire import HALF, JSON, SLOW, is_alive, read_all, read_until_reset, request


def test_large_bodies_at_once_all_get_an_answer(server):
    async def scenario():
        async with httpx.AsyncClient(base_url=server.url, timeout=60, limits=httpx.Limits(max_connections=100)) as client:
            sending = (client.post("/api/answer", content=b"x" * 1_000_000, headers=JSON) for _ in range(100))
            return await asyncio.gather(*sending)

    assert {found.status_code for found in asyncio.run(scenario())} == {413}


def test_a_body_without_end_is_not_read_for_long(server):
    with server.connect() as raw:
        raw.sendall(HALF.replace(b"1000", b"100000000000"))
        with contextlib.suppress(ConnectionError):
            for _ in range(10_000):  # some gigabytes
                raw.sendall(b"x" * 500_000)
            pytest.fail("all of it was taken")
    assert is_alive(server)


IMPATIENT = """
from privselect.web import middleware, uvicorn_server
uvicorn_server.IDLE_SECONDS = middleware.BODY_SECONDS = 0.5
"""
HURRIED = f"""{IMPATIENT}
from privselect.web import server
server.KEEP_ALIVE = 1
"""
ESTABLISHED = "01"  # in /proc/net/tcp
FEW_DESCRIPTORS = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (200, 200))"
impatient = pytest.mark.parametrize("own_server", [pytest.param(IMPATIENT, id="impatient")], indirect=True)
PAGE = b"GET /static/planner.js HTTP/1.1\r\nHost: localhost\r\n\r\n"


@impatient
def test_a_body_that_never_ends_gets_a_timeout(own_server):
    waiting = [own_server.connect() for _ in range(50)]
    for one in waiting:
        one.sendall(HALF)
    for one in waiting:
        with one:
            response = read_all(one)
        assert response.startswith(b"HTTP/1.1 408 ")
        assert b"x-frame-options: DENY" in response
        assert b"a request must be complete within 0.5 seconds" in response
    assert is_alive(own_server)


@impatient
@pytest.mark.parametrize("begun", [b"", b"GET / HT", PAGE[:-2]], ids=["nothing", "a line", "a head"])
def test_a_head_that_never_ends_is_not_waited_for(own_server, begun):
    with own_server.connect() as one:
        one.sendall(begun)
        assert read_all(one) == b""
    assert is_alive(own_server)


@impatient
def test_a_second_head_that_never_ends_is_not_waited_for_either(own_server):
    with own_server.connect() as one:
        one.sendall(PAGE)
        time.sleep(0.3)  # until all of the answer is there
        one.sendall(PAGE[:-2])
        assert read_all(one).count(b"HTTP/1.1 200 OK") == 1


@impatient
def test_a_head_that_comes_byte_by_byte_is_not_waited_for(own_server):
    with own_server.connect() as one:
        one.settimeout(0.05)
        for _ in range(100):
            one.sendall(b"x")
            with contextlib.suppress(TimeoutError):
                assert read_all(one) == b""
                return
    pytest.fail("it was waited for")


@impatient
def test_a_client_that_does_not_read_is_not_waited_for(own_server):
    many = 2000
    with own_server.connect() as one:
        one.sendall(PAGE * many)
        time.sleep(1.5)
        assert read_until_reset(one).count(b"HTTP/1.1 200 OK") < many
    assert is_alive(own_server)


@pytest.mark.skipif(not Path("/proc").exists(), reason="connections are looked up in /proc")
@pytest.mark.parametrize("own_server", [pytest.param(HURRIED, id="hurried")], indirect=True)
@pytest.mark.parametrize("piece", [PAGE, PAGE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")], ids=["kept", "last"])
def test_a_short_answer_that_is_not_read_does_not_hold_its_connection(own_server, piece):
    with contextlib.ExitStack() as opened:
        for many in range(1, 260, 2):  # some keep an unsent rest that is too small to pause writing
            one = opened.enter_context(socket.socket())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            one.connect((own_server.client.base_url.host, own_server.client.base_url.port))
            with contextlib.suppress(ConnectionError):
                one.sendall(piece * many)
        until = time.monotonic() + 60.0  # the server handles about 17,000 requests before
        while held(own_server):
            assert time.monotonic() < until, "a connection is held"
            time.sleep(0.1)
    assert is_alive(own_server)


def held(server):
    """Return the connections that the server has not closed."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row for row in rows if row[1].endswith(f":{server.client.base_url.port:04X}") and row[3] == ESTABLISHED]


@pytest.mark.skipif(not Path("/proc").exists(), reason="its work is looked up in /proc")
@pytest.mark.parametrize("own_server", [pytest.param(FEW_DESCRIPTORS, id="few descriptors")], indirect=True)
def test_more_connections_than_descriptors(own_server):
    waiting = [own_server.connect() for _ in range(400)]
    for one in waiting:
        with contextlib.suppress(ConnectionError):
            one.sendall(HALF)
    before = worked(own_server)
    time.sleep(1.0)
    assert worked(own_server) - before < 0.5  # it waits and does not retry in a loop
    assert 100 < sum(not closed(one) for one in waiting) < 200
    for one in waiting:
        one.close()
    until = time.monotonic() + 10.0
    while not answers(own_server):
        assert time.monotonic() < until
    own_server.process.send_signal(signal.SIGINT)
    own_server.process.wait(timeout=30)
    assert own_server.end() == (0, "")


def closed(connection):
    connection.settimeout(0.01)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def answers(server):
    try:
        return is_alive(server)
    except httpx.TransportError:
        return False


def worked(server):
    """Return the CPU time of the server process in seconds."""
    used = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, used)) / os.sysconf("SC_CLK_TCK")


def test_an_interrupt_ends_it_in_silence(own_server):
    assert is_alive(own_server)
    own_server.process.send_signal(signal.SIGINT)
    own_server.process.wait(timeout=30)
    code, err = own_server.end()
    assert (code, err) == (0, "")


@pytest.mark.skipif(not Path("/proc").exists(), reason="processes are looked up in /proc")
@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_in_the_midst_of_questions_ends_it_in_silence(own_server, times):
    asking = [own_server.connect() for _ in range(5)]  # more than there are workers
    for one in asking:
        one.sendall(request(SLOW))
    half = own_server.connect()
    half.sendall(HALF)
    time.sleep(0.7)
    assert len(family(own_server.process)) >= 3
    for _ in range(times):
        os.killpg(own_server.process.pid, signal.SIGINT)
        time.sleep(0.15)
    for one in asking:
        with one:
            response = read_all(one)
        assert response.startswith(b"HTTP/1.1 503 ")
        assert b"x-frame-options: DENY" in response
        assert response.endswith(b'{"error":{"field":null,"message":"the server is shutting down"}}')
    own_server.process.wait(timeout=30)
    half.close()
    assert own_server.end() == (0, "")
    until = time.monotonic() + 5.0
    while family(own_server.process):
        assert time.monotonic() < until, "a process goes on without its server"
        time.sleep(0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="others may start their processes in another way")
def test_an_interrupt_before_it_is_ready_ends_it_in_silence(starting):
    until = time.monotonic() + 20.0
    while not any("forkserver" in command for command in family(starting)):
        assert time.monotonic() < until, "no process was begun"
        time.sleep(0.01)
    time.sleep(0.1)
    os.killpg(starting.pid, signal.SIGINT)
    _, err = starting.communicate(timeout=30)
    assert (starting.returncode, err) == (0, "")


def family(process):
    """Return the command lines of the living processes in the session of a process."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(session) == process.pid and state != "Z":
                found.append((stat.parent / "cmdline").read_text())
    return found
