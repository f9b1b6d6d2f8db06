"""Draw the accuracy experiment from its table: one row of panels for each epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plotting import (
    BLACK,
    GREEN,
    GREY,
    GREY_DASHED,
    ORANGE,
    SKY,
    VERMILION,
    check_plot_file,
    line_style,
    save_plot,
    style_axes,
)
from research.csv_io import read_csv

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Rows = Sequence[dict[str, str]]

_LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "free": ("free tuning (ceiling, not private)", SKY),
    "exact": ("tuned, exact accounting", BLACK),
    "paper": ("tuned, privacy profiles (paper)", GREEN),
    "renyi": ("tuned, Rényi", VERMILION),
    "composition": ("tuned, composition of fixed runs", GREY_DASHED),
    "best_default": ("best of three untuned defaults, in hindsight", ORANGE),
    "untuned": ("a random candidate, untuned", GREY),
}
_MARKERS = "vosD^Px"  # the only difference between the two grey series
PROBLEMS = {"mnist": "MNIST", "adult": "Adult", "small_mnist": "MNIST, 5000 images"}
_WIDE = 2  # number of settings needed to draw a line


def draw(table: Path, path: str | Path, validation: str) -> None:
    """Draw the results of one validation into a .png, .pdf or .svg file, atomically."""
    file = check_plot_file(path)
    save_plot(_figure([row for row in read_csv(table) if row["validation"] == validation]), file)


def series_of(rows: Rows) -> dict[tuple[str, str, str], list[int]]:
    """Return the numbers of records for each problem, model and search space."""
    found: dict[tuple[str, str, str], set[int]] = {}
    for row in rows:
        found.setdefault((row["problem"], row["model"], row["space"]), set()).add(int(row["records"]))
    return {key: sorted(records) for key, records in found.items()}


def point(rows: Rows, setting: tuple[str, str, str, int], epsilon: str, regime: str) -> tuple[float, float, float]:
    """Return the mean accuracy and its confidence interval; ``best_default`` is the default with the largest mean."""
    own = [
        row
        for row in rows
        if (row["problem"], row["model"], row["space"], int(row["records"])) == setting
        and row["epsilon"] == epsilon
        and (row["regime"] == regime or (regime == "best_default" and row["regime"].startswith("default_")))
    ]
    best = max(own, key=lambda row: float(row["accuracy_mean"]))
    return float(best["accuracy_mean"]), float(best["accuracy_low"]), float(best["accuracy_high"])


def _figure(rows: Rows) -> Figure:
    from matplotlib.figure import Figure

    series = series_of(rows)
    lines = {key: records for key, records in series.items() if len(records) >= _WIDE}
    single = [(*key, records[0]) for key, records in series.items() if len(records) < _WIDE]
    epsilons = sorted({row["epsilon"] for row in rows}, key=float)
    columns = len(lines) + bool(single)
    figure = Figure(figsize=(4.6 * columns, 3.4 * len(epsilons) + 0.8), dpi=100, layout="constrained")
    panels = figure.subplots(len(epsilons), columns, squeeze=False)
    for line, epsilon in zip(panels, epsilons, strict=True):
        for axes, (key, records) in zip(line, lines.items(), strict=False):
            _line_panel(axes, rows, [(*key, one) for one in records], epsilon)
            axes.set_title(f"{PROBLEMS[key[0]]}, {key[1]}, epsilon {epsilon}", fontsize=10)
        if single:
            _point_panel(line[-1], rows, single, epsilon)
            line[-1].set_title(f"other settings, epsilon {epsilon}", fontsize=10)
        line[0].set_ylabel("test accuracy of what is released")
    handles = panels[0][0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", frameon=False, fontsize=9, ncols=columns, handlelength=3.2)
    return figure


def _line_panel(axes: Axes, rows: Rows, settings: Sequence[tuple[str, str, str, int]], epsilon: str) -> None:
    records = [setting[3] for setting in settings]
    for regime, (label, look) in _LINES.items():
        means, low, high = np.array([point(rows, setting, epsilon, regime) for setting in settings]).T
        axes.plot(records, means, label=label, **line_style(look))
        axes.fill_between(records, low, high, color=look["color"], alpha=0.12, linewidth=0.0)
    axes.set_xscale("log")
    axes.set_xticks(records, [f"{one:,}" for one in records], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_xlabel("private records trained on")
    style_axes(axes)


def _point_panel(axes: Axes, rows: Rows, settings: Sequence[tuple[str, str, str, int]], epsilon: str) -> None:
    for place, ((regime, (label, look)), marker) in enumerate(zip(_LINES.items(), _MARKERS, strict=True)):
        means, low, high = np.array([point(rows, setting, epsilon, regime) for setting in settings]).T
        at = np.arange(len(settings)) + 0.11 * (place - 0.5 * (len(_LINES) - 1))
        axes.errorbar(at, means, [means - low, high - means], fmt=marker, markersize=4.5, color=look["color"], linewidth=1.2, label=label)
    axes.set_xticks(range(len(settings)), [_name(setting) for setting in settings], fontsize=8)
    style_axes(axes)


def _name(setting: tuple[str, str, str, int]) -> str:
    problem, model, space, records = setting
    lines = [*PROBLEMS[problem].split(", "), f"{model}, {records:,}", *(["hard space"] if space == "hard" else [])]
    return "\n".join(lines)
