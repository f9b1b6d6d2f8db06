"""A real server, as `privselect serve` starts it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import privselect

DPSGD = "dpsgd(noise_multiplier={}, sampling_probability=1024/60000, steps=600)"


class Server:
    """The process, its address and a client."""

    def __init__(self, *options):
        path = os.pathsep.join([str(Path(privselect.__file__).parent.parent), os.environ.get("PYTHONPATH", "")])
        command = [sys.executable, "-c", "from privselect.cli import main; main()", "serve", "--port", "0", *options]
        self.process = subprocess.Popen(
            command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        line = self.process.stdout.readline()
        found = re.search(r"http://\S+?/", line)
        assert found, f"no address in {line!r}: {self.process.stderr.read()}"
        self.url = found[0]
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def post(self, kind, **fields):
        return self.client.post(f"/api/{kind}", json=fields)

    def end(self):
        """Exit code and what was said on stderr."""
        self.client.close()
        if self.process.poll() is None:
            self.process.terminate()
        _, err = self.process.communicate(timeout=30)
        return self.process.returncode, err


@pytest.fixture(scope="session")
def server():
    """One for all tests that leave it alive."""
    running = Server()
    yield running
    _, err = running.end()
    assert "Traceback" not in err


@pytest.fixture
def own_server():
    """One for a test that ends it."""
    running = Server()
    yield running
    running.end()


@pytest.fixture
def question():
    return {"mechanism": DPSGD.format("?"), "count": "geometric(mean=30)", "epsilon": "1", "delta": "1e-5"}
