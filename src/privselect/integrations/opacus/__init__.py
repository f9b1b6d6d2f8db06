"""Opacus: the mechanism of a training run, and trials that must train as planned. Opacus is imported when a trial runs."""

from privselect.integrations.opacus.history import mechanism_from_history
from privselect.integrations.opacus.trial import OpacusTrial

__all__ = ["OpacusTrial", "mechanism_from_history"]
