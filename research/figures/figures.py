"""Every figure of the paper by its number."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from research.csv_io import Row

NUMBERS = (1, 2, 3, 4, 5, 6, 7, 8)
MEASURED = 5  # on data that is not part of the package


class Drawable(Protocol):
    """A figure: its table, and its drawing."""

    def rows(self) -> list[Row]:
        """One row for each point."""

    def figure(self) -> Figure:
        """Drawn."""


def picture(number: int) -> Drawable:
    """The figure of this number; the one that is measured on data, from what is stored of it."""
    found: Drawable = import_module(f"research.figures.figure_{number}").picture()
    return found
