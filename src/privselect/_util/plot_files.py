"""Files that figures are drawn into: asked about before the work begins, and written whole."""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import TYPE_CHECKING

from privselect._util.atomic_files import check_output_file, atomic_write
from privselect.errors import MissingExtraError

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.figure import Figure

PLOT_SUFFIXES = (".png", ".pdf", ".svg")
_COLOURS = 128


def check_plot_file(path: str | Path) -> Path:
    """``path`` as a file that can be drawn, or one clear sentence: to be asked before the work begins."""
    file = check_output_file("plot", path, PLOT_SUFFIXES)
    check_matplotlib()
    return file


def check_matplotlib() -> None:
    """One sentence where nothing can be drawn at all."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("a plot needs matplotlib; install it with: pip install 'privselect[plot]'")


def save_plot(figure: Figure, file: Path) -> None:
    """Into a file that :func:`check_plot_file` has seen, which appears whole or not at all."""
    picture, kind = io.BytesIO(), file.suffix.lower().removeprefix(".")
    # No date in the file: it would only make equal pictures differ.
    figure.savefig(picture, format=kind, metadata={"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {}))
    atomic_write(file, _small(picture) if kind == "png" else picture.getvalue())


def _small(picture: io.BytesIO) -> bytes:
    """The same picture with a palette, which lines and letters have enough of: about a third of the size."""
    from PIL import Image  # matplotlib needs it too

    with Image.open(picture) as drawn:
        reduced, small = drawn.convert("RGB").quantize(_COLOURS), io.BytesIO()
    reduced.save(small, format="PNG", optimize=True)
    return small.getvalue()
