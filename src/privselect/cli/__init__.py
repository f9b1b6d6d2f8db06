"""The command line: one file per command.

Every refusal is one line on stderr and exit code 2; an answer that cannot be written is one too, and exit code 1, as is a run that
ended without a release.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from privselect.errors import AbortedError, MissingExtraError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import typer

_UNWRITTEN, _ABORTED, _REFUSED = 1, 1, 2
_REPEATABLE = {"--not-covered"}


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``privselect`` on these arguments, by default those of the process, and exit."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = _run(given or ["--help"])
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be told
    except PrivselectError as error:
        print("error:", " ".join(str(error).split()), file=sys.stderr)
        code = _ABORTED if isinstance(error, AbortedError) else _REFUSED
    except OSError as error:
        if error.filename is not None:  # about some file, not about the output
            raise
        _discard_output()
        if not isinstance(error, BrokenPipeError):  # a reader that has seen enough, such as head, wants to hear no more
            print("error: the answer could not be written:", error.strerror, file=sys.stderr)
        code = _UNWRITTEN
    sys.exit(code)


def _discard_output() -> None:
    """What is left in the buffer goes nowhere: Python would try to write it once more at the end, and complain."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _run(arguments: list[str]) -> int:
    _refuse_repeated(arguments)
    try:
        import typer
    except ModuleNotFoundError:
        raise MissingExtraError("the command line needs typer and rich; install them with: pip install 'privselect[cli]'") from None
    try:
        return _app()(arguments, prog_name="privselect", standalone_mode=False) or 0
    except typer.TyperException as error:
        raise UsageError(error.format_message()) from None


def _refuse_repeated(arguments: list[str]) -> None:
    """The last of two deltas would be taken in silence."""
    options = [word.partition("=")[0] for word in arguments if word.startswith("--")]
    for option in options:
        if options.count(option) > 1 and option not in _REPEATABLE:
            raise UsageError(f"`{option}` must be given at most once, got it {options.count(option)} times")


def _app() -> typer.Typer:
    import typer

    from privselect.cli.adjust import adjust
    from privselect.cli.audit import audit
    from privselect.cli.certify import certify
    from privselect.cli.compare import compare
    from privselect.cli.delta import delta
    from privselect.cli.demo import demo
    from privselect.cli.design import design
    from privselect.cli.epsilon import epsilon
    from privselect.cli.noisy_max import noisy_max
    from privselect.cli.plan import plan
    from privselect.cli.report import report
    from privselect.cli.schema import schema
    from privselect.cli.serve import serve
    from privselect.cli.sign import sign
    from privselect.cli.tune import tune
    from privselect.cli.verify import verify
    from privselect.cli.version import version

    # Plain help and plain errors: rich takes longer to load than all the rest of the command line.
    app = typer.Typer(
        help="The exact price of releasing only the winner of several private trials.",
        epilog="Mechanisms and laws of K are written like gaussian(sigma=4) and geometric(mean=300).",
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(version)
    for command in (
        demo,
        epsilon,
        delta,
        compare,
        noisy_max,
        plan,
        tune,
        audit,
        adjust,
        certify,
        verify,
        report,
        sign,
        schema,
        design,
        serve,
    ):
        app.command()(command)
    return app


class UsageError(PrivselectError):
    """The arguments do not fit the command."""
