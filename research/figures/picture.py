"""A figure of the paper as data: panels of curves, and at each point of a curve what was bounded there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import round_down, round_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from research.csv_io import Row


@dataclass(frozen=True, slots=True)
class Point:
    """The ``value`` of a bound at a ``place``; ``mechanism`` is the text form of what is bounded."""

    mechanism: str
    place: float
    value: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One bound along the places; ``name`` tells curves apart that are all of one kind."""

    bound: str
    points: tuple[Point, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A ``quantity`` over a ``place``, both by name; over delta it is drawn as a privacy profile, delta against epsilon.

    ``mark`` is the place that the text speaks of.
    """

    title: str
    place: str
    quantity: str
    curves: tuple[Curve, ...]
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that a figure shows."""

    number: int
    title: str
    panels: tuple[Panel, ...]
    columns: int = 1

    def rows(self) -> list[Row]:
        """One row for each point, to seven digits; what is proved is rounded to the side that claims less."""
        return [
            {
                "figure": self.number,
                "panel": panel.title,
                "mechanism": point.mechanism,
                "bound": curve.bound,
                "place": panel.place,
                "at": point.place,
                "quantity": panel.quantity,
                "value": _claimed(panel.quantity, curve.bound, point.value),
            }
            for panel in self.panels
            for curve in panel.curves
            for point in curve.points
        ]

    def figure(self) -> Figure:
        """Drawn."""
        from research.figures.drawing import drawn

        return drawn(self)


def _claimed(quantity: str, bound: str, value: float) -> float:
    if quantity == "probability":
        return value
    # An epsilon claims less where it is greater, unless it bounds from below; so many trials or steps claim less where they are fewer.
    return round_up(value) if quantity == "epsilon" and bound != "exact_lower" else round_down(value)
