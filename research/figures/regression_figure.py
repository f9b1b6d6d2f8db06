"""The table and the drawing of the figure on linear regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plotting import BLACK, BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, line_style, style_axes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from research.csv_io import Row

    Curve = tuple[list[float], list[float], list[float]]
    Curves = dict[tuple[str, str, str, str], Curve]

_STYLES: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("ops_ptr", "ours"): ("OPS-PTR tuned, exact accounting", BLACK),
    ("ops_ptr", "paper"): ("OPS-PTR tuned, privacy profiles (paper)", GREEN),
    ("ops_ptr", "liu_talwar"): ("OPS-PTR tuned, Liu and Talwar", PURPLE),
    ("output_perturbation", "ours"): ("output perturbation tuned, exact accounting", VERMILION),
    ("ops_balanced", "none"): ("OPS-balanced, recalibrated", BLUE),
    ("ada_ssp", "none"): ("AdaSSP, calibrated jointly", ORANGE),
    ("non_private", "none"): ("ridge regression, not private", GREY),
    ("trivial", "none"): ("every prediction 0", {**GREY, "linewidth": 1.0, "linestyle": (0, (1, 2))}),
}
_NAMES = {"bike": "bike", "elevators_data": "elevators", "protein": "protein", "power_plant": "power plant"}
_ROWS = {"unpaid": "raw validation\n(as published)", "paid": "private validation"}


@dataclass(frozen=True, slots=True)
class RegressionPicture:
    """Errors on four data sets under two validations, with its own table and drawing."""

    table: list[Row]

    def rows(self) -> list[Row]:
        """Return the rows as measured."""
        return self.table

    def figure(self) -> Figure:
        """Draw the figure."""
        return _figure(curves_of(self.table))


def curves_of(table: Iterable[Mapping[str, Any]]) -> Curves:
    """Return epsilons, mean errors and standard errors, by data set, validation, method and accounting.

    A method without validation, and non-private regression, appears under both validations.
    """
    found: Curves = {}
    for row in table:
        single = row["accounting"] == "none"
        for validation in _ROWS if single else (row["validation"],):
            key = (row["data_set"], validation, row["method"], row["accounting"])
            epsilons, means, errors = found.setdefault(key, ([], [], []))
            epsilons.append(float(row["epsilon"]))
            means.append(float(row["test_mse_mean"]))
            errors.append(float(row["test_mse_std"]) / float(row["repetitions"]) ** 0.5)
    return found


def _figure(curves: Curves) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 7.0), dpi=100, layout="constrained")
    names = [name for name in _NAMES if any(key[0] == name for key in curves)]
    panels = figure.subplots(len(_ROWS), len(names), sharex=True, squeeze=False)
    for line, validation in zip(panels, _ROWS, strict=True):
        for axes, name in zip(line, names, strict=True):
            _panel(axes, curves, name, validation)
        line[0].set_ylabel(f"{_ROWS[validation]}\n\nmean squared error (test)")
    for axes, name in zip(panels[0], names, strict=True):
        axes.set_title(_NAMES[name])
    for axes in panels[-1]:
        axes.set_xlabel(r"$\varepsilon$")
    figure.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=9, ncols=4, handlelength=3.2
    )
    return figure


def _panel(axes: Axes, curves: Curves, name: str, validation: str) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    for (method, accounting), (label, style) in _STYLES.items():
        if (name, validation, method, accounting) not in curves:
            continue
        epsilons, means, errors = map(np.array, curves[name, validation, method, accounting])
        axes.plot(epsilons, means, label=label, **line_style(style))
        axes.fill_between(epsilons, np.maximum(means - errors, 1e-9), means + errors, color=style["color"], alpha=0.15, linewidth=0.0)
    low = min(curves[name, validation, "non_private", "none"][1])
    top = max(curves[name, validation, "trivial", "none"][1])
    axes.set_ylim(0.9 * low, 1.6 * top)  # an error above "every prediction 0" is useless
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.set_minor_formatter(lambda *_: "")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    style_axes(axes)
