"""``privselect delta``."""

from privselect.cli.options import CountOption, EpsilonOption, JsonOption, MechanismOption
from privselect.cli.output import print_intervals, print_json


def delta(mechanism: MechanismOption, epsilon: EpsilonOption, count: CountOption = None, json: JsonOption = False) -> None:
    """Compute delta at a given epsilon."""
    from privselect.selection.selection import selection_of
    from privselect.text_forms import write_value

    one_trial = mechanism.delta_at(epsilon=epsilon)
    interval = one_trial if count is None else selection_of(mechanism, count).delta_at(epsilon=epsilon)
    if json:
        terms = {"mechanism": str(mechanism), "count": None if count is None else str(count)}
        print_json({"epsilon": epsilon, "delta": interval.as_dict(), **terms, "base_delta": one_trial.as_dict()})
        return
    label = f"delta at epsilon {write_value(epsilon)}"
    print_intervals({label: interval} if count is None else {label: interval, "one trial alone": one_trial})
