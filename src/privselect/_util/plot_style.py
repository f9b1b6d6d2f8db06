"""How every figure looks: one line for each bound, one frame for each panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    LineStyle = dict[str, Any]

# Colours that also differ to the colour-blind (Okabe and Ito), and dashes that differ without any colour.
BLACK: LineStyle = {"color": "#000000", "linewidth": 2.2}
BLUE: LineStyle = {"color": "#0072B2", "linestyle": (0, (6, 1.5))}
GREEN: LineStyle = {"color": "#009E73", "linestyle": (0, (4, 1.5, 1, 1.5))}
VERMILION: LineStyle = {"color": "#D55E00", "linestyle": (0, (2, 1.2))}
PURPLE: LineStyle = {"color": "#CC79A7", "linestyle": (0, (1, 1))}
ORANGE: LineStyle = {"color": "#E69F00", "linewidth": 2.0}
SKY: LineStyle = {"color": "#56B4E9", "linestyle": (0, (3, 3))}
GREY: LineStyle = {"color": "#999999", "linewidth": 1.2}
GREY_DASHED: LineStyle = {"color": "#999999", "linestyle": (0, (8, 2, 1, 2, 1, 2))}

# What a bound is called, and its line. Where figures show the same bound, they show it alike.
BOUND_STYLES: dict[str, tuple[str, LineStyle]] = {
    "exact": ("exact", BLACK),
    "ratio": ("ratio", BLUE),
    "paper": ("privacy profiles (paper)", GREEN),
    "renyi": ("Rényi", VERMILION),
    "liu_talwar": ("Liu and Talwar", PURPLE),
    "composition": ("all runs released (composition)", GREY_DASHED),
    "base": ("one trial alone", GREY),
}


def line_style(look: LineStyle) -> LineStyle:
    """The arguments of a line; the width of those that name none."""
    return {"linewidth": 1.6, **look}


def style_axes(axes: Axes) -> None:
    """Two sides of a box, and a faint grid behind the lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#EEEEEE", linewidth=0.8)
    axes.set_axisbelow(True)
