"""Exact samplers for the laws of K."""
