"""``privselect noisy-max``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect._util.atomic_files import write_error
from privselect.cli.options import AsJson, DeltaText
from privselect.cli.printing import print_answer, print_json, working
from privselect.cli.reading import read_delta, read_noise, read_whole

NoiseText = Annotated[str, typer.Option("--noise", metavar="N", help="The noise on each score, such as gaussian(sigma=4).")]
Scores = Annotated[str, typer.Option("--m", metavar="M", help="The number of scores.")]
Rounds = Annotated[str, typer.Option("--rounds", metavar="R", help="How many winners are released, each of scores of its own.")]
Changes = Annotated[str | None, typer.Option("--changes", metavar="C", help="How many scores one record can move. Without it: all.")]
Monotone = Annotated[bool, typer.Option("--monotone", help="One record moves scores all up or all down.")]
RoundsPlot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE", help="Draw the bounds over the rounds into this .png, .pdf or .svg file.")
]


def noisy_max(
    noise: NoiseText,
    m: Scores,
    delta: DeltaText,
    rounds: Rounds = "1",
    changes: Changes = None,
    monotone: Monotone = False,
    json: AsJson = False,
    plot: RoundsPlot = None,
) -> None:
    """The epsilon of releasing only which noisy score is the greatest."""
    at, scores, times = read_delta(delta), read_whole("m", m), read_whole("rounds", rounds)
    moved = None if changes is None else read_whole("changes", changes)
    added = read_noise(noise)

    from privselect.noisy_max import NoisyMax

    mechanism = NoisyMax(added, m=scores, rounds=times, changes=moved, monotone=monotone)
    if plot is not None:
        from privselect._util.plot_files import check_plot_file
        from privselect.noisy_max.plots import draw

        check_plot_file(plot)  # before the work begins
        try:
            with working("drawing"):
                draw(mechanism, delta=at, path=plot)
        except OSError as error:
            raise write_error("plot", plot, error) from None
    answer, bounds = mechanism.epsilon_at(at), mechanism.bounds(at)
    if json:
        asked = {"noise": str(added), "m": scores, "rounds": times, "changes": moved, "monotone": monotone}
        print_json({"delta": at, "epsilon": answer.as_dict(), "bounds": bounds, **asked})
        return

    from rich.console import Console

    from privselect.noisy_max.bounds_table import bounds_table
    from privselect.text_forms import write_value

    print_answer(f"epsilon at delta {write_value(at)}", answer, None)
    Console().print(bounds_table(mechanism, at, bounds))
    if plot is not None:
        print(f"plot over rounds written to {plot}")
