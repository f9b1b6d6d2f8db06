"""The bounds on a noisy max as curves over the rounds: the data first, the drawing after it."""

from __future__ import annotations

import dataclasses
import math
import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plot_files import check_plot_file, save_plot
from privselect._util.plot_style import BLACK, GREY_DASHED, style_axes, line_style
from privselect._util.plot_style import BOUND_STYLES as LOOKS
from privselect._util.validation import OPEN_UNIT, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.mechanisms.base import MOST_RUNS
from privselect.noisy_max.noisy_max import NoisyMax
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

    Curves = dict[str, list[float | None]]

_POINTS = 13
_ROUNDS = 100  # the curves run at least so far

_STYLES: dict[str, tuple[str, dict[str, Any]]] = {
    "upper": ("least of all that is proved", BLACK),
    "lower": ("one real instance, from below", {**BLACK, "linewidth": 1.2, "linestyle": (0, (1, 1))}),
    "paper": LOOKS["paper"],
    "renyi": LOOKS["renyi"],
    "full_release": ("all noisy scores released", GREY_DASHED),
}


def round_curves(mechanism: NoisyMax, *, delta: float, points: int = _POINTS) -> Curves:
    """Epsilon at delta by every bound over the number of rounds: lists of one length, None where a bound is infinite or missing.

    The keys are ``rounds`` (from 1 to 100, or further where the mechanism has more rounds, which are among them), ``upper`` and
    ``lower`` (the two ends of the answer), and the names of the single bounds.
    """
    if not isinstance(mechanism, NoisyMax):
        raise ParameterError(f"`mechanism` must be a noisy max, got {format_value(mechanism)}")
    at = check_number("delta", delta, OPEN_UNIT)
    places = _places(mechanism.rounds, int(check_number("points", points, integer_range(2, 1000))))
    curves: Curves = {"rounds": list(map(float, places)), "upper": [], "lower": []}
    found = [dataclasses.replace(mechanism, rounds=rounds) for rounds in places]
    for one in found:
        answer = one.epsilon_at(at)
        curves["upper"].append(_finite(answer.upper))
        curves["lower"].append(_finite(answer.lower))
    bounds = [one.bounds(at) for one in found]
    names = dict.fromkeys(name for one in bounds for name in one)
    return curves | {name: [_finite(one.get(name)) for one in bounds] for name in names}


def draw(mechanism: NoisyMax, *, delta: float, path: str | Path) -> None:
    """Draw :func:`round_curves` into a .png, .pdf or .svg file, which appears whole or not at all."""
    file = check_plot_file(path)
    save_plot(_figure(round_curves(mechanism, delta=delta), mechanism, delta), file)


def _places(rounds: int, size: int) -> list[int]:
    """Whole numbers in about equal steps of the logarithm, the asked one among them."""
    steps = np.geomspace(1.0, min(max(_ROUNDS, rounds), MOST_RUNS), size)
    return sorted({rounds, *(round(step) for step in steps)})


def _finite(value: Any) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


def _figure(curves: Curves, mechanism: NoisyMax, delta: float) -> Figure:
    """One panel, the legend beside it. A Figure of its own: no global state of pyplot is touched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 4.6), dpi=200, layout="constrained")
    axes = figure.add_subplot()
    # On two logarithmic axes a bound that grows with the root of the rounds and one that grows with the rounds differ by their slope.
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
