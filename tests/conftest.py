"""Hypothesis profiles, and the scale of the long campaigns."""

import os
import signal
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import settings

SOAK = float(os.environ.get("PRIVSELECT_SOAK", "0"))

CI = bool(os.environ.get("CI"))

# A job in the background may be told to ignore Ctrl-C, and would hand that on to the processes whose Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# deadline=None everywhere: timing is measured in benchmarks/, never asserted in tests.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", parent=settings.get_profile("ci" if CI else "default"), max_examples=max(100, round(10_000 * SOAK)))
settings.load_profile("soak" if SOAK else "ci" if CI else "default")


def pytest_ignore_collect(collection_path, config):
    """Tests in a browser import Playwright, which only `make test-web` installs; asked for there, its absence is an error."""
    in_a_browser = collection_path.name == "browser" or collection_path.name.endswith("_browser.py")
    return True if in_a_browser and config.getoption("markexpr") != "browser" else None


@pytest.fixture(scope="session")
def campaign() -> Callable[[int], int]:
    """The number of repetitions of a long campaign: all of ``n`` in `make soak`, a tenth with SOAK=0.1."""
    return lambda n: max(1, round(n * SOAK))


@pytest.fixture
def fresh_rng() -> np.random.Generator:
    """New numbers in every campaign, the same ones in every run of CI."""
    return np.random.default_rng(20 if CI else None)
