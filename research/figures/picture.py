"""A figure of the paper as data: panels, curves and points."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.rounding import round_down, round_up

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from research.csv_io import Row


@dataclass(frozen=True, slots=True)
class Point:
    """The ``value`` of a bound at a ``place``; ``mechanism`` is the text form of the bounded mechanism."""

    mechanism: str
    place: float
    value: float


@dataclass(frozen=True, slots=True)
class Curve:
    """One bound along the places; ``name`` distinguishes curves of the same bound."""

    bound: str
    points: tuple[Point, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Panel:
    """A ``quantity`` over a ``place``; over delta, the panel shows a privacy profile (delta against epsilon).

    ``mark`` is the place that the text refers to.
    """

    title: str
    place: str
    quantity: str
    curves: tuple[Curve, ...]
    mark: float | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """All panels of a figure."""

    number: int
    title: str
    panels: tuple[Panel, ...]
    columns: int = 1

    def rows(self) -> list[Row]:
        """Return one row for each point with seven digits, rounded to the conservative side."""
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
        """Draw the figure."""
        from research.figures.drawing import drawn

        return drawn(self)


def _claimed(quantity: str, bound: str, value: float) -> float:
    if quantity == "probability":
        return value
    # Round an upper bound on epsilon up; round lower bounds and allowed numbers of trials or steps down.
    return round_up(value) if quantity == "epsilon" and bound != "exact_lower" else round_down(value)
