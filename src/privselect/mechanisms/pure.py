"""Pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

from privselect._util.validation import parameter
from privselect.mechanisms.stated_guarantees import POINT_EPSILON, StatedPoints
from privselect.text_forms import register


@register
@dataclass(frozen=True, slots=True)
class Pure(StatedPoints):
    """An epsilon-DP mechanism: randomised response with odds e^epsilon dominates every such mechanism."""

    text_name = "pure"

    epsilon: float = parameter(POINT_EPSILON, leaks="more")

    def guarantees(self) -> tuple[tuple[float, float], ...]:
        """Return the single stated point."""
        return ((self.epsilon, 0.0),)
