"""The tables of the page on two stages, from the stored results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect._util.rounding import format_up
from research.experiments.accuracy_figure import PROBLEMS
from research.experiments.settings import EPSILONS
from research.experiments.stage_bank import VALIDATIONS
from research.experiments.stage_summary import LABELS, averages, findings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from research.experiments.stage_summary import Averages

    Rows = Sequence[dict[str, str]]

_OPTIONS = ("two_stages_0", "two_stages_50", "two_stages_90", "visible_tpe_defaults")
_OTHERS = ("one_shot", "free", "mean_default", "best_default")
_SHORT = ("one_shot", "two_stages_0", "two_stages_50", "two_stages_90", "visible_tpe_defaults", "free", "mean_default", "best_default")
_TUNED = [name for name in LABELS if name.startswith(("two_stages", "visible"))]


def stage_tables(rows: Rows, single: Rows) -> dict[str, str]:
    """Return every table by the name of its mark."""
    return {
        "two-stages-findings": findings_table(single),
        "two-stages-averages": averages_table(single),
        "two-stages-short": short_table(single),
        **{f"two-stages-{validation}": stage_accuracy_table(rows, validation) for validation in VALIDATIONS},
        "two-stages-ahead": ahead_table(rows),
        "two-stages-options": options_table(rows),
    }


def findings_table(single: Rows) -> str:
    """Return what was demanded at epsilon 1 with public validation, and what came out."""
    body = []
    for one in findings(single):
        digits, unit = (0, "%") if one.unit == "share" else (2, " points")
        mean, low, high = (f"{100.0 * value:.{digits}f}" for value in (one.mean, one.low, one.high))
        found = f"{mean}{unit} ({low} to {high})"
        body.append([one.text, one.demanded or "-", found, "-" if one.met is None else "yes" if one.met else "**no**"])
    return markdown_table(["average of all settings at epsilon 1, public validation", "demanded", "found", "met"], body)


def averages_table(single: Rows) -> str:
    """Return the average accuracy over the settings of every regime, in percent."""
    groups = [(validation, epsilon) for validation in VALIDATIONS for epsilon in EPSILONS]
    found = [averages(single, *group) for group in groups]
    counts = [f"{len(one.settings)} settings, {one.mean('one_shot').size} repetitions" if one is not None else "-" for one in found]
    heading = ["regime", *(f"{validation} validation, epsilon {epsilon:g}" for validation, epsilon in groups)]
    return markdown_table(heading, [*_average_lines(list(LABELS), found, digits=2), ["average over", *counts]])


def short_table(single: Rows) -> str:
    """Return the averages with public validation of the regimes that a first reader asks for."""
    found = [averages(single, "public", epsilon) for epsilon in EPSILONS]
    return markdown_table(["way to tune", *(f"epsilon {epsilon:g}" for epsilon in EPSILONS)], _average_lines(_SHORT, found, digits=1))


def _average_lines(names: Sequence[str], found: Sequence[Averages | None], digits: int) -> list[list[str]]:
    return [
        [_bold(name, LABELS[name])]
        + [f"{100.0 * one.mean(name).mean():.{digits}f}" if one is not None and name in one.values else "-" for one in found]
        for name in names
    ]


def stage_accuracy_table(rows: Rows, validation: str) -> str:
    """Return mean test accuracies in percent, with half the width of their confidence intervals."""
    body = []
    for names, own in _comparisons(rows, validation):
        cells = []
        for name in LABELS:
            mean, low, high = (100.0 * float(own[name][f"accuracy_{end}"]) if name in own else 0.0 for end in ("mean", "low", "high"))
            cells.append(f"{mean:.1f} ± {0.5 * (high - low):.1f}" if name in own else "-")
        body.append([*names, *cells])
    return markdown_table(["data and model", "records", "epsilon", *LABELS.values()], body)


def ahead_table(rows: Rows) -> str:
    """Return in how many comparisons each regime is ahead of each reference, and in how many its whole interval is."""
    body = []
    for name in (one for one in _TUNED if any(row["regime"] == one for row in rows)):
        own = [row for row in rows if row["regime"] == name]
        cells = []
        for other in _OTHERS:
            ahead, clear, behind = (
                sum(sign * float(row[f"over_{other}_{end}"]) > 0.0 for row in own)
                for end, sign in (("mean", 1.0), ("low", 1.0), ("high", -1.0))
            )
            cells.append(f"{ahead} ({clear} clearly; {behind} clearly behind)")
        body.append([_bold(name, LABELS[name]), str(len(own)), *cells])
    return markdown_table(["regime", "comparisons", *(f"ahead of: {LABELS[other]}" for other in _OTHERS)], body)


def options_table(rows: Rows) -> str:
    """Return the best trials and split of each regime for public validation, with the noise of both stages."""
    body = []
    for names, own in _comparisons(rows, "public"):
        cells = []
        for name in _OPTIONS:
            row = own.get(name)
            noises = "" if row is None else f"{format_up(float(row['search_noise']), 3)}, {format_up(float(row['final_noise']), 3)}"
            cells.append("-" if row is None else f"`{row['trials']}`, {noises}")
        body.append([*names, *cells])
    return markdown_table(["data and model", "records", "epsilon", *(LABELS[name] for name in _OPTIONS)], body)


def markdown_table(heading: list[str], body: list[list[str]]) -> str:
    """Return a table in Markdown."""
    lines = [heading, ["---"] * len(heading), *body]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def names_of(setting: tuple[str, str, str, int], epsilon: str) -> list[str]:
    """Return the first cells of a line on one setting, given by problem, model, space and records."""
    problem, model, space, records = setting
    return [f"{PROBLEMS[problem]}, {model}" + (", hard space" if space == "hard" else ""), f"{records:,}", epsilon]


def _comparisons(rows: Rows, validation: str) -> list[tuple[list[str], dict[str, dict[str, str]]]]:
    """Return the names of each setting and epsilon, and its rows by regime."""
    found: dict[tuple[tuple[str, str, str, int], str], dict[str, dict[str, str]]] = {}
    for row in rows:
        if row["validation"] == validation:
            setting = (row["problem"], row["model"], row["space"], int(row["records"]))
            found.setdefault((setting, row["epsilon"]), {})[row["regime"]] = row
    return [(names_of(*key), own) for key, own in found.items()]


def _bold(name: str, label: str) -> str:
    return f"**{label}**" if name.startswith("two_stages") else label
