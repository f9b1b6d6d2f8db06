"""``privselect report``."""

from pathlib import Path
from typing import Annotated

import typer

from privselect.cli.printing import working
from privselect.cli.reading import read_promise
from privselect.cli.verify import AgreedPlan, Key

Source = Annotated[
    Path, typer.Argument(metavar="RUN_OR_CERTIFICATE", help="The folder of a release, or a certificate.", show_default=False)
]
Out = Annotated[
    Path | None,
    typer.Option("--out", metavar="FILE", help="The page. Without it: report.html in the folder, or the certificate's name with .html."),
]

_REFUSED = 1


def report(source: Source, out: Out = None, plan: AgreedPlan = None, key: Key = None) -> None:
    """Verify a certificate and write a page about it for people: exit code 0 if its claim holds, 1 if not, and the page says so."""
    from privselect.report import write_report

    agreed = None if plan is None else read_promise(plan).digest()
    with working("computing the claim again"):
        written = write_report(source, out, promise_digest=agreed, key=key)
    print(written.verdict.line)
    print(f"report written to {written.file}")
    if not written.verdict.holds:
        raise typer.Exit(_REFUSED)
