"""``privselect report``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect.cli.options import AgreedPlan, KeyOption, option
from privselect.cli.output import EXIT_FAILED, spinner

SourceArgument = Annotated[
    Path, typer.Argument(metavar="RUN_OR_CERTIFICATE", help="A release folder or a certificate file.", show_default=False)
]
_OUT = "The HTML file. Default: report.html in the folder, or the name of the certificate with .html."
OutOption = Annotated[Path | None, option("out", "FILE", _OUT)]


def report(source: SourceArgument, out: OutOption = None, plan: AgreedPlan = None, key: KeyOption = None) -> None:
    """Verify a certificate and write its report. Exit code 0 means that the claim holds, 1 that it is refused."""
    from privselect.report import write_report

    with spinner("recomputing the claim"):
        written = write_report(source, out, plan_hash=plan, key=key)
    print(written.verification.summary)
    print(f"report written to {written.file}")
    if not written.verification.holds:
        raise typer.Exit(EXIT_FAILED)
