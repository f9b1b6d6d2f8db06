"""Exact sampling and comparison of noisy scores."""
