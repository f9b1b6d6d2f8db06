"""The figures' numbers as they are committed, and ways to ask for one of them."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from research.figures.figures import MEASURED, NUMBERS

FOLDER = Path(__file__).parents[3] / "docs" / "figures"
COMPUTED = tuple(number for number in NUMBERS if number != MEASURED)


class Entry(NamedTuple):
    panel: str
    mechanism: str
    bound: str
    place: str
    at: float
    quantity: str
    value: float


def entries_in(lines):
    rows = csv.DictReader(lines)
    return [
        Entry(row["panel"], row["mechanism"], row["bound"], row["place"], float(row["at"]), row["quantity"], float(row["value"]))
        for row in rows
    ]


@cache
def committed(number):
    return entries_in((FOLDER / f"figure_{number}.csv").read_text().splitlines())


def value(number, panel, bound, at):
    (found,) = {entry.value for entry in committed(number) if (entry.panel, entry.bound, entry.at) == (panel, bound, at)}
    return found
