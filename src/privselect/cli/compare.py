"""``privselect compare``."""

from typing import Annotated, Literal

import typer

from privselect.cli.options import (
    CountOption,
    DeltaOption,
    FinalOption,
    JsonOption,
    MechanismOption,
    PlotOption,
    SubsampleOption,
    VisibleOption,
)
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
    visible: VisibleOption = None,
    subsample: SubsampleOption = None,
    final: FinalOption = None,
    json: JsonOption = False,
    plot: PlotOption = None,
    over: Axis = None,
) -> None:
    """Compare all known bounds on epsilon, of a selection or of a search with a final training."""
    if over is not None and plot is None:
        raise ParameterError(f"`over` needs --plot, got {over!r} alone")

    if final is not None and count is None and visible is None:
        raise ParameterError(f"--final needs a search before it: pass --count or --visible, got --final {final} alone")

    from privselect.selection.compare import compare as compare_bounds
    from privselect.selection.two_stages import search_then_train

    whole = search_then_train(mechanism, count, final, visible=visible, subsample=subsample)
    if plot is not None:
        from privselect.selection.comparison_curves import check_axis

        axis = check_axis(whole, over)  # before the work begins
    comparison = compare_bounds(whole, delta=delta)
    if plot is not None:
        with plot_errors(plot):
            comparison.plot(plot, over=axis)
    if json:
        print_json(comparison.as_dict())
        return
    print_table(comparison.table())
    if plot is not None:
        print(f"plot over {axis} written to {plot}")
