"""``privselect compare``."""

from typing import Annotated, Literal

import typer

from privselect.cli.options import CountOption, DeltaOption, JsonOption, MechanismOption, PlotOption
from privselect.cli.output import plot_errors, print_json, print_table
from privselect.errors import ParameterError

Axis = Annotated[
    Literal["mean", "delta"] | None,
    typer.Option("--over", help="The horizontal axis of the plot: the mean of K or delta. Default: the mean if the law of K has one."),
]


def compare(
    mechanism: MechanismOption,
    delta: DeltaOption,
    count: CountOption = None,
    json: JsonOption = False,
    plot: PlotOption = None,
    over: Axis = None,
) -> None:
    """Compare all known bounds on epsilon."""
    if over is not None and plot is None:
        raise ParameterError(f"`over` needs --plot, got {over!r} alone")

    from privselect.selection.compare import compare as compare_bounds
    from privselect.selection.selection import selection_of

    selection = selection_of(mechanism, count)
    if plot is not None:
        from privselect.selection.plots import check_axis

        axis = check_axis(selection, over)  # before the work begins
    comparison = compare_bounds(selection, delta=delta)
    if plot is not None:
        with plot_errors(plot):
            comparison.plot(plot, over=axis)
    if json:
        print_json(comparison.as_dict())
        return
    print_table(comparison.table())
    if plot is not None:
        print(f"plot over {axis} written to {plot}")
