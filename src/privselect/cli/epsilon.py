"""``privselect epsilon``."""

import math

from privselect.cli.options import AccuracyOption, CountOption, DeltaOption, JsonOption, MechanismOption
from privselect.cli.output import DIGITS, print_intervals, print_json


def epsilon(
    mechanism: MechanismOption, delta: DeltaOption, count: CountOption = None, accuracy: AccuracyOption = None, json: JsonOption = False
) -> None:
    """Compute epsilon at a given delta."""
    from privselect.selection.selection import selection_of
    from privselect.text_forms import write_value

    selection = selection_of(mechanism, count)
    interval = selection.epsilon_at(delta=delta, accuracy=accuracy)
    one_trial = interval if count is None else mechanism.epsilon_at(delta=delta)
    if json:
        terms = {"mechanism": str(mechanism), "count": None if count is None else str(count)}
        gap = selection.selection_gap(delta=delta) if hasattr(selection, "selection_gap") else None
        base = one_trial.as_dict()
        print_json({"delta": delta, "epsilon": interval.as_dict(), **terms, "base_epsilon": base, "selection_gap": gap})
        return
    digits = DIGITS if accuracy is None else max(DIGITS, 1 + math.ceil(-math.log10(accuracy)))
    label = f"epsilon at delta {write_value(delta)}"
    print_intervals({label: interval} if count is None else {label: interval, "one trial alone": one_trial}, digits)
