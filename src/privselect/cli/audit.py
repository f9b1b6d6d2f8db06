"""``privselect audit``."""

from typing import Annotated

import typer

from privselect.cli.options import JsonOption, option
from privselect.cli.output import EXIT_FAILED, print_json, print_table, spinner

SelectionsOption = Annotated[int, option("selections", "N", "The total number of selections, at least 10,000.")]
_FAULT = "Audit a deliberately broken runner, which must be rejected: redrawn, capped, deadline, reused-noise or without-replacement."
FaultOption = Annotated[str | None, option("fault", "F", _FAULT)]


def audit(selections: SelectionsOption = 30_000, fault: FaultOption = None, json: JsonOption = False) -> None:
    """Audit the tuner against the exact bound.

    The audit measures the privacy loss of the tuner in the worst case. Exit code 0 means agreement with the exact bound, 1 disagreement.
    Every trial is synthetic and uses no private data, so the output contains no secrets.
    """
    from privselect.audit.report import audit as run_audit

    with spinner("running selections"):
        report = run_audit(selections, fault=fault)
    if json:
        print_json(report.as_dict())
    else:
        print_table(report.table())
        print(*report.lines, sep="\n")
    if not report.passed:
        raise typer.Exit(EXIT_FAILED)
