"""The figures of the paper by number."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from research.csv_io import Row

NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8)
MEASURED = 5  # needs data that is not part of the repository


class Drawable(Protocol):
    """A figure with a table and a drawing."""

    def rows(self) -> list[Row]:
        """Return one row for each point."""

    def figure(self) -> Figure:
        """Draw the figure."""


def picture(number: int) -> Drawable:
    """Return the figure of this number; the measured one comes from stored results."""
    found: Drawable = import_module(f"research.figures.figure_{number}").picture()
    return found
