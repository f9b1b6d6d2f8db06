"""Exact sampling of noise and exact comparison of noisy scores."""
