"""The bounds on a noisy max as people read them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect._util.rounding import format_up
from privselect.errors import MissingExtraError
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from privselect.noisy_max.noisy_max import NoisyMax

MEANINGS = {
    "curve": "the least curve of one round, composed",
    "full_release": "every score a record moves, released",
    "renyi": "Renyi divergences (Zhu, Wang)",
    "paper": "privacy profiles (Koskela et al.)",
    "closed_form": "the paper's closed form, one round",
}


def bounds_table(mechanism: NoisyMax, delta: float, bounds: Mapping[str, float | None]) -> Table:
    """A rich table: each proved bound with its epsilon, its ratio to the least, and its meaning."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
    except ModuleNotFoundError:
        raise MissingExtraError("the table needs rich; install it with: pip install 'privselect[cli]'") from None
    table = Table(title=f"epsilon at delta = {write_value(delta)} of {mechanism}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("bound", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("/ least", justify="right", no_wrap=True)
    table.add_column("meaning")
    least = min((epsilon for epsilon in bounds.values() if epsilon is not None), default=math.inf)
    for name, epsilon in bounds.items():
        shown = "-" if epsilon is None else format_up(epsilon)
        quotient = "" if epsilon is None or not 0.0 < least <= epsilon < math.inf else f"{epsilon / least:.3f}"
        table.add_row(name, shown, quotient, MEANINGS[name], style="bold" if epsilon == least else None)
    return table
