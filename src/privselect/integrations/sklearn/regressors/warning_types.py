"""What a fit warns of; it says nothing that is not released."""

from __future__ import annotations


class ClippingWarning(UserWarning):
    """More records were beyond the bounds than the noise on their number explains: greater bounds may serve better."""


class NoAnswerWarning(UserWarning):
    """A fit ended in "no answer", which is an outcome like others, and covered like them; the coefficients are zeros."""
