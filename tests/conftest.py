"""Hypothesis profiles, and the scale of the long campaigns."""

import os
from collections.abc import Callable

import pytest
from hypothesis import settings

SOAK = float(os.environ.get("PRIVSELECT_SOAK", "0"))

# deadline=None everywhere: timing is measured in benchmarks/, never asserted in tests.
settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, database=None, print_blob=True)
settings.register_profile("soak", deadline=None, max_examples=max(100, round(10_000 * SOAK)), print_blob=True)
settings.load_profile("soak" if SOAK else "ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def campaign() -> Callable[[int], int]:
    """The number of repetitions of a long campaign: all of ``n`` in `make soak`, a tenth with SOAK=0.1."""
    return lambda n: max(1, round(n * SOAK))
