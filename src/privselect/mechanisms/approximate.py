"""Approximate differential privacy."""

from __future__ import annotations

from dataclasses import dataclass

from privselect.mechanisms.base import StatedMechanism
from privselect.mechanisms.points import POINT_DELTA, POINT_EPSILON
from privselect.pairs import Bracket, bracket_from_points
from privselect.parameters import parameter
from privselect.text import register


@register
@dataclass(frozen=True, slots=True)
class Approximate(StatedMechanism):
    """(epsilon, delta)-DP and nothing else known: randomised response that leaks everything with probability delta."""

    text_name = "approximate"

    epsilon: float = parameter(POINT_EPSILON)
    delta: float = parameter(POINT_DELTA)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        return (bracket_from_points([(self.epsilon, self.delta)]),)
