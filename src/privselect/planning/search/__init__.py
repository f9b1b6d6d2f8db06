"""Searches for the value of an open parameter."""
