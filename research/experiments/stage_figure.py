"""Draw the experiment of two stages from its table: one panel for each setting, and one for their average."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect._util.plotting import BLACK, ORANGE, check_plot_file, save_plot, style_axes
from research.csv_io import read_csv
from research.experiments.accuracy_figure import PROBLEMS, series_of
from research.experiments.stage_summary import LABELS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    Rows = Sequence[dict[str, str]]
    Point = tuple[float, ...]  # a mean, and the ends of its interval if it has one

# Lines of each panel from top to bottom: the private ways to tune between the references, which are hollow on grey.
DRAWN = ("free", "one_shot", "two_stages_0", "two_stages_50", "two_stages_90", "visible_tpe_defaults", "mean_default", "best_default")
_REFERENCES = ("free", "mean_default", "best_default")
_LOOKS = ((BLACK["color"], "o"), (ORANGE["color"], "D"))  # colour and marker of each epsilon
_COLUMNS = 4
_APART = 0.14  # half the distance between the epsilons of a line


def draw(table: Path, path: str | Path, validation: str) -> None:
    """Draw the results of one validation into a .png, .pdf or .svg file, atomically."""
    file = check_plot_file(path)
    save_plot(_figure([row for row in read_csv(table) if row["validation"] == validation]), file)


def points(rows: Rows, setting: str, epsilon: str) -> dict[str, Point]:
    """Return the mean accuracy of every drawn regime of a setting and its confidence interval, in percent."""
    own = {row["regime"]: row for row in rows if (row["setting"], row["epsilon"]) == (setting, epsilon)}
    ends = ("mean", "low", "high")
    return {name: tuple(100.0 * float(own[name][f"accuracy_{end}"]) for end in ends) for name in DRAWN if name in own}


def average_points(rows: Rows, epsilon: str) -> dict[str, Point]:
    """Return the average over the settings of every drawn regime that all of them have."""
    settings = list(dict.fromkeys(row["setting"] for row in rows if row["epsilon"] == epsilon))
    found = [points(rows, setting, epsilon) for setting in settings]
    return {name: (float(np.mean([one[name][0] for one in found])),) for name in DRAWN if found and all(name in one for one in found)}


def _figure(rows: Rows) -> Figure:
    from matplotlib.figure import Figure

    epsilons = sorted({row["epsilon"] for row in rows}, key=float)
    settings = [_setting(rows, key, records) for key, all_records in series_of(rows).items() for records in all_records]
    lines = max(-(-(len(settings) + 1) // _COLUMNS), 1)
    figure = Figure(figsize=(13.5, 2.9 * lines + 0.3), dpi=100, layout="constrained")
    panels = figure.subplots(lines, _COLUMNS, squeeze=False)
    for place, axes in enumerate(panels.flat):
        if place > len(settings):
            axes.set_axis_off()
            continue
        _panel(axes, labelled=place % _COLUMNS == 0)
        for at, epsilon in enumerate(epsilons):
            if place == 0:
                found = average_points(rows, epsilon)
                axes.set_title("average\nof all settings", fontsize=10, fontweight="bold")
            else:
                found = points(rows, settings[place - 1]["setting"], epsilon)
                axes.set_title(_title(settings[place - 1]), fontsize=10)
            _draw_points(axes, found, at, len(epsilons), epsilon if place == 0 else None)
    for axes in panels[-1]:
        axes.set_xlabel("test accuracy in percent")
    return figure


def _panel(axes: Axes, *, labelled: bool) -> None:
    style_axes(axes)
    axes.margins(x=0.12)  # for the labels of the epsilons
    axes.set_ylim(len(DRAWN) - 0.4, -1.0)
    axes.set_yticks(range(len(DRAWN)), [LABELS[name] if labelled else "" for name in DRAWN], fontsize=9)
    for place, name in enumerate(DRAWN):
        if name in _REFERENCES:
            axes.axhspan(place - 0.5, place + 0.5, color="#F3F3F3", linewidth=0.0, zorder=0)
        if labelled and name.startswith("two_stages"):
            axes.get_yticklabels()[place].set_fontweight("bold")


def _draw_points(axes: Axes, found: dict[str, Point], at: int, epsilons: int, label: str | None) -> None:
    places = [place + _APART * (2 * at - epsilons + 1) for place, name in enumerate(DRAWN) if name in found]
    values = np.array([np.broadcast_to(found[name], 3) for name in DRAWN if name in found]).reshape(-1, 3)
    means, low, high = values.T
    colour, marker = _LOOKS[at % len(_LOOKS)]
    hollow = [name in _REFERENCES for name in DRAWN if name in found]
    axes.errorbar(means, places, xerr=[means - low, high - means], fmt="none", ecolor=colour, elinewidth=1.0, alpha=0.6)
    axes.scatter(
        means,
        places,
        s=24,
        marker=marker,
        color=["white" if one else colour for one in hollow],
        edgecolors=colour,
        linewidths=1.2,
        zorder=3,
    )
    if label is not None and len(means):
        axes.annotate(f"epsilon {label}", (means[0], -0.55), ha="center", va="center", fontsize=9, color=colour)


def _setting(rows: Rows, key: tuple[str, str, str], records: int) -> dict[str, str]:
    return next(row for row in rows if (row["problem"], row["model"], row["space"], int(row["records"])) == (*key, records))


def _title(row: dict[str, str]) -> str:
    hard = ", hard space" if row["space"] == "hard" else ""
    return f"{PROBLEMS[row['problem']]}, {row['model']}\n{int(row['records']):,} records{hard}"
