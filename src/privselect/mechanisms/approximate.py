"""Approximate differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

from privselect._util.validation import parameter
from privselect.mechanisms.stated_guarantees import POINT_DELTA, POINT_EPSILON, StatedPoints
from privselect.text_forms import register


@register
@dataclass(frozen=True, slots=True)
class Approximate(StatedPoints):
    """An (epsilon, delta)-DP mechanism: the worst case is randomised response that leaks everything with probability delta."""

    text_name = "approximate"

    epsilon: float = parameter(POINT_EPSILON, leaks="more")
    delta: float = parameter(POINT_DELTA, leaks="more")

    def guarantees(self) -> tuple[tuple[float, float], ...]:
        """Return the single stated point."""
        return ((self.epsilon, self.delta),)
