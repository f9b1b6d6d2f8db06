"""A mechanism given by its privacy profile, with a separate curve for each order of the neighbours."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from privselect._util.validation import UNIT, check_number, check_sequence, format_value
from privselect.errors import ParameterError
from privselect.mechanisms.base import StatedMechanism
from privselect.mechanisms.stated_guarantees import POINT_EPSILON
from privselect.pairs import Bracket, pair_from_profile
from privselect.text_forms import register, write_value

_SMALLEST_EPSILON = 1e-8  # above 0: the slope of a shorter chord has few digits
_ALLOWED = "triples (epsilon, delta of removing, delta of adding) such as ((0, 0.2, 0.1), (1, 1e-3, 1e-4))"


@register
@dataclass(frozen=True, slots=True)
class Curve(StatedMechanism):
    """At every ``(epsilon, delta, delta')`` removing a record costs at most delta, and adding one at most delta'.

    If both deltas are equal at every point, they hold for either order of the neighbours, whatever their relation. The curve is an upper
    bound only, so there is no lower bound. Holds when all points hold for the same mechanism; epsilons must ascend.
    """

    text_name = "curve"

    points: tuple[tuple[float, float, float], ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        StatedMechanism.__post_init__(self)
        entries = tuple(_point(entry) for entry in check_sequence("points", self.points, _ALLOWED))
        object.__setattr__(self, "points", entries)
        if not entries:
            raise ParameterError("`curve` needs at least one (epsilon, delta, delta), got none")
        for (before, *_), (after, *_) in pairwise(entries):
            if after <= before:
                raise ParameterError(f"`curve` needs ascending epsilons, got {write_value(after)} after {write_value(before)}")

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        # The profile of a pair starts at epsilon 0. If no point is given there, delta is at most 1.
        known = self.points if self.points[0][0] == 0.0 else ((0.0, 1.0, 1.0), *self.points)
        epsilon, removing, adding = np.array(known).T
        # A point also holds at larger epsilons: of those with the same float e^epsilon, only the last is kept.
        epsilon = np.where(epsilon > 0.0, np.maximum(epsilon, _SMALLEST_EPSILON), 0.0)
        distinct = np.append(np.diff(np.exp(epsilon)), 1.0) > 0.0
        epsilon, removing, adding = epsilon[distinct], removing[distinct], adding[distinct]
        pair = pair_from_profile(epsilon, removing, adding)
        if np.array_equal(removing, adding):
            return (Bracket(pair, ()),)
        return Bracket(pair, (), "remove"), Bracket(pair.reverse, (), "add")


def _point(entry: Any) -> tuple[float, float, float]:
    try:
        epsilon, removing, adding = entry
    except (TypeError, ValueError):
        raise ParameterError(
            f"each point must be a triple (epsilon, delta of removing, delta of adding), got {format_value(entry)}"
        ) from None
    return check_number("epsilon", epsilon, POINT_EPSILON), check_number("delta", removing, UNIT), check_number("delta", adding, UNIT)
