"""Approximate differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, field

from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import ANY, check_relation
from privselect.mechanisms.points import POINT_DELTA, POINT_EPSILON
from privselect.pairs import Bracket, pair_from_points
from privselect.parameters import parameter
from privselect.text import register


@register
@dataclass(frozen=True, slots=True)
class Approximate(Mechanism):
    """(epsilon, delta)-DP and nothing else known: randomised response that leaks everything with probability delta."""

    text_name = "approximate"

    epsilon: float = parameter(POINT_EPSILON)
    delta: float = parameter(POINT_DELTA)
    neighbours: str = field(default=ANY)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super(Approximate, self).__post_init__()
        check_relation(self.neighbours)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        pair = pair_from_points([(self.epsilon, self.delta)])
        return (Bracket(pair, (pair,)),)
