"""``privselect design``."""

from typing import Annotated

from privselect._util.validation import OPEN_UNIT, POSITIVE
from privselect.cli.options import DeltaOption, EpsilonOption, JsonOption, MechanismOption, PlotOption, integer_option, number_option
from privselect.cli.output import plot_errors, print_json, print_table, spinner

TauOption = Annotated[float, number_option("tau", "T", OPEN_UNIT, "The fraction of the candidates that counts as good, in (0, 1).")]
CapOption = Annotated[int, integer_option("cap", "N", "The largest number of trials.")]
MeanOption = Annotated[float | None, number_option("mean", "B", POSITIVE, "The largest mean number of trials. Default: no limit.")]


def design(
    mechanism: MechanismOption,
    epsilon: EpsilonOption,
    delta: DeltaOption,
    tau: TauOption,
    cap: CapOption,
    mean: MeanOption = None,
    json: JsonOption = False,
    plot: PlotOption = None,
) -> None:
    """Find the best law of K within a budget. The best law has the highest probability of a good trial."""
    from privselect.planning.design.design import design as find_law

    with spinner("designing the law of K"):
        found = find_law(mechanism, epsilon=epsilon, delta=delta, tau=tau, cap=cap, mean=mean)
    if plot is not None:
        with plot_errors(plot):
            found.plot(plot)
    if json:
        print_json(found.as_dict())
        return
    print_table(found.table())
    print(found.count)
    if plot is not None:
        print(f"plot written to {plot}")
