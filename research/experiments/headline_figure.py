"""Draw the headline from its table: noise over the mean number of trials for each epsilon, and trials at equal noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.plotting import BOUND_STYLES, check_plot_file, line_style, save_plot, style_axes
from research.csv_io import read_csv

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Keyed by the names in the table.
_LINES = {
    "renyi": BOUND_STYLES["renyi"],
    "paper": BOUND_STYLES["paper"],
    "exact": BOUND_STYLES["exact"],
    "composition": BOUND_STYLES["composition"],
}
_UNTUNED = ("one training, no tuning", BOUND_STYLES["base"][1])
_FAR = 1.15  # composition exceeds the plot


def draw(table: Path, path: str | Path) -> None:
    """Draw the table into a .png, .pdf or .svg file, atomically."""
    file = check_plot_file(path)
    save_plot(_figure(read_csv(table)), file)


def _figure(rows: list[dict[str, str]]) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 3.9), dpi=100, layout="constrained")
    epsilons = list(dict.fromkeys(row["epsilon"] for row in rows))
    panels = figure.subplots(1, len(epsilons) + 1)
    for axes, epsilon in zip(panels, epsilons, strict=False):
        _noise_panel(axes, [row for row in rows if row["epsilon"] == epsilon])
        axes.set_title(rf"noise needed at $\varepsilon$ = {epsilon}", fontsize=10)
    panels[0].set_ylabel("noise multiplier")
    _trials_panel(panels[-1], rows, epsilons)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=9, ncols=5, handlelength=3.2)
    return figure


def _noise_panel(axes: Axes, rows: list[dict[str, str]]) -> None:
    means = [float(row["mean"]) for row in rows]
    for name, (label, look) in _LINES.items():
        axes.plot(means, [float(row[f"{name}_noise"]) for row in rows], label=label, **line_style(look))
    axes.axhline(float(rows[0]["untuned_noise"]), label=_UNTUNED[0], **line_style(_UNTUNED[1]))
    axes.set_ylim(0.0, _FAR * max(float(row["renyi_noise"]) for row in rows))
    _over_trials(axes)


def _trials_panel(axes: Axes, rows: list[dict[str, str]], epsilons: list[str]) -> None:
    """Draw how many times as many trials exact accounting allows at the noise that another bound requires."""
    for name in ("renyi", "paper"):
        for epsilon, marker in zip(epsilons, "osD^v", strict=False):
            own = [row for row in rows if row["epsilon"] == epsilon]
            means = [float(row["mean"]) for row in own]
            times = [float(row[f"exact_trials_at_{name}_noise"]) / mean for row, mean in zip(own, means, strict=True)]
            axes.plot(means, times, **{**line_style(_LINES[name][1]), "marker": marker, "markersize": 4.5, "linewidth": 1.0})
    for epsilon, marker in zip(epsilons, "osD^v", strict=False):
        axes.plot([], [], color="#666666", linestyle="none", marker=marker, markersize=4.5, label=rf"$\varepsilon$ = {epsilon}")
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} times")
    axes.set_title("more trials by the exact price,\nat the noise of that bound", fontsize=10)
    _over_trials(axes)


def _over_trials(axes: Axes) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("expected number of trials, E K")
    style_axes(axes)
