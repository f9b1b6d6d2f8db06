"""The command line: one file per command; every refusal is one line on stderr and exit code 2."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NoReturn

from privselect.errors import MissingExtraError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

_REFUSED = 2


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``privselect`` on these arguments, by default those of the process, and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        sys.exit(_run(given or ["--help"]))
    except PrivselectError as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        sys.exit(_REFUSED)


def _run(arguments: list[str]) -> int:
    try:
        import typer
    except ModuleNotFoundError:
        raise MissingExtraError("the command line needs typer and rich; install them with: pip install 'privselect[cli]'") from None
    try:
        return _app()(arguments, prog_name="privselect", standalone_mode=False) or 0
    except typer.TyperException as error:
        raise UsageError(error.format_message()) from None


def _app() -> typer.Typer:
    import typer

    from privselect.cli.compare import compare
    from privselect.cli.delta import delta
    from privselect.cli.epsilon import epsilon

    # Plain help and plain errors: rich takes longer to load than all the rest of the command line.
    app = typer.Typer(
        help="The exact price of releasing only the winner of several private trials.",
        epilog="Mechanisms and laws of K are written like gaussian(sigma=4) and geometric(mean=300).",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for command in (epsilon, delta, compare):
        app.command()(command)
    return app


class UsageError(PrivselectError):
    """The arguments do not fit the command."""
