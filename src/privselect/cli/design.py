"""``privselect design``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect._util.atomic_files import write_error
from privselect.cli.options import AsJson, DeltaText, EpsilonText, MechanismText
from privselect.cli.printing import print_json, working
from privselect.cli.reading import read_cap, read_delta, read_epsilon, read_mean, read_mechanism, read_tau

TauText = Annotated[str, typer.Option("--tau", metavar="T", help="Which candidates count as good: the best share T, in (0, 1).")]
CapText = Annotated[str, typer.Option("--cap", metavar="N", help="The most trials that may ever be run.")]
MeanText = Annotated[str | None, typer.Option("--mean", metavar="B", help="The most trials on average. Without it: the cap alone.")]
LawPlot = Annotated[Path | None, typer.Option("--plot", metavar="FILE", help="Draw the laws into this .png, .pdf or .svg file.")]


def design(
    mechanism: MechanismText,
    epsilon: EpsilonText,
    delta: DeltaText,
    tau: TauText,
    cap: CapText,
    mean: MeanText = None,
    json: AsJson = False,
    plot: LawPlot = None,
) -> None:
    """The law of K with the most chance of a good trial."""
    at, allowed = read_epsilon(epsilon), read_delta(delta)
    share, most, budget = read_tau(tau), read_cap(cap), read_mean(mean)
    base = read_mechanism(mechanism)
    if plot is not None:
        from privselect._util.plot_files import check_plot_file

        check_plot_file(plot)  # before the work begins

    from privselect.planning.design.design import design as find

    with working("designing the law of K"):
        found = find(base, epsilon=at, delta=allowed, tau=share, cap=most, mean=budget)
    if plot is not None:
        try:
            found.plot(plot)
        except OSError as error:
            raise write_error("plot", plot, error) from None
    if json:
        print_json(found.as_dict())
        return

    from rich.console import Console

    Console().print(found.table())
    print(found.count)
    if plot is not None:
        print(f"plot written to {plot}")
