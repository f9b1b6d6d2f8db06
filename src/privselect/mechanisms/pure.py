"""Pure differential privacy."""

from __future__ import annotations

from dataclasses import dataclass, field

from privselect.mechanisms.base import Mechanism
from privselect.mechanisms.neighbours import ANY, check_relation
from privselect.mechanisms.points import POINT_EPSILON
from privselect.pairs import Bracket, pair_from_points
from privselect.parameters import parameter
from privselect.text import register


@register
@dataclass(frozen=True, slots=True)
class Pure(Mechanism):
    """epsilon-DP and nothing else known: randomised response with odds e^epsilon dominates every such mechanism."""

    text_name = "pure"

    epsilon: float = parameter(POINT_EPSILON)
    neighbours: str = field(default=ANY)  # type: ignore[assignment]

    def __post_init__(self) -> None:
        super(Pure, self).__post_init__()
        check_relation(self.neighbours)

    def _make_brackets(self) -> tuple[Bracket, ...]:
        pair = pair_from_points([(self.epsilon, 0.0)])
        return (Bracket(pair, (pair,)),)
