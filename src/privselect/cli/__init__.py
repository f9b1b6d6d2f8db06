"""The command line, with one file per command.

An error is one line on stderr and exit code 2. Exit code 1 means that the output could not be written, that a run ended without a
release, or that a check failed.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from privselect.cli.output import EXIT_FAILED, EXIT_REFUSED
from privselect.errors import AbortedError, MissingExtraError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

_REPEATABLE = {"--not-covered"}


class UsageError(PrivselectError):
    """The arguments do not fit the command."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``privselect`` with these arguments, by default the arguments of the process, and exit."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(words or ["--help"])
        if sys.stdout is not None:
            sys.stdout.flush()  # here a full disk can still be reported
    except PrivselectError as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        code = EXIT_FAILED if isinstance(error, AbortedError) else EXIT_REFUSED
    except OSError as error:
        if error.filename is not None:  # about another file than the output
            raise
        _discard_output()
        if not isinstance(error, BrokenPipeError):  # the reader, such as head, has closed the pipe
            print("error: the output could not be written:", error.strerror, file=sys.stderr)
        code = EXIT_FAILED
    sys.exit(code)


def _discard_output() -> None:
    """Redirect stdout to nowhere: Python would try to write the rest of the buffer again at exit, and complain."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, sys.stdout.fileno())
    os.close(descriptor)


def _run(words: list[str]) -> int:
    _refuse_repeated(words)
    try:
        import typer
    except ModuleNotFoundError:
        raise MissingExtraError("the command line needs typer and rich; install them with: pip install 'privselect[cli]'") from None
    try:
        return _app()(words, prog_name="privselect", standalone_mode=False) or 0
    except typer.TyperException as error:
        raise _parser_error(error) or UsageError(error.format_message()) from None


def _parser_error(error: typer.TyperException) -> PrivselectError | None:
    """Return the error that the parser of an option raised: its message names the parameter and shows the text."""
    from pydantic import ValidationError  # which Typer needs too

    if not isinstance(error.__cause__, ValidationError):
        return None
    cause = error.__cause__.errors()[0].get("ctx", {}).get("error")
    return cause if isinstance(cause, PrivselectError) else None


def _refuse_repeated(words: list[str]) -> None:
    """Refuse an option that is given twice, of which Typer would silently take the last."""
    options = [word.partition("=")[0] for word in words if word.startswith("--")]
    for option in options:
        if options.count(option) > 1 and option not in _REPEATABLE:
            raise UsageError(f"`{option}` must be given at most once, got it {options.count(option)} times")


def _app() -> typer.Typer:
    import typer

    from privselect.cli.options import global_options

    # Plain help and plain errors: rich takes longer to load than the rest of the command line.
    app = typer.Typer(
        help="Compute the exact privacy cost of releasing only the best of several private trials.",
        epilog="Mechanisms and laws of K are written as gaussian(sigma=4) and geometric(mean=300).",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )

    app.callback()(global_options)
    calculate = ("epsilon", "delta", "compare", "noisy_max")
    budget = ("advise", "plan", "adjust", "design")
    certificates = ("certify", "verify", "sign", "report", "schema")
    # Each command is the function of this name in the module of the same name.
    for name in ("demo", *calculate, *budget, "tune", "audit", *certificates, "serve"):
        app.command()(getattr(import_module(f"privselect.cli.{name}"), name))
    return app
