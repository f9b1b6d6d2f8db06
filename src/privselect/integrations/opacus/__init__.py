"""Opacus: what a training run was, and training that is held to what was planned. Opacus itself is loaded where a trial is run."""

from privselect.integrations.opacus.history import mechanism_from_history
from privselect.integrations.opacus.trial import OpacusTrial

__all__ = ["OpacusTrial", "mechanism_from_history"]
