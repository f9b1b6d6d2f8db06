"""Figures of the paper and experiments. Not part of the wheel."""
