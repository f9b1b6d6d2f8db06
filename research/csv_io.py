"""Rows of numbers as the text of a CSV file, and back."""

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
    """Numbers to seven digits; empty where there is none."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow({key: _written(value) for key, value in row.items()})
    return text.getvalue().encode()


def read_csv(file: Path) -> list[dict[str, str]]:
    """The rows, all as text."""
    with file.open(newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def _written(value: object) -> object:
    if not isinstance(value, float):
        return value
    return f"{value:.7g}" if math.isfinite(value) else ""
