"""Shared helpers: validation, rounding, random bits, files, searches and plots."""
