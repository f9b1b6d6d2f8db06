"""``make bench``: speed, memory and tightness in one run; ratios within the run are what counts."""

from __future__ import annotations

import dataclasses
import json
import math
from importlib.metadata import version
from pathlib import Path

from composition import composition_lines
from figures import figure_lines
from memory import memory_lines
from rich.console import Console
from rich.table import Table
from speed import dpsgd_lines, gaussian_lines
from startup import startup_lines
from tightness import cases
from tuner import tuner_lines
from two_stages import two_stage_lines

from noisy_max import noisy_max_lines
from planning import planning_lines
from regression import regression_lines
from web import web_lines

REPORT = Path("build") / "bench.json"


def main() -> None:
    console = Console(width=132)
    lines = [
        *gaussian_lines(),
        *dpsgd_lines(),
        *composition_lines(),
        *planning_lines(),
        *two_stage_lines(),
        *memory_lines(),
        *startup_lines(),
        *tuner_lines(),
        *noisy_max_lines(),
        *regression_lines(),
        *figure_lines(),
        *web_lines(),
    ]
    console.print(
        _table(
            f"speed and memory, against dp-accounting {version('dp-accounting')}",
            ("what", "measured", "limit", ""),
            [line.cells() for line in lines],
            right=(1, 2),
        )
    )
    found = cases()
    columns = ("mechanism", "law of K", "delta", "epsilon", "gap", "RDP / it", "paper / it", "")
    console.print(_table(f"tightness, {len(found)} cases", columns, [case.cells() for case in found], right=(2, 3, 4, 5, 6)))
    console.print("gap: upper/lower - 1; with * of the selection step alone, both ends on the same discrete pair")
    missed = sum(line.missed for line in lines) + sum(case.missed for case in found)
    console.print(f"{missed} MISSED" if missed else "every limit met")
    REPORT.parent.mkdir(exist_ok=True)
    report = {
        "dp_accounting": version("dp-accounting"),
        "lines": [line.as_dict() for line in lines],
        "tightness": [_plain(case) for case in found],
        "missed": missed,
    }
    REPORT.write_text(json.dumps(report, indent=2, allow_nan=False) + "\n")
    console.print(f"written to {REPORT}")


def _table(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], right: tuple[int, ...]) -> Table:
    table = Table(title=title, title_justify="left")
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place in right else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row, style="bold red" if row[-1] == "MISSED" else None)
    return table


def _plain(case: object) -> dict[str, object]:
    """For JSON, which has neither infinity nor nan."""
    values = dataclasses.asdict(case)  # type: ignore[call-overload]
    values["missed"] = case.missed  # type: ignore[attr-defined]
    return {key: None if isinstance(value, float) and not math.isfinite(value) else value for key, value in values.items()}


if __name__ == "__main__":
    main()
