"""Tables for the terminal, drawn by rich in one style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from rich.table import Table


def rich_table(  # noqa: PLR0913 - a table has as many parts
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str | None = None,
    caption: str | None = None,
    right: Collection[str] = (),
    wrap: Collection[str] = (),
    bold: int | None = None,
) -> Table:
    """Build a rich table with one column per heading.

    ``right`` names the right-aligned columns and ``wrap`` the columns that may break lines. ``bold`` is the index of a bold row.
    """
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
    except ModuleNotFoundError:
        raise MissingExtraError("tables need rich; install it with: pip install 'privselect[cli]'") from None
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left", box=SIMPLE_HEAD)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left", no_wrap=heading not in wrap)
    for index, cells in enumerate(rows):
        table.add_row(*cells, style="bold" if index == bold else None)
    return table
