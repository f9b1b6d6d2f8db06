import os

import pytest

from privselect.tuning.randomness.secret_draws import new_secret


@pytest.fixture
def draw_secret(fresh_rng):
    """The operating system's secrets, and in CI the same ones in every run."""
    return (lambda: fresh_rng.bytes(32)) if os.environ.get("CI") else new_secret
