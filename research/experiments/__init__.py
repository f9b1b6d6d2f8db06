"""Measure what exact accounting buys, with every number in a table."""
