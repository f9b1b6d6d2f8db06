"""Figures of the paper and experiments: run by make, tested, not part of the wheel."""
