"""Write the tables of the pages and the README from the stored results, between two marks.

``python -m research.experiments.pages FOLDER`` for the root folder of the repository.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.atomic_files import atomic_write
from privselect._util.rounding import format_down, format_up
from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError
from research.csv_io import read_csv
from research.experiments.accuracy import RESULTS
from research.experiments.accuracy_figure import point, series_of
from research.experiments.headline import TABLE
from research.experiments.stage_tables import markdown_table, names_of, stage_tables
from research.experiments.two_stages import RESULTS as STAGE_RESULTS
from research.experiments.two_stages import SINGLE as STAGE_SINGLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    Rows = Sequence[dict[str, str]]

STORED = Path("docs") / "experiments"
PAGES = (Path("README.md"), STORED / "headline.md", STORED / "accuracy.md", STORED / "two_stages.md")
FILES = tuple(STORED / name for name in (TABLE, RESULTS, STAGE_RESULTS, STAGE_SINGLE))
_SHOWN = ("exact", "paper", "renyi", "composition", "free", "best_default", "untuned")
_HEADINGS = ("exact", "paper", "Rényi", "composition", "free (not private)", "best default", "random, untuned")
_MANY = 100.0  # numbers of trials from here on are shown as integers


def tables(folder: Path) -> dict[str, str]:
    """Return every table by the name of its mark."""
    headline, accuracy, stages, single = (read_csv(folder / file) for file in FILES)
    return {
        "headline-noise": noise_table(headline),
        "headline-trials": trials_table(headline),
        "accuracy-public": accuracy_table(accuracy, "public"),
        "accuracy-paid": accuracy_table(accuracy, "paid"),
        "accuracy-gains": gains_table(accuracy),
        "accuracy-laws": laws_table(accuracy),
        **stage_tables(stages, single),
    }


def filled(page: str, made: dict[str, str]) -> str:
    """Return the page with every table it has marks for."""
    for name, table in made.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- end {name} -->"
        before, found, after = page.partition(begin)
        _, ended, rest = after.partition(end)
        if found and not ended:
            raise ParameterError(f"a page must have the mark {end} after {begin.strip()}, got none")
        if found:
            page = f"{before}{begin}{table}\n{end}{rest}"
    return page


def noise_table(rows: Rows) -> str:
    """Return the noise multipliers, and how many times as many trials exact accounting allows at the noise of the other bounds."""
    body = []
    for row in rows:
        noise = [_noise(row[f"{name}_noise"]) for name in ("untuned", "exact", "paper", "renyi", "composition")]
        noise[1] = f"**{noise[1]}**"
        more = [f"{float(row[f'exact_trials_at_{name}_noise']) / float(row['mean']):,.0f} times" for name in ("paper", "renyi")]
        body.append([row["epsilon"], f"{int(row['mean']):,}", *noise, *more])
    heading = ["epsilon", "mean of K", "no tuning", "**exact**", "paper", "Rényi", "composition"]
    return markdown_table([*heading, "trials at the paper's noise", "trials at Rényi's noise"], body)


def trials_table(rows: Rows) -> str:
    """Return the numbers of trials at equal noise, in both directions."""
    names = ("exact_trials_at_paper_noise", "exact_trials_at_renyi_noise", "paper_trials_at_exact_noise", "renyi_trials_at_exact_noise")
    body = [[row["epsilon"], f"{int(row['mean']):,}", *(_trials(row[name]) for name in names)] for row in rows]
    heading = ["epsilon", "mean of K", "exact, at the paper's noise", "exact, at Rényi's noise"]
    return markdown_table([*heading, "paper, at the exact noise", "Rényi, at the exact noise"], body)


def accuracy_table(rows: Rows, validation: str) -> str:
    """Return mean test accuracies in percent, with half the width of their confidence intervals."""
    own = [row for row in rows if row["validation"] == validation]
    body = []
    for setting, epsilon in _places(own):
        cells = [point(own, setting, epsilon, regime) for regime in _SHOWN]
        body.append([*names_of(setting, epsilon), *(f"{100.0 * mean:.1f} ± {50.0 * (high - low):.1f}" for mean, low, high in cells)])
    return markdown_table(["data and model", "records", "epsilon", *_HEADINGS], body)


def gains_table(rows: Rows) -> str:
    """Return the gain of exact accounting in points on the same draws, and the share of untuned candidates that it beats."""
    body = []
    for validation in ("public", "paid"):
        own = [row for row in rows if row["validation"] == validation]
        for setting, epsilon in _places(own):
            found = {row["regime"]: row for row in own if _setting(row) == setting and row["epsilon"] == epsilon}
            share = f"{100.0 * float(found['exact']['beats_untuned']):.0f}%"
            cells = [_gain(found[regime]) for regime in ("paper", "renyi", "composition", "free")]
            body.append([validation, *names_of(setting, epsilon), *cells, share])
    heading = ["validation", "data and model", "records", "epsilon", "over paper", "over Rényi", "over composition", "over free"]
    return markdown_table([*heading, "untuned candidates beaten"], body)


def laws_table(rows: Rows) -> str:
    """Return the best law of K and noise of each regime."""
    own = [row for row in rows if row["validation"] == "public"]
    body = []
    for setting, epsilon in _places(own):
        found = {row["regime"]: row for row in own if _setting(row) == setting and row["epsilon"] == epsilon}
        cells = [
            f"`{found[regime]['count']}`, {_noise(found[regime]['noise_multiplier'])}"
            for regime in ("exact", "paper", "renyi", "composition")
        ]
        body.append([*names_of(setting, epsilon), *cells])
    return markdown_table(["data and model", "records", "epsilon", "exact", "paper", "Rényi", "composition"], body)


def _places(rows: Rows) -> list[tuple[tuple[str, str, str, int], str]]:
    epsilons = sorted({row["epsilon"] for row in rows}, key=float)
    return [((*key, one), epsilon) for key, records in series_of(rows).items() for one in records for epsilon in epsilons]


def _setting(row: dict[str, str]) -> tuple[str, str, str, int]:
    return row["problem"], row["model"], row["space"], int(row["records"])


def _gain(row: dict[str, str]) -> str:
    mean, low, high = (100.0 * float(row[f"exact_gains_{end}"]) for end in ("mean", "low", "high"))
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"


def _noise(text: str) -> str:
    """Format a noise rounded up: a reader may use it."""
    return format_up(float(text), 3) if text else "-"


def _trials(text: str) -> str:
    """Format a number of trials rounded down: never more than allowed."""
    if not text:
        return "-"
    trials = float(text)
    return "none" if trials == 0.0 else format_down(trials, 1) if trials < _MANY else f"{math.floor(trials):,}"


def main(arguments: list[str] | None = None) -> None:
    """Update every page."""
    parser = argparse.ArgumentParser(description="Write the tables of the stored results into the pages.")
    parser.add_argument("folder", help="of the repository")
    folder = Path(parser.parse_args(arguments).folder)
    try:
        for file in (*PAGES, *FILES):
            if not (folder / file).is_file():
                raise ParameterError(f"`folder` must hold {file}, got {format_value(str(folder))}")
        made = tables(folder)
        pages = {page: filled((folder / page).read_text(encoding="utf-8"), made) for page in PAGES}
    except PrivselectError as refusal:
        parser.error(str(refusal))
    for page, text in pages.items():
        atomic_write(folder / page, text.encode())


if __name__ == "__main__":
    main()
