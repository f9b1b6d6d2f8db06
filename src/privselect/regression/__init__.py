"""Propose-test-release, and private linear regression."""

from privselect.regression.ops import OPS
from privselect.regression.propose_test_release import ProposeTestRelease

__all__ = ["OPS", "ProposeTestRelease"]
