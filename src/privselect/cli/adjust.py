"""``privselect adjust``."""

from fractions import Fraction
from typing import Annotated

import typer

from privselect._util.validation import format_value
from privselect.cli.options import AsJson, DeltaText
from privselect.cli.printing import print_json, working
from privselect.cli.reading import read_count, read_delta
from privselect.errors import ParameterError, TextFormError

NoiseTexts = Annotated[str, typer.Option("--noise-multipliers", metavar="S,S,...", help="The candidates' noise levels, such as 2,3,4.")]
RateText = Annotated[str, typer.Option("--sampling-probability", metavar="Q", help="A number in (0, 1], the same for all candidates.")]
LawText = Annotated[str, typer.Option("--count", metavar="C", help="The law of K, the number of trials, such as geometric(mean=300).")]
TotalText = Annotated[str | None, typer.Option("--epsilon", metavar="E", help="What the selection may cost in all.")]
BaseText = Annotated[
    str | None,
    typer.Option("--epsilon-base", metavar="E", help="In place of --epsilon: what one candidate may cost, as in the paper's cor:adjust."),
]
LawTexts = Annotated[
    str | None, typer.Option("--probabilities", metavar="P,P,...", help="How often each is drawn, such as 1/2,1/4,1/4. Without: uniform.")
]
ShareTexts = Annotated[
    str | None, typer.Option("--shares", metavar="W,W,...", help="Parts of delta that the candidates spend, in proportion. Without: equal.")
]


def adjust(
    noise_multipliers: NoiseTexts,
    sampling_probability: RateText,
    count: LawText,
    delta: DeltaText,
    epsilon: TotalText = None,
    epsilon_base: BaseText = None,
    probabilities: LawTexts = None,
    shares: ShareTexts = None,
    json: AsJson = False,
) -> None:
    """How many DP-SGD steps each candidate noise level may take."""
    at = read_delta(delta)
    noise, rate = _numbers("noise_multipliers", noise_multipliers), _number("sampling_probability", sampling_probability)
    total, base = _optional("epsilon", epsilon), _optional("epsilon_base", epsilon_base)
    law, parts = _optional_numbers("probabilities", probabilities), _optional_numbers("shares", shares)

    from privselect.planning.adjust.adjust import adjust as find_steps

    with working("dividing the budget"):
        found = find_steps(
            noise_multipliers=noise,  # type: ignore[arg-type]  # exact numbers are numbers
            sampling_probability=rate,  # type: ignore[arg-type]
            count=read_count(count),  # type: ignore[arg-type]  # it was given
            delta=at,
            epsilon=total,  # type: ignore[arg-type]
            epsilon_base=base,  # type: ignore[arg-type]
            probabilities=law,
            shares=parts,
        )
    if json:
        print_json(found.as_dict())
        return

    from rich.console import Console

    Console().print(found.table())
    print(found.mechanism)


def _optional(name: str, text: str | None) -> Fraction | None:
    return None if text is None else _number(name, text)


def _optional_numbers(name: str, text: str | None) -> tuple[Fraction, ...] | None:
    return None if text is None else _numbers(name, text)


def _numbers(name: str, text: str) -> tuple[Fraction, ...]:
    return tuple(_number(name, part, text, "numbers with commas between them") for part in text.split(","))


def _number(name: str, text: str, whole: str | None = None, wanted: str = "a number") -> Fraction:
    """Exactly as typed; what it may be, others check."""
    from privselect.text_forms import parse_number

    try:
        number = parse_number(text)
    except TextFormError:
        number = None
    if number is None:
        raise ParameterError(f"`{name}` must be {wanted}, got {format_value(text if whole is None else whole)}")
    return number
