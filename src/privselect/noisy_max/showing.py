"""The bounds on a noisy max as people read them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect.digits import shown_up
from privselect.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from privselect.noisy_max.noisy_max import NoisyMax

MEANINGS = {
    "paper": "m times the profile of one score (Koskela, Redberg, Wang)",
    "renyi": "Renyi divergences (Zhu, Wang)",
    "full_release": "another mechanism: every noisy score released",
}


def bounds_table(mechanism: NoisyMax, delta: float, bounds: Mapping[str, float]) -> Table:
    """A rich table: each proved bound with its epsilon, its ratio to the least, and its meaning."""
    try:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
    except ModuleNotFoundError:
        raise MissingExtraError("the table needs rich; install it with: pip install 'privselect[cli]'") from None
    table = Table(title=f"epsilon at delta = {delta:g} of {mechanism}", title_justify="left", box=SIMPLE_HEAD)
    table.add_column("bound", no_wrap=True)
    table.add_column("epsilon", justify="right", no_wrap=True)
    table.add_column("/ least", justify="right", no_wrap=True)
    table.add_column("meaning")
    least = min(bounds.values())
    for name, epsilon in bounds.items():
        quotient = f"{epsilon / least:.3f}" if math.isfinite(epsilon) and least > 0.0 else ""
        table.add_row(name, shown_up(epsilon), quotient, MEANINGS.get(name, ""), style="bold" if epsilon == least else None)
    return table
