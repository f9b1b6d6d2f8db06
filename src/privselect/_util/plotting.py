"""Style of all figures, and writing them to files."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from privselect._util.atomic_files import atomic_write, check_output_file
from privselect.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    LineStyle = dict[str, Any]

# Colours for colour-blind readers (Okabe and Ito), with dashes that differ without colour.
BLACK: LineStyle = {"color": "#000000", "linewidth": 2.2}
BLUE: LineStyle = {"color": "#0072B2", "linestyle": (0, (6, 1.5))}
GREEN: LineStyle = {"color": "#009E73", "linestyle": (0, (4, 1.5, 1, 1.5))}
VERMILION: LineStyle = {"color": "#D55E00", "linestyle": (0, (2, 1.2))}
PURPLE: LineStyle = {"color": "#CC79A7", "linestyle": (0, (1, 1))}
ORANGE: LineStyle = {"color": "#E69F00", "linewidth": 2.0}
SKY: LineStyle = {"color": "#56B4E9", "linestyle": (0, (3, 3))}
GREY: LineStyle = {"color": "#999999", "linewidth": 1.2}
GREY_DASHED: LineStyle = {"color": "#999999", "linestyle": (0, (8, 2, 1, 2, 1, 2))}

# Label and line of each bound, the same in all figures.
BOUND_STYLES: dict[str, tuple[str, LineStyle]] = {
    "exact": ("exact", BLACK),
    "ratio": ("ratio", BLUE),
    "paper": ("privacy profiles (paper)", GREEN),
    "renyi": ("Rényi", VERMILION),
    "liu_talwar": ("Liu and Talwar", PURPLE),
    "composition": ("all runs released (composition)", GREY_DASHED),
    "base": ("one trial alone", GREY),
}

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
_PALETTE_COLOURS = 128


def line_style(style: LineStyle) -> LineStyle:
    """Return the plot arguments of a line, with the default width if ``style`` has none."""
    return {"linewidth": 1.6, **style}


def style_axes(axes: Axes) -> None:
    """Draw only the left and bottom sides of the box, and a faint grid behind the lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#EEEEEE", linewidth=0.8)
    axes.set_axisbelow(True)


def check_plot_file(path: str | Path) -> Path:
    """Check that a plot can be drawn into ``path``, and return it. Call this before the work begins."""
    file = check_output_file("plot", path, PLOT_SUFFIXES)
    check_matplotlib()
    return file


def check_matplotlib() -> None:
    """Raise MissingExtraError if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("a plot needs matplotlib; install it with: pip install 'privselect[plot]'")


def save_plot(figure: Figure, file: Path) -> None:
    """Write a figure atomically to a file accepted by `check_plot_file`."""
    picture, kind = io.BytesIO(), file.suffix.lower().removeprefix(".")
    # Without a date, equal figures give equal files.
    figure.savefig(picture, format=kind, metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {}))
    atomic_write(file, _with_palette(picture) if kind == "png" else picture.getvalue())


def _with_palette(picture: io.BytesIO) -> bytes:
    """Return the PNG with a small palette: enough for lines and text, at a third of the size."""
    from PIL import Image  # a dependency of matplotlib

    with Image.open(picture) as image:
        reduced, small = image.convert("RGB").quantize(_PALETTE_COLOURS), io.BytesIO()
    reduced.save(small, format="PNG", optimize=True)
    return small.getvalue()
