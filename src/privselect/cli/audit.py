"""``privselect audit``."""

from typing import Annotated

import typer

from privselect.cli.options import AsJson
from privselect.cli.printing import print_json, working

Selections = Annotated[int, typer.Option("--selections", metavar="N", help="How many selections to make in all.")]
FaultName = Annotated[
    str | None,
    typer.Option(
        "--fault",
        metavar="F",
        help="Audit a runner that is wrong on purpose: redrawn, capped, deadline or without-replacement. It must be rejected.",
    ),
]

_REJECTED = 1


def audit(selections: Selections = 30_000, fault: FaultName = None, json: AsJson = False) -> None:
    """Run the worst case through the tuner and compare what it leaks with the exact bound: exit code 0 if they agree, 1 if not.

    Every trial here is synthetic, drawn from a known law and no user's data: nothing that is shown is secret.
    """
    from privselect.audit.report import audit as run

    with working("making selections"):
        report = run(selections, fault=fault)
    if json:
        print_json(report.as_dict())
    else:
        from rich.console import Console

        Console().print(report.table())
        print(*report.lines, sep="\n")
    if not report.passed:
        raise typer.Exit(_REJECTED)
