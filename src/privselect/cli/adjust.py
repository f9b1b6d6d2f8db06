"""``privselect adjust``."""

from functools import partial
from typing import Annotated, Any

from privselect.cli.options import DeltaOption, JsonOption, RequiredCount, option, parse_fractions
from privselect.cli.output import print_json, print_table, spinner


def _numbers(name: str, metavar: str, help_text: str) -> Any:
    """Make an option for an exact number, or for several if ``metavar`` has commas."""
    return option(name, metavar, help_text, partial(parse_fractions, name.replace("-", "_"), several="," in metavar))


NoiseOption = Annotated[Any, _numbers("noise-multipliers", "S,S,...", "The noise multiplier of each candidate, such as 2,3,4.")]
RateOption = Annotated[Any, _numbers("sampling-probability", "Q", "The sampling probability of every candidate, in (0, 1].")]
TotalOption = Annotated[Any, _numbers("epsilon", "E", "The budget of the whole selection.")]
_BASE = "The budget of one candidate, as in cor:adjust of the paper, instead of --epsilon."
BaseOption = Annotated[Any, _numbers("epsilon-base", "E", _BASE)]
_PROBABILITIES = "The probability of each candidate, such as 1/2,1/4,1/4. Default: uniform."
ProbabilitiesOption = Annotated[Any, _numbers("probabilities", "P,P,...", _PROBABILITIES)]
SharesOption = Annotated[Any, _numbers("shares", "W,W,...", "The relative share of delta that each candidate spends. Default: equal.")]


def adjust(
    noise_multipliers: NoiseOption,
    sampling_probability: RateOption,
    count: RequiredCount,
    delta: DeltaOption,
    epsilon: TotalOption = None,
    epsilon_base: BaseOption = None,
    probabilities: ProbabilitiesOption = None,
    shares: SharesOption = None,
    json: JsonOption = False,
) -> None:
    """Compute DP-SGD steps for each noise level. All candidates together meet the budget of the selection."""
    from privselect.planning.adjust.adjust import adjust as compute_steps

    with spinner("computing the steps"):
        adjustment = compute_steps(
            noise_multipliers=noise_multipliers,
            sampling_probability=sampling_probability,
            count=count,
            delta=delta,
            epsilon=epsilon,
            epsilon_base=epsilon_base,
            probabilities=probabilities,
            shares=shares,
        )
    if json:
        print_json(adjustment.as_dict())
        return
    print_table(adjustment.table())
    print(adjustment.mechanism)
