"""``privselect adjust``."""

from functools import partial
from typing import Annotated, Any

from privselect.cli.options import DeltaOption, JsonOption, parse_count, parse_fraction, parse_fractions, text_option
from privselect.cli.output import print_json, print_table, spinner


def _option(name: str, metavar: str, help_text: str, *, several: bool = False) -> Any:
    parser = parse_fractions if several else parse_fraction
    return text_option(name, metavar, partial(parser, name.replace("-", "_")), help_text)


NoiseOption = Annotated[
    Any, _option("noise-multipliers", "S,S,...", "The noise multiplier of each candidate, such as 2,3,4.", several=True)
]
RateOption = Annotated[Any, _option("sampling-probability", "Q", "The sampling probability of every candidate, in (0, 1].")]
LawOption = Annotated[Any, text_option("count", "C", parse_count, "The law of K, the number of trials, such as geometric(mean=300).")]
TotalOption = Annotated[Any, _option("epsilon", "E", "The budget of the whole selection.")]
BaseOption = Annotated[
    Any, _option("epsilon-base", "E", "The budget of one candidate, as in cor:adjust of the paper, instead of --epsilon.")
]
ProbabilitiesOption = Annotated[
    Any,
    _option("probabilities", "P,P,...", "The probability of each candidate, such as 1/2,1/4,1/4. Default: uniform.", several=True),
]
SharesOption = Annotated[
    Any, _option("shares", "W,W,...", "The relative share of delta that each candidate spends. Default: equal.", several=True)
]


def adjust(
    noise_multipliers: NoiseOption,
    sampling_probability: RateOption,
    count: LawOption,
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
