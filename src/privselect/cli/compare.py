"""``privselect compare``."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from privselect._util.atomic_files import write_error
from privselect.cli.options import AsJson, CountText, DeltaText, MechanismText
from privselect.cli.printing import print_json
from privselect.cli.reading import read_count, read_delta, read_mechanism, select
from privselect.errors import ParameterError

PlotFile = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the bounds into this .png, .pdf or .svg file.")]
Axis = Annotated[
    Literal["mean", "delta"] | None,
    typer.Option("--over", help="What the plot runs over: the mean of K (where the law has one to vary, the default) or delta."),
]


def compare(
    mechanism: MechanismText, delta: DeltaText, count: CountText = None, json: AsJson = False, plot: PlotFile = None, over: Axis = None
) -> None:
    """Every known bound at this delta, side by side."""
    at = read_delta(delta)
    if over is not None and plot is None:
        raise ParameterError(f"`over` says what a plot runs over and needs --plot, got {over!r} alone")
    chosen = select(read_mechanism(mechanism), read_count(count))

    from privselect.selection.compare import compare as compare_bounds

    if plot is not None:
        from privselect._util.plot_files import check_plot_file
        from privselect.selection.plots import check_axis

        # Refuse before the work begins what could not be drawn after it.
        check_plot_file(plot)
        axis = check_axis(chosen, over)
    comparison = compare_bounds(chosen, delta=at)
    if plot is not None:
        try:
            comparison.plot(plot, over=axis)
        except OSError as error:
            raise write_error("plot", plot, error) from None
    if json:
        print_json(comparison.as_dict())
        return

    from rich.console import Console

    Console().print(comparison.table())
    if plot is not None:
        print(f"plot over {axis} written to {plot}")
