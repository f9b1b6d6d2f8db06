"""The options that commands share: name, placeholder and help, each said once."""

from pathlib import Path
from typing import Annotated

import typer

_MECHANISM = typer.Option("--mechanism", metavar="M", help="What one trial leaks, such as gaussian(sigma=4).")
MechanismText = Annotated[str, _MECHANISM]
OptionalMechanism = Annotated[str | None, _MECHANISM]
CountText = Annotated[
    str | None,
    typer.Option("--count", metavar="C", help="The law of K, the number of trials, such as geometric(mean=300). Without it: one trial."),
]
_DELTA = typer.Option("--delta", metavar="D", help="A number in (0, 1).")
DeltaText = Annotated[str, _DELTA]
OptionalDelta = Annotated[str | None, _DELTA]
PlanFile = Annotated[Path | None, typer.Argument(metavar="PLAN", help="A plan file, in place of the options.", show_default=False)]
AccuracyText = Annotated[
    str | None,
    typer.Option("--accuracy", metavar="A", help="How far the two ends may be apart, relative; refused where it cannot be reached."),
]
EpsilonText = Annotated[str, typer.Option("--epsilon", metavar="E", help="A real number.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; null is an end that is infinite, or a lower end that is not proved.")]
