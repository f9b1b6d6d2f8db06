"""Propose-test-release and private linear regression."""

from privselect.regression.ops.ops_mechanism import OPS
from privselect.regression.ptr.propose_test_release import ProposeTestRelease

__all__ = ["OPS", "ProposeTestRelease"]
