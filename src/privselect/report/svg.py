"""Charts as SVG: data in, markup out. Colours are classes, so that the page can turn dark; dashes are those of every other figure."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect._util.plot_style import GREY_DASHED
from privselect.report.html import Markup, joined, tag

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.report.document import Bar, Bars, Curve

_WIDTH, _HEIGHT = 400.0, 270.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 388.0, 30.0, 226.0  # the edges of the panel
_NEAREST, _FAINTEST = 1e-9, 1e-300  # nothing less is told apart from 0
_LETTER = 7.8  # about the width of a letter
_ROW, _BAR = 46, 12  # pixels of a bar with its label, and of the bar
_WIDEST = 78.0  # percent; the rest is for the number at its end


def curve_svg(curve: Curve) -> Markup:
    """A line over two axes, scaled to the width of the page."""
    furthest = max([x for x, _ in curve.points] + ([curve.mark[0]] if curve.mark else []))
    right = 1.03 * furthest if furthest > _NEAREST else 1.0
    lowest = _lowest(curve)

    def across(x: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * x / right

    def upward(y: float) -> float:
        share = 1.0 - math.log10(max(y, 10.0**lowest)) / lowest if curve.logarithmic else y
        return _BOTTOM - (_BOTTOM - _TOP) * share

    heights = _decades(lowest) if curve.logarithmic else [(0.25 * part, f"{25 * part}%") for part in range(5)]
    parts = [tag("g", *(_level(upward(y), label) for y, label in heights), class_="grid")]
    parts += [_tick(across(x), label) for x, label in _round_places(right)]
    parts.append(tag("path", d=_path([(across(x), upward(y)) for x, y in curve.points], steps=curve.steps), class_="line"))
    parts.append(tag("text", curve.upward, x=_number(_LEFT), y=_number(_TOP - 14), text_anchor="end", class_="axis"))
    parts.append(tag("text", curve.across, x=_number(_RIGHT), y=_number(_BOTTOM + 38), text_anchor="end", class_="axis"))
    if curve.mark is not None:
        x, y, label = curve.mark
        parts += _mark(across(x), upward(y), label)
    return _svg(curve, *parts, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", class_="chart curve")


def bars_svg(bars: Bars) -> Markup:
    """Bars by shares of the width, letters by pixels: on a narrow page the letters stay as they are."""
    longest = max((bar.value for bar in bars.bars), default=0.0) or 1.0
    rows = [part for place, bar in enumerate(bars.bars) for part in _bar(bar, _ROW * place, _WIDEST * bar.value / longest)]
    return _svg(bars, *rows, width="100%", height=_ROW * len(bars.bars), class_="chart bars")


def _svg(chart: Curve | Bars, *parts: Markup, **attributes: object) -> Markup:
    title, desc = f"{chart.name}-title", f"{chart.name}-description"
    named = (tag("title", chart.title, id=title), tag("desc", chart.description, id=desc))
    return tag("svg", *named, *parts, role="img", aria_labelledby=title, aria_describedby=desc, **attributes)


def _bar(bar: Bar, top: float, share: float) -> Iterator[Markup]:
    dashes = {"stroke_dasharray": " ".join(f"{length:g}" for length in GREY_DASHED["linestyle"][1])} if bar.kind == "other" else {}
    yield tag("text", bar.label, x=0, y=_number(top + 15), class_=f"label {bar.kind}")
    # Half a pixel in: an outline is drawn on both sides of its edge.
    yield tag(
        "rect", x="0.5", y=_number(top + 22.5), width=f"{max(share, 0.2):.2f}%", height=_BAR, rx="1.5", class_=f"bar {bar.kind}", **dashes
    )
    yield tag("text", bar.shown, x=f"{share:.2f}%", dx=10, y=_number(top + 33), class_=f"value {bar.kind}")


def _lowest(curve: Curve) -> int:
    """The decade in which a logarithmic axis begins: below all that is drawn on it."""
    drawn = [y for _, y in curve.points if y > 0.0] + ([curve.mark[1]] if curve.mark else [])
    return min(math.floor(math.log10(max(min(drawn, default=0.1), _FAINTEST))), -1)


def _decades(lowest: int) -> list[tuple[float, str]]:
    step = math.ceil(-lowest / 5)
    return [(10.0**power, _power(power)) for power in range(0, lowest - 1, -step)]


def _power(power: int) -> str:
    return joined(["10", tag("tspan", f"\u2212{-power}", dy=-5, class_="raised")]) if power else "1"


def _round_places(right: float) -> list[tuple[float, str]]:
    """From 0, in steps of 1, 2 or 5 times a power of ten, at most six of them."""
    power = 10.0 ** math.floor(math.log10(right / 6.0))
    step = next(power * part for part in (1.0, 2.0, 5.0, 10.0) if right / (power * part) <= 6.0)
    places = [step * place for place in range(math.floor(right / step) + 1)]
    return [(place, f"{place:,.4g}" if step < 1.0 or right >= 1e6 else f"{place:,.0f}") for place in places]


def _level(y: float, label: str) -> Markup:
    line = tag("line", x1=_number(_LEFT), x2=_number(_RIGHT), y1=_number(y), y2=_number(y))
    return tag("g", line, tag("text", label, x=_number(_LEFT - 8), y=_number(y + 4), text_anchor="end", class_="tick"))


def _tick(x: float, label: str) -> Markup:
    return tag("text", label, x=_number(x), y=_number(_BOTTOM + 18), text_anchor="middle", class_="tick")


def _mark(x: float, y: float, label: str) -> Iterator[Markup]:
    """Down to the axis, a point, and its name where a falling line leaves room: to the left below it, else to the right above."""
    yield tag("line", x1=_number(x), x2=_number(x), y1=_number(y), y2=_number(_BOTTOM), class_="drop")
    yield tag("circle", cx=_number(x), cy=_number(y), r=4.5, class_="mark")
    if x - _LETTER * len(label) > _LEFT:
        yield tag("text", label, x=_number(x - 9.0), y=_number(min(y + 14.0, _BOTTOM - 7.0)), text_anchor="end", class_="named")
    else:
        yield tag("text", label, x=_number(x + 9.0), y=_number(y - 9.0), class_="named")


def _path(points: Sequence[tuple[float, float]], *, steps: bool) -> str:
    (x, y), *rest = points
    drawn = [f"M{_number(x)} {_number(y)}"]
    for x, y in rest:
        drawn.append(f"H{_number(x)}V{_number(y)}" if steps else f"L{_number(x)} {_number(y)}")
    return "".join(drawn)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
