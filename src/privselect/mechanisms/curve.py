"""A mechanism of which only a curve is known, for each order of the neighbours its own."""

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

_FINEST = 1e-8  # of an epsilon above 0: the slope of a shorter chord has few digits
_WANTED = "triples (epsilon, delta of removing, delta of adding) such as ((0, 0.2, 0.1), (1, 1e-3, 1e-4))"


@register
@dataclass(frozen=True, slots=True)
class Curve(StatedMechanism):
    """At every ``(epsilon, delta, delta')`` removing a record costs at most delta, adding one at most delta'.

    Where both deltas are the same everywhere, either order of the neighbours is meant, whatever their relation. An upper bound and
    nothing else, so no lower end is claimed. Holds when all entries hold for one and the same mechanism; epsilons ascend.
    """

    text_name = "curve"

    points: tuple[tuple[float, float, float], ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        StatedMechanism.__post_init__(self)
        entries = tuple(_point(entry) for entry in check_sequence("points", self.points, _WANTED))
        object.__setattr__(self, "points", entries)
        if not entries:
            raise ParameterError("`curve` needs at least one (epsilon, delta, delta), got none")
        for (before, *_), (after, *_) in pairwise(entries):
            if after <= before:
                raise ParameterError(f"`curve` needs ascending epsilons, got {write_value(after)} after {write_value(before)}")

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        # At epsilon 0, where the curve of a pair starts, nothing may be known: then delta is at most 1.
        known = self.points if self.points[0][0] == 0.0 else ((0.0, 1.0, 1.0), *self.points)
        epsilon, removing, adding = np.array(known).T
        # What holds at an epsilon holds above it: epsilons that e^epsilon cannot tell apart move up, or leave.
        epsilon = np.where(epsilon > 0.0, np.maximum(epsilon, _FINEST), 0.0)
        told_apart = np.append(np.diff(np.exp(epsilon)), 1.0) > 0.0
        epsilon, removing, adding = epsilon[told_apart], removing[told_apart], adding[told_apart]
        pair = pair_from_profile(epsilon, removing, adding)
        if np.array_equal(removing, adding):
            return (Bracket(pair, ()),)
        return Bracket(pair, (), "remove"), Bracket(pair.reverse, (), "add")


def _point(entry: Any) -> tuple[float, float, float]:
    try:
        epsilon, removing, adding = entry
    except (TypeError, ValueError):
        raise ParameterError(f"each point must be a triple (epsilon, delta of removing, delta of adding), got {format_value(entry)}") from None
    return check_number("epsilon", epsilon, POINT_EPSILON), check_number("delta", removing, UNIT), check_number("delta", adding, UNIT)
