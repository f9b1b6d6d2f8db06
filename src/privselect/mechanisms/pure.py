"""Pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

from privselect.mechanisms.base import StatedMechanism
from privselect.mechanisms.points import POINT_EPSILON
from privselect.pairs import Bracket, bracket_from_points
from privselect.parameters import parameter
from privselect.text import register


@register
@dataclass(frozen=True, slots=True)
class Pure(StatedMechanism):
    """epsilon-DP and nothing else known: randomised response with odds e^epsilon dominates every such mechanism."""

    text_name = "pure"

    epsilon: float = parameter(POINT_EPSILON)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        return (bracket_from_points([(self.epsilon, 0.0)]),)
