import os

import pytest

from privselect.tuning.randomness import new_secret


@pytest.fixture
def draw_secret(fresh_rng):
    """Return a source of secrets: the operating system, or a fixed sequence in CI."""
    return (lambda: fresh_rng.bytes(32)) if os.environ.get("CI") else new_secret
