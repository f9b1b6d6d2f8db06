"""Options that several commands share, and the parsers that turn option texts into values."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from privselect._util.atomic_files import check_output_file
from privselect._util.plotting import check_plot_file
from privselect._util.validation import ACCURACY_RANGE, OPEN_UNIT, REAL, Range, format_value, integer_range
from privselect.errors import ParameterError, TextFormError
from privselect.text_forms import parse, parse_number, parse_parameter

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.planning.plan_file import PlanFile


def parse_mechanism(text: str) -> Any:
    """Parse a mechanism without open parameters."""
    from privselect.planning.stages import read_mechanism

    return _refuse_open(read_mechanism(text))


def parse_count(text: str) -> Any:
    """Parse a law of K without open parameters."""
    from privselect.planning.stages import read_count

    return _refuse_open(read_count(text))


def parse_noise(text: str) -> Any:
    """Parse any text form without open parameters. NoisyMax checks that it is noise."""
    return _refuse_open(parse(text))


def parse_fractions(name: str, text: str, *, several: bool) -> Any:
    """Parse an exact number, or ``several`` of them separated by commas."""
    try:
        numbers = [parse_number(part) for part in (text.split(",") if several else [text])]
    except TextFormError:
        numbers = [None]
    if None in numbers:
        raise ParameterError(f"`{name}` must be {'numbers separated by commas' if several else 'a number'}, got {format_value(text)}")
    return tuple(numbers) if several else numbers[0]


def parse_probability(text: str) -> Any:
    """Parse the probability of a record to be in the sample of the search."""
    from privselect.planning.stages import read_probability

    return read_probability(text)


def read_solved_plan(file: Path) -> PlanFile:
    """Read a plan file without open parameters."""
    from privselect.planning.plan_file import read_plan

    plan = read_plan(file)
    if plan.is_open:
        raise ParameterError(
            f"the plan must not contain a ?: solve for it with `privselect plan {file} --out FILE`, got {format_value(str(file))}"
        )
    return plan


def plan_file_hash(text: str) -> str:
    """Return the hash of the plan in a file."""
    return read_solved_plan(Path(text)).terms().digest()


def _refuse_open(spec: Any) -> Any:
    from privselect.open_spec import OpenSpec

    if isinstance(spec, OpenSpec):
        raise TextFormError(f"only `privselect plan` accepts a ?, got {format_value(spec)}")
    return spec


def option(name: str, metavar: str, help_text: str, parser: Callable[[str], Any] | None = None) -> Any:
    """Make an option, whose text ``parser`` turns into a value."""
    return typer.Option(f"--{name}", metavar=metavar, parser=parser, help=help_text)


def number_option(name: str, metavar: str, allowed: Range, help_text: str) -> Any:
    """Make an option for a number in ``allowed``."""
    parameter = name.replace("-", "_")
    return option(name, metavar, help_text, lambda text: parse_parameter(parameter, str(text), allowed))  # a default is a number


def integer_option(name: str, metavar: str, help_text: str) -> Any:
    """Make an option for an integer of at least 1."""
    return number_option(name, metavar, integer_range(1), help_text)


def output_option(help_text: str, *suffixes: str) -> Any:
    """Make ``--out`` for a file, which is checked before the work begins."""
    return option("out", "FILE", help_text, partial(check_output_file, "out", suffixes=suffixes))


MechanismOption = Annotated[Any, option("mechanism", "M", "The mechanism of one trial, such as gaussian(sigma=4).", parse_mechanism)]
_COUNT = "The law of K, the number of trials, such as geometric(mean=300)."
CountOption = Annotated[Any, option("count", "C", f"{_COUNT} Default: one trial.", parse_count)]
RequiredCount = Annotated[Any, option("count", "C", _COUNT, parse_count)]
FinalOption = Annotated[
    Any, option("final", "M", "The mechanism of one final training with the candidate that the search found.", parse_mechanism)
]
_VISIBLE = "The number of trials of a visible search, which releases all of them, instead of --count."
VisibleOption = Annotated[int | None, number_option("visible", "N", integer_range(1, 10**6), _VISIBLE)]
_SUBSAMPLE = "The probability of each record to be in the one sample that all search trials share, such as 1/10. Default: all records."
SubsampleOption = Annotated[Any, option("subsample", "Q", _SUBSAMPLE, parse_probability)]
_DELTA = number_option("delta", "D", OPEN_UNIT, "The delta of (epsilon, delta)-DP, in (0, 1).")
DeltaOption = Annotated[float, _DELTA]
OptionalDelta = Annotated[float | None, _DELTA]
EpsilonOption = Annotated[float, number_option("epsilon", "E", REAL, "The epsilon of (epsilon, delta)-DP, a real number.")]
AccuracyOption = Annotated[
    float | None,
    number_option(
        "accuracy",
        "A",
        ACCURACY_RANGE,
        "The largest relative difference between the bounds, in [1e-7, 0.1]. An accuracy that cannot be reached is an error.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON. null means an infinite or unproven bound.")]
PlanArgument = Annotated[Path | None, typer.Argument(metavar="PLAN", help="A plan file, instead of the options.", show_default=False)]
PlotOption = Annotated[Path | None, option("plot", "FILE", "Draw the result into a .png, .pdf or .svg file.", check_plot_file)]
KeyOption = Annotated[str | None, option("key", "K", "The public key that must have signed the certificate.")]
AgreedPlan = Annotated[Any, option("plan", "FILE", "The agreed plan file. A certificate of another plan is refused.", plan_file_hash)]


def _show_version(requested: bool) -> None:
    if requested:
        from importlib.metadata import version

        print(f"privselect {version('privselect')}")
        raise typer.Exit


VersionOption = Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")]


def global_options(version: VersionOption = False) -> None:
    """Declare the options that precede the command."""
