"""``privselect advise``."""

from typing import Annotated

import typer

from privselect._util.validation import POSITIVE, integer_range
from privselect.cli.options import DeltaOption, JsonOption, number_option, option
from privselect.cli.output import print_json, spinner

_MECHANISM = "The training whose model is released, with an open noise, such as dpsgd(noise_multiplier=?, ...)."
TrainingOption = Annotated[str, option("mechanism", "M", _MECHANISM)]
_SEARCH = "One search trial, with an open noise. Default: for dpsgd a tenth of the steps, otherwise the same mechanism."
SearchOption = Annotated[str | None, option("search", "M", _SEARCH)]
BudgetOption = Annotated[float, number_option("epsilon", "E", POSITIVE, "The budget of the whole release, above 0.")]
_DEFAULTS = "The number of settings that are known to be good from public knowledge. Default: 0."
DefaultsOption = Annotated[int, number_option("defaults", "N", integer_range(0, 1000), _DEFAULTS)]
_INTERACTIVE = "A person or a sampler such as TPE chooses each candidate after seeing earlier results."
InteractiveOption = Annotated[bool, typer.Option("--interactive", help=_INTERACTIVE)]
_PRIVATE_SCORE = "A trial is scored by a noisy count on held-out private records."
PrivateScoreOption = Annotated[bool, typer.Option("--private-score", help=_PRIVATE_SCORE)]


def advise(
    mechanism: TrainingOption,
    epsilon: BudgetOption,
    delta: DeltaOption,
    search: SearchOption = None,
    defaults: DefaultsOption = 0,
    interactive: InteractiveOption = False,
    private_score: PrivateScoreOption = False,
    json: JsonOption = False,
) -> None:
    """Compare the noise of every way to tune, and recommend one.

    The advice uses public knowledge alone: the mechanism, the budget and these options.
    """
    from privselect.planning.advice import advise as find_advice

    with spinner("comparing"):
        advice = find_advice(
            mechanism,
            epsilon=epsilon,
            delta=delta,
            search=search,
            defaults=defaults,
            interactive=interactive,
            private_score=private_score,
        )
    if json:
        print_json(advice.as_dict())
        return
    print(advice.summary())
