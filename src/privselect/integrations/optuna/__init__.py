"""Optuna: run an existing objective by private selection instead of a sampler."""

from privselect.integrations.optuna.study import PrivateStudy

__all__ = ["PrivateStudy"]
