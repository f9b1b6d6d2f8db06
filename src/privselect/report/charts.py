"""Charts of a report: their data and pixel positions. The template charts.svg.j2 draws them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from privselect._util.plotting import GREY_DASHED

if TYPE_CHECKING:
    from privselect.counts import Count

_SMALLEST_X, _SMALLEST_Y = 1e-9, 1e-300  # smaller values are drawn at 0
_LETTER_WIDTH = 7.8  # pixels, about
_WIDEST_BAR = 78.0  # percent; the rest holds the number after the bar
_LEVELS = np.linspace(0.005, 0.995, 199).tolist()


@dataclass(frozen=True)
class CurveChart:
    """A line chart.

    A chart with ``steps`` falls at its points. A ``logarithmic`` chart has a logarithmic y axis. ``marker`` is (x, y, label).
    """

    WIDTH: ClassVar = 400
    HEIGHT: ClassVar = 270
    LEFT: ClassVar = 46
    RIGHT: ClassVar = 388
    TOP: ClassVar = 30
    BOTTOM: ClassVar = 226

    name: str
    title: str
    description: str
    x_label: str
    y_label: str
    points: tuple[tuple[float, float], ...]
    logarithmic: bool = False
    steps: bool = False
    marker: tuple[float, float, str] | None = None

    @property
    def path(self) -> str:
        """The line as SVG path data."""
        (x, y), *rest = [(self._x_pixel(x), self._y_pixel(y)) for x, y in self.points]
        drawn = [f"M{pixels(x)} {pixels(y)}"]
        drawn += [f"H{pixels(x)}V{pixels(y)}" if self.steps else f"L{pixels(x)} {pixels(y)}" for x, y in rest]
        return "".join(drawn)

    @property
    def y_ticks(self) -> list[tuple[float, str, str]]:
        """Pixel, label and exponent of each tick. The exponent is empty for plain numbers."""
        if not self.logarithmic:
            return [(self._y_pixel(0.25 * part), f"{25 * part}%", "") for part in range(5)]
        step = math.ceil(-self._lowest_decade / 5)
        powers = range(0, self._lowest_decade - 1, -step)
        return [(self._y_pixel(10.0**power), "10" if power else "1", f"\u2212{-power}" if power else "") for power in powers]

    @property
    def x_ticks(self) -> list[tuple[float, str]]:
        """Pixel and label of at most seven ticks from 0, in steps of 1, 2 or 5 times a power of ten."""
        power = 10.0 ** math.floor(math.log10(self._x_max / 6.0))
        step = next(power * part for part in (1.0, 2.0, 5.0, 10.0) if self._x_max / (power * part) <= 6.0)
        ticks = [step * place for place in range(math.floor(self._x_max / step) + 1)]
        return [(self._x_pixel(x), f"{x:,.4g}" if step < 1.0 or self._x_max >= 1e6 else f"{x:,.0f}") for x in ticks]

    @property
    def marker_pixels(self) -> tuple[float, float]:
        """Where the marker is drawn."""
        x, y, _ = self.marker or (0.0, 0.0, "")
        return self._x_pixel(x), self._y_pixel(y)

    @property
    def label_pixels(self) -> tuple[float, float, str]:
        """Position and text anchor of the marker's label: left below the marker if the label fits there, else right above it."""
        x, y = self.marker_pixels
        if self.marker and x - _LETTER_WIDTH * len(self.marker[2]) > self.LEFT:
            return x - 9.0, min(y + 14.0, self.BOTTOM - 7.0), "end"
        return x + 9.0, y - 9.0, "start"

    @property
    def _x_max(self) -> float:
        largest = max([x for x, _ in self.points] + ([self.marker[0]] if self.marker else []))
        return 1.03 * largest if largest > _SMALLEST_X else 1.0

    @property
    def _lowest_decade(self) -> int:
        """The decade at which a logarithmic axis begins, below everything that is drawn."""
        drawn = [y for _, y in self.points if y > 0.0] + ([self.marker[1]] if self.marker else [])
        return min(math.floor(math.log10(max(min(drawn, default=0.1), _SMALLEST_Y))), -1)

    def _x_pixel(self, x: float) -> float:
        return self.LEFT + (self.RIGHT - self.LEFT) * x / self._x_max

    def _y_pixel(self, y: float) -> float:
        lowest = self._lowest_decade
        share = 1.0 - math.log10(max(y, 10.0**lowest)) / lowest if self.logarithmic else y
        return self.BOTTOM - (self.BOTTOM - self.TOP) * share


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar; ``kind`` is "exact", "bound", "alone" for a single trial, or "other" for another mechanism."""

    label: str
    value: float
    value_label: str
    kind: str


@dataclass(frozen=True)
class BarChart:
    """Horizontal bars, one per row. Widths are percentages and text is in pixels, which keeps text readable on a narrow page."""

    ROW: ClassVar = 46
    THICKNESS: ClassVar = 12

    name: str
    title: str
    description: str
    bars: tuple[Bar, ...]

    @property
    def dashes(self) -> str:
        """The dash pattern of bars for another mechanism, the same as in the figures."""
        return " ".join(f"{length:g}" for length in GREY_DASHED["linestyle"][1])

    @property
    def widths(self) -> list[float]:
        """The width of each bar, in percent."""
        longest = max((bar.value for bar in self.bars), default=0.0) or 1.0
        return [_WIDEST_BAR * bar.value / longest for bar in self.bars]


def survival_steps(count: Count) -> tuple[tuple[float, float], ...]:
    """Return each k at which P(K >= k) falls, with P(K > k), to which it falls.

    Probabilities are exact to within 0.5%, which is finer than a chart shows. The first k is 0. P(K >= k) falls there only if K can be 0.
    """
    points = [(0.0, 1.0)]
    for level in _LEVELS:
        place = float(count.quantile(level))
        if place == points[-1][0]:
            points.pop()
        points.append((place, 1.0 - level))
    return tuple(points)


def pixels(value: float) -> str:
    """Format a pixel position with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
