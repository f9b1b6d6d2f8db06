"""``privselect --version``."""

from typing import Annotated

import typer


def _show(asked: bool) -> None:
    if asked:
        from importlib.metadata import version as installed

        print(f"privselect {installed('privselect')}")
        raise typer.Exit


Asked = Annotated[bool, typer.Option("--version", callback=_show, is_eager=True, help="Show the version and exit.")]


def version(asked: Asked = False) -> None:
    """What may stand before a command."""
