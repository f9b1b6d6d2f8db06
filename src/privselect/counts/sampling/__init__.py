"""Exact sampling of K, with integer and interval arithmetic."""
