"""Write and read CSV files of numbers."""

from __future__ import annotations

import csv
import io
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    Row = dict[str, object]


def as_csv(rows: Sequence[Row]) -> bytes:
    """Return the rows as CSV, floats with seven digits; a value that is not finite is empty."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({key: _written(value) for key, value in row.items()})
    return text.getvalue().encode()


def read_csv(file: Path) -> list[dict[str, str]]:
    """Read the rows; every value is text."""
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _written(value: object) -> object:
    if not isinstance(value, float):
        return value
    return f"{value:.7g}" if math.isfinite(value) else ""
