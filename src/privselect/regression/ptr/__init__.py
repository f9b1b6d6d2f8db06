"""Propose-test-release and its applications."""
