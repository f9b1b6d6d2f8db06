"""One drawer for the figures of the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from privselect._util.plotting import BLACK, BOUND_STYLES, ORANGE, PURPLE, SKY, style_axes, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from research.figures.picture import Curve, Panel, Picture

_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "exact_upper": ("ours, from above", BLACK),
    "exact_lower": ("ours, from below", {**SKY, "linewidth": 1.2, "zorder": 3}),  # on the other, which it hardly leaves
    "base": BOUND_STYLES["base"],
    "ratio": BOUND_STYLES["ratio"],
    "paper": BOUND_STYLES["paper"],
    "closed_form": ("closed form (paper)", {**ORANGE, "linestyle": (0, (5, 1, 1, 1, 1, 1))}),
    "adjust": ("cor:adjust (paper)", ORANGE),
    "renyi": BOUND_STYLES["renyi"],
    "renyi_alone": (r"Rényi, $\hat\delta$ by Rényi too", PURPLE),
    "liu_talwar": BOUND_STYLES["liu_talwar"],
}
# Curves of one kind in their order, from the first to the limit of all.
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
_ALONE, _BESIDE = (6.6, 4.2), (3.8, 2.9)  # inches of a panel
_LEGEND, _ENTRY = 0.45, 2.2  # height of two lines of the legend, width of an entry


def drawn(picture: Picture) -> Figure:
    """Panels in their order, the legend below. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    rows = math.ceil(len(picture.panels) / picture.columns)
    width, height = _ALONE if len(picture.panels) == 1 else _BESIDE
    figure = Figure(figsize=(width * picture.columns, height * rows + _LEGEND), dpi=100, layout="constrained")
    for place, panel in enumerate(picture.panels):
        _draw(figure.add_subplot(rows, picture.columns, place + 1), panel, picture)
    figure.suptitle(picture.title, fontsize=10, x=0.01, ha="left")
    # One entry for each bound, from whichever panel has it, in the order of the styles.
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
    """Lines of the legend that are about equally long."""
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
    """Each curve with its label and look, in reverse: ours is drawn over the others."""
    if any(curve.name for curve in panel.curves):
        return [(curve, (curve.name, look)) for curve, look in zip(panel.curves, _NAMED, strict=False)]
    order = list(_STYLES)
    return [(curve, _STYLES[curve.bound]) for curve in sorted(panel.curves, key=lambda curve: -order.index(curve.bound))]


def _limit(axes: Axes, panel: Panel, picture: Picture) -> None:
    """From end to end of the places; values from 0 on, and as far in every panel that shows the same."""
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
