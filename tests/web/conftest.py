"""A real server, as `privselect serve` starts it."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import privselect

DPSGD = "dpsgd(noise_multiplier={}, sampling_probability=1024/60000, steps=600)"


def started(*options, before=""):
    """Start the process of a server; ``before`` is Python code that runs in it first."""
    path = os.pathsep.join([str(Path(privselect.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
    code = f"{before}\nfrom privselect.cli import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, "serve", "--port", "0", *options],
        env={**os.environ, "PYTHONPATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a process group for Ctrl-C, as in a terminal
    )


class Server:
    """A server process, its URL and a client."""

    def __init__(self, *options, before=""):
        self.process = started(*options, before=before)
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+?/", line)
        assert found, f"no address in {line!r}: {self.process.stderr.read()}"
        self.url = found[0]
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def post(self, kind, **fields):
        return self.client.post(f"/api/{kind}", json=fields)

    def connect(self):
        """Open a raw connection."""
        return socket.create_connection((self.client.base_url.host, self.client.base_url.port), timeout=20)

    def end(self):
        """Terminate the server and return its exit code and stderr."""
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


@pytest.fixture(scope="session")
def server():
    """Start one server for all tests that do not end it."""
    running = Server()
    yield running
    _, err = running.end()
    assert "Traceback" not in err


@pytest.fixture
def own_server(request):
    """Start a server for one test."""
    running = Server(before=getattr(request, "param", ""))
    yield running
    running.end()


@pytest.fixture
def starting():
    """Start the process of a server that is not ready yet."""
    with started() as process:
        yield process
        process.kill()


@pytest.fixture
def question():
    return {"mechanism": DPSGD.format("?"), "count": "geometric(mean=30)", "epsilon": "1", "delta": "1e-5"}
