"""Measure what exact accounting gains, with every number in a table."""
