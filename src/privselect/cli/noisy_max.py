"""``privselect noisy-max``."""

from typing import Annotated, Any

import typer

from privselect.cli.options import DeltaOption, JsonOption, PlotOption, integer_option, option, parse_noise
from privselect.cli.output import plot_errors, print_intervals, print_json, print_table, spinner

NoiseOption = Annotated[Any, option("noise", "N", "The noise on each score, such as gaussian(sigma=4).", parse_noise)]
ScoresOption = Annotated[int, integer_option("m", "M", "The number of scores.")]
RoundsOption = Annotated[int, integer_option("rounds", "R", "The number of released winners, each from its own scores.")]
ChangesOption = Annotated[int | None, integer_option("changes", "C", "The number of scores that one record can change. Default: all.")]
MonotoneOption = Annotated[bool, typer.Option("--monotone", help="State that one record changes all scores in the same direction.")]


def noisy_max(
    noise: NoiseOption,
    m: ScoresOption,
    delta: DeltaOption,
    rounds: RoundsOption = 1,
    changes: ChangesOption = None,
    monotone: MonotoneOption = False,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Compute epsilon of a noisy maximum. Only the index of the largest noisy score is released."""
    from privselect.noisy_max import NoisyMax
    from privselect.noisy_max.plots import bounds_table, draw_bounds
    from privselect.text_forms import write_value

    mechanism = NoisyMax(noise, m=m, rounds=rounds, changes=changes, monotone=monotone)
    if plot is not None:
        with plot_errors(plot), spinner("drawing"):
            draw_bounds(mechanism, delta=delta, path=plot)
    interval, bounds = mechanism.epsilon_at(delta), mechanism.bounds(delta)
    if json:
        parameters = {"noise": str(noise), "m": m, "rounds": rounds, "changes": changes, "monotone": monotone}
        print_json({"delta": delta, "epsilon": interval.as_dict(), "bounds": bounds, **parameters})
        return
    print_intervals({f"epsilon at delta {write_value(delta)}": interval})
    print_table(bounds_table(mechanism, delta, bounds))
    if plot is not None:
        print(f"plot over rounds written to {plot}")
