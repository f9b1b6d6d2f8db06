"""Draw the figures of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BLACK, BOUND_STYLES, ORANGE, PURPLE, SKY, line_style, style_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from research.figures.picture import Curve, Panel, Picture

_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "exact_upper": ("exact, upper bound", BLACK),
    "exact_lower": (
        "exact, lower bound",
        {**SKY, "linewidth": 1.2, "zorder": 3},
    ),  # on top of the upper bound, from which it hardly differs
    "base": BOUND_STYLES["base"],
    "ratio": BOUND_STYLES["ratio"],
    "paper": BOUND_STYLES["paper"],
    "closed_form": ("closed form (paper)", {**ORANGE, "linestyle": (0, (5, 1, 1, 1, 1, 1))}),
    "adjust": ("cor:adjust (paper)", ORANGE),
    "renyi": BOUND_STYLES["renyi"],
    "renyi_alone": (r"Rényi, $\hat\delta$ by Rényi too", PURPLE),
    "liu_talwar": BOUND_STYLES["liu_talwar"],
}
# Curves of one kind in order, ending with their limit.
_NAMED: tuple[dict[str, Any], ...] = (
    *({"color": shade} for shade in ("#08306B", "#2171B5", "#4FA3D9", "#9CC9E8")),
    {"color": "#444444", "linestyle": (0, (2, 1.2))},
)
_LABELS = {
    "m": "number of scores, m",
    "mean": "expected number of trials, E K",
    "delta": r"$\delta$",
    "epsilon": r"$\varepsilon$",
    "k": "number of trials, k",
    "steps": "steps",
    "probability": "P(K ≤ k)",
}
_LOGARITHMIC = {"m", "mean", "delta"}
_ALONE, _BESIDE = (6.6, 4.2), (3.8, 2.9)  # size of a panel in inches
_LEGEND, _ENTRY = 0.45, 2.2  # height of two legend lines, width of an entry


def drawn(picture: Picture) -> Figure:
    """Draw the panels in order with the legend below, in a Figure of its own that leaves the global state of pyplot unchanged."""
    from matplotlib.figure import Figure

    rows = math.ceil(len(picture.panels) / picture.columns)
    width, height = _ALONE if len(picture.panels) == 1 else _BESIDE
    figure = Figure(figsize=(width * picture.columns, height * rows + _LEGEND), dpi=100, layout="constrained")
    for place, panel in enumerate(picture.panels):
        _draw(figure.add_subplot(rows, picture.columns, place + 1), panel, picture)
    figure.suptitle(picture.title, fontsize=10, x=0.01, ha="left")
    # One legend entry for each bound in any panel, in the order of the styles.
    shown = {label: line for axes in figure.axes for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    order = [label for label, _ in _STYLES.values() if label in shown]
    figure.legend(
        [shown[label] for label in order],
        order,
        loc="outside lower center",
        frameon=False,
        fontsize=9,
        ncols=_columns(len(order), round(width * picture.columns / _ENTRY)),
        handlelength=3.2,
    )
    return figure


def _columns(entries: int, most: int) -> int:
    """Return the number of legend columns that gives lines of similar length."""
    return math.ceil(entries / math.ceil(entries / most))


def _draw(axes: Axes, panel: Panel, picture: Picture) -> None:
    across, up = ("epsilon", "delta") if panel.place == "delta" else (panel.place, panel.quantity)
    for curve, (label, look) in _looks(panel):
        places, values = [point.place for point in curve.points], [point.value for point in curve.points]
        seen = (values, places) if panel.place == "delta" else (places, values)
        axes.plot(*seen, label=label, drawstyle="steps-post" if panel.place == "k" else "default", **line_style(look))
    for name, axis in ((across, axes.xaxis), (up, axes.yaxis)):
        axis.set_label_text(_LABELS[name])
        if name in _LOGARITHMIC:
            (axes.set_xscale if axis is axes.xaxis else axes.set_yscale)("log")
        if name in _LOGARITHMIC - {"delta"}:
            axis.set_major_formatter(lambda value, _: f"{value:g}")
    if panel.mark is not None:
        (axes.axhline if panel.place == "delta" else axes.axvline)(panel.mark, color="#CCCCCC", linewidth=1.0, zorder=0)
    _limit(axes, panel, picture)
    style_axes(axes)
    axes.set_title(panel.title, fontsize=10)
    if any(curve.name for curve in panel.curves):
        axes.legend(frameon=False, fontsize=8, handlelength=3.2)


def _looks(panel: Panel) -> list[tuple[Curve, tuple[str, dict[str, Any]]]]:
    """Return each curve with its label and style, in reverse order: the exact bound is drawn on top."""
    if any(curve.name for curve in panel.curves):
        return [(curve, (curve.name, look)) for curve, look in zip(panel.curves, _NAMED, strict=False)]
    order = list(_STYLES)
    return [(curve, _STYLES[curve.bound]) for curve in sorted(panel.curves, key=lambda curve: -order.index(curve.bound))]


def _limit(axes: Axes, panel: Panel, picture: Picture) -> None:
    """Set the axis limits: all places; values from 0 on, with the same maximum in all panels of one kind."""
    places = [point.place for curve in panel.curves for point in curve.points]
    alike = [other for other in picture.panels if (other.place, other.quantity) == (panel.place, panel.quantity)]
    most = max(point.value for other in alike for curve in other.curves for point in curve.points)
    if panel.place == "delta":
        axes.set_ylim(min(places), max(places))
        axes.set_xlim(0.0, 1.03 * most)
        return
    axes.set_xlim(min(places), max(places))
    if panel.quantity not in _LOGARITHMIC:
        axes.set_ylim(0.0, 1.05 * most)
