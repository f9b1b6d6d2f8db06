"""Mechanisms given by (epsilon, delta) guarantees."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.validation import Range, check_number, check_sequence, format_value
from privselect.errors import ParameterError
from privselect.interval import Interval
from privselect.mechanisms.base import StatedMechanism, scalar_or_array
from privselect.pairs import Bracket, bracket_from_points
from privselect.text_forms import register

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

POINT_EPSILON = Range(0.0, 700.0, high_open=False)
POINT_DELTA = Range(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class StatedPoints(StatedMechanism):
    """Base class of mechanisms with ``(epsilon_i, delta_i)`` guarantees in both directions."""

    @abstractmethod
    def guarantees(self) -> tuple[tuple[float, float], ...]:
        """Return the stated points."""

    def _make_brackets(self, _accuracy: float, /) -> tuple[Bracket, ...]:
        return (bracket_from_points(self.guarantees()),)

    def _epsilon_within(self, delta: Floats, accuracy: float) -> Interval:
        # At a stated delta its epsilon holds exactly; the sums of the pair allow for rounding.
        found = StatedMechanism._epsilon_within(self, delta, accuracy)  # noqa: SLF001 - super() does not work in a class with slots
        stated = np.minimum.reduce([np.where(delta >= d, e, np.inf) for e, d in self.guarantees()])
        upper = np.minimum(found.upper, stated)
        return Interval(None if found.lower is None else scalar_or_array(np.minimum(found.lower, upper)), scalar_or_array(upper))


@register
@dataclass(frozen=True, slots=True)
class Points(StatedPoints):
    """Every ``(epsilon_i, delta_i)`` holds in both directions. The worst mechanism with these guarantees is assumed."""

    text_name = "points"

    points: tuple[tuple[float, float], ...] = field(metadata={"variadic": True})

    def __post_init__(self) -> None:
        StatedMechanism.__post_init__(self)
        entries = check_sequence("points", self.points, "pairs (epsilon, delta) such as ((0.1, 1e-3), (1, 1e-9))")
        object.__setattr__(self, "points", tuple(_point(entry) for entry in entries))
        if not self.points:
            raise ParameterError("`points` needs at least one (epsilon, delta), got none")

    def guarantees(self) -> tuple[tuple[float, float], ...]:
        """Return the stated points."""
        return self.points


def _point(entry: Any) -> tuple[float, float]:
    try:
        epsilon, delta = entry
    except (TypeError, ValueError):
        raise ParameterError(f"each point must be a pair (epsilon, delta), got {format_value(entry)}") from None
    return check_number("epsilon", epsilon, POINT_EPSILON), check_number("delta", delta, POINT_DELTA)
