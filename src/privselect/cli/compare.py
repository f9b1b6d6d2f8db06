"""``privselect compare``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from privselect.cli.options import AsJson, CountText, DeltaText, MechanismText
from privselect.cli.printing import print_json
from privselect.cli.reading import read_count, read_delta, read_mechanism, select
from privselect.errors import ParameterError

_PICTURES = (".png", ".pdf", ".svg")

PlotFile = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the bounds into this .png, .pdf or .svg file.")]
Axis = Annotated[Literal["m", "delta"], typer.Option("--over", help="What the plot runs over: m, the mean of K, or delta.")]


def compare(
    mechanism: MechanismText, delta: DeltaText, count: CountText = None, json: AsJson = False, plot: PlotFile = None, over: Axis = "m"
) -> None:
    """Every known bound at this delta, side by side."""
    at = read_delta(delta)
    if plot is not None:
        _check_picture(plot)
    chosen = select(read_mechanism(mechanism), read_count(count))

    from privselect.selection.compare import compare as compare_bounds

    comparison = compare_bounds(chosen, delta=at)
    if plot is not None:
        try:
            comparison.plot(plot, over=over)
        except OSError as error:
            raise ParameterError(f"`plot` must be a file that can be written, got {str(plot)!r} ({error.strerror})") from None
    if json:
        print_json(comparison.as_dict())
        return

    from rich.console import Console

    Console().print(comparison.table())
    if plot is not None:
        print(f"plot over {over} written to {plot}")


def _check_picture(path: Path) -> None:
    """Refuse before the work begins what could not be written after it."""
    if path.suffix.lower() not in _PICTURES:
        raise ParameterError(f"`plot` must end in {', '.join(_PICTURES)}, got {str(path)!r}")
    if path.is_dir() or not path.parent.is_dir():
        raise ParameterError(f"`plot` must be a file in a folder that exists, got {str(path)!r}")
