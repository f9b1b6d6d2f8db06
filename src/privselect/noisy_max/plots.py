"""Plot of the bounds on a noisy max over the number of rounds, and table of the bounds."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plotting import BLACK, BOUND_STYLES, GREY_DASHED, check_plot_file, line_style, save_plot, style_axes
from privselect._util.rich_tables import rich_table
from privselect._util.rounding import finite_or_none, format_up
from privselect._util.validation import OPEN_UNIT, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.mechanisms.base import MAX_RUNS
from privselect.noisy_max.accounting.bounds import DESCRIPTIONS
from privselect.noisy_max.noisy_max import NoisyMax
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from matplotlib.figure import Figure
    from rich.table import Table

    Curves = dict[str, list[float | None]]

_POINTS = 13
_MIN_ROUNDS = 100  # the plot covers at least this many rounds

_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "upper": ("smallest proved upper bound", BLACK),
    "lower": ("lower bound", {**BLACK, "linewidth": 1.2, "linestyle": (0, (1, 1))}),
    "paper": BOUND_STYLES["paper"],
    "renyi": BOUND_STYLES["renyi"],
    "full_release": ("all noisy scores released", GREY_DASHED),
}


def round_curves(mechanism: NoisyMax, *, delta: float, points: int = _POINTS) -> Curves:
    """Compute epsilon at delta by every bound over the number of rounds.

    Returns lists of equal length, with None if a bound is infinite or does not apply. The keys are ``rounds``, ``upper`` and ``lower``
    (the bounds of the result), and the names of the individual bounds. ``rounds`` runs from 1 to at least 100 and includes the rounds of
    the mechanism.
    """
    if not isinstance(mechanism, NoisyMax):
        raise ParameterError(f"`mechanism` must be a noisy max, got {format_value(mechanism)}")
    at = check_number("delta", delta, OPEN_UNIT)
    rounds = _rounds_to_plot(mechanism.rounds, int(check_number("points", points, integer_range(2, 1000))))
    curves: Curves = {"rounds": list(map(float, rounds)), "upper": [], "lower": []}
    mechanisms = [dataclasses.replace(mechanism, rounds=count) for count in rounds]
    for one in mechanisms:
        epsilon = one.epsilon_at(at)
        curves["upper"].append(finite_or_none(epsilon.upper))
        curves["lower"].append(finite_or_none(epsilon.lower))
    bounds = [one.bounds(at) for one in mechanisms]
    names = dict.fromkeys(name for one in bounds for name in one)
    return curves | {name: [finite_or_none(one.get(name)) for one in bounds] for name in names}


def draw_bounds(mechanism: NoisyMax, *, delta: float, path: str | Path) -> None:
    """Plot :func:`round_curves` into a .png, .pdf or .svg file, which is written atomically."""
    file = check_plot_file(path)
    save_plot(_figure(round_curves(mechanism, delta=delta), mechanism, delta), file)


def bounds_table(mechanism: NoisyMax, delta: float, bounds: Mapping[str, float | None]) -> Table:
    """Return a rich table of the bounds: epsilon, ratio to the smallest, and meaning."""
    smallest = min((epsilon for epsilon in bounds.values() if epsilon is not None), default=math.inf)
    rows = []
    for name, epsilon in bounds.items():
        ratio = "" if epsilon is None or not 0.0 < smallest <= epsilon < math.inf else f"{epsilon / smallest:.3f}"
        rows.append((name, "-" if epsilon is None else format_up(epsilon), ratio, DESCRIPTIONS[name]))
    best = next((place for place, epsilon in enumerate(bounds.values()) if epsilon == smallest), None)
    return rich_table(
        ("bound", "epsilon", "/ smallest", "meaning"),
        rows,
        title=f"epsilon at delta = {write_value(delta)} of {mechanism}",
        right=("epsilon", "/ smallest"),
        wrap=("meaning",),
        bold=best,
    )


def _rounds_to_plot(rounds: int, size: int) -> list[int]:
    """Return integers in roughly equal logarithmic steps, including ``rounds``."""
    steps = np.geomspace(1.0, min(max(_MIN_ROUNDS, rounds), MAX_RUNS), size)
    return sorted({rounds, *(round(step) for step in steps)})


def _figure(curves: Curves, mechanism: NoisyMax, delta: float) -> Figure:
    """Draw one panel with the legend on the right, without touching the global state of pyplot."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    # With two logarithmic axes, growth with the square root of the rounds and linear growth differ by their slope.
    axes.set_xscale("log")
    if any(value for value in curves["upper"]):
        axes.set_yscale("log")
    for name, (label, style) in _STYLES.items():
        values = np.array([math.nan if value is None else value for value in curves.get(name, [])])
        if np.isfinite(values).any():
            axes.plot(np.array(curves["rounds"]), values, label=label, **line_style(style))
    axes.set_xlim(curves["rounds"][0], curves["rounds"][-1])
    axes.axvline(mechanism.rounds, color="#CCCCCC", linewidth=1.0, zorder=0)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("rounds")
    axes.set_ylabel(r"$\varepsilon$")
    style_axes(axes)
    one_round = dataclasses.replace(mechanism, rounds=1)
    figure.suptitle(
        "\n".join([*textwrap.wrap(str(one_round), width=100, max_lines=3), f"delta = {write_value(delta)}"]), fontsize=9, x=0.01, ha="left"
    )
    figure.legend(loc="outside right center", frameon=False, fontsize=9, handlelength=3.2)
    return figure
