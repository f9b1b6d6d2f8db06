"""Helpers shared by all parts: validation, rounding, random bits, files and drawing."""
