"""Run the published protocol for private regressions again: ten-fold cross-validation at delta 1e-6 (bike and elevators).

``python -m research.figures.published_protocol --data FOLDER --out docs/experiments``
"""

from __future__ import annotations

import argparse
import csv
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.atomic_files import atomic_write, check_output_file
from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.regression.noise_source import make_noise_source
from research.csv_io import as_csv
from research.figures.cross_validation import fold_errors
from research.figures.data_sets import Records, load
from research.figures.published_regression import published_ada_ssp, published_ops_balanced
from research.figures.single_fits import corrected_ada_ssp, corrected_ops_balanced

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from privselect.regression.noise_source import NoiseSource
    from privselect.regression.sufficient_statistics import SufficientStatistics

    Floats = NDArray[np.float64]
    Method = Callable[[SufficientStatistics, float, float, NoiseSource], Floats]

DELTA = 1e-6
EPSILONS = (0.1, 1.0, 5.0)
DATA_SETS = ("bike", "elevators")
REPEATS = 40
SEED = 8
FAR = 4.0  # in deviations of the mean of a cross-validation
STORED = "published_wang2018_exp_results.csv"
FILE = "published_protocol.csv"


@dataclass(frozen=True, slots=True)
class Errors:
    """Mean squared errors of repeated ten-fold cross-validations.

    ``deviation`` is the deviation over the ten folds of one cross-validation, as in the stored results. ``of_mean`` is the deviation
    of the mean between cross-validations, which includes what the folds of one have in common.
    """

    mean: float
    deviation: float
    of_mean: float


def published_non_private(statistics: SufficientStatistics, epsilon: float, delta: float, normals: NoiseSource) -> Floats:  # noqa: ARG001 - one form for all
    """Fit least squares with 1 added to the diagonal, as the stored "non-private" does."""
    return statistics.ridge_solution(1.0)


def published_trivial(statistics: SufficientStatistics, epsilon: float, delta: float, normals: NoiseSource) -> Floats:  # noqa: ARG001 - as above
    """Predict 0 for every record."""
    return np.zeros(statistics.features)


METHODS: dict[str, tuple[Method, Method | None]] = {
    "trivial": (published_trivial, None),
    "non-private": (published_non_private, None),
    "AdaSSP": (published_ada_ssp, corrected_ada_ssp),
    "OPS-balanced": (published_ops_balanced, corrected_ops_balanced),
}


def repeated_errors(records: Records, method: Method, epsilon: float, repeats: int = REPEATS) -> Errors:
    """Run cross-validations with folds and noise from a fixed seed."""
    generator, normals = np.random.Generator(np.random.PCG64DXSM(SEED)), make_noise_source(SEED)
    runs = np.array([fold_errors(records, lambda training: method(training, epsilon, DELTA, normals), generator) for _ in range(repeats)])
    return Errors(float(runs.mean()), float(runs.std(axis=1, ddof=1).mean()), float(runs.mean(axis=1).std(ddof=1)))


def within_noise(published: float, ours: Errors, repeats: int = REPEATS) -> bool:
    """Return whether the published mean is plausible as one of our cross-validations.

    The published mean is one draw of what we draw ``repeats`` times: it must lie within ``FAR`` deviations of our mean, which is known
    up to a factor 1/sqrt(``repeats``). With equal distributions, one comparison fails with probability about 3e-4 (Student's t with 39
    degrees of freedom at 4). A millionth of the mean is added for the stored digits, when only the folds are random.
    """
    return abs(published - ours.mean) <= FAR * ours.of_mean * math.sqrt(1.0 + 1.0 / repeats) + 3e-6 * published


def stored_results(folder: str | Path) -> dict[tuple[str, str, float], tuple[float, float]]:
    """Return the stored means and deviations over the folds, by data set, method and epsilon."""
    file = Path(folder) / STORED
    if not file.is_file():
        raise ParameterError(f"`folder` must hold {STORED}, got {format_value(str(folder))}")
    with file.open(newline="", encoding="utf-8") as lines:
        return {
            (row["dataset"], row["method"], float(row["eps"])): (float(row["cv10_mse_mean"]), float(row["cv10_mse_std"]))
            for row in csv.DictReader(lines)
        }


def protocol_rows(folder: str | Path, repeats: int = REPEATS) -> list[dict[str, object]]:
    """Return one row for each data set, method and epsilon: stored, the published variant run again, and the corrected one."""
    stored = stored_results(folder)
    found: list[dict[str, object]] = []
    for data_set in DATA_SETS:
        records = load(data_set, folder)
        for name, (published, corrected) in METHODS.items():
            for epsilon in EPSILONS:
                mean, deviation = stored[data_set, name, epsilon]
                again = repeated_errors(records, published, epsilon, repeats)
                better = None if corrected is None else repeated_errors(records, corrected, epsilon, repeats)
                found.append(
                    {
                        "data_set": data_set,
                        "method": name,
                        "epsilon": epsilon,
                        "stored_mean": mean,
                        "stored_std": deviation,
                        "published_variant_mean": again.mean,
                        "published_variant_std": again.deviation,
                        "published_variant_std_of_mean": again.of_mean,
                        "within_noise": within_noise(mean, again, repeats),
                        "corrected_mean": "" if better is None else better.mean,
                        "corrected_std": "" if better is None else better.deviation,
                        "corrected_std_of_mean": "" if better is None else better.of_mean,
                    }
                )
    return found


def main(arguments: list[str] | None = None) -> None:
    """Run the protocol and write the table."""
    parser = argparse.ArgumentParser(description="The published protocol for private regressions, run again.")
    parser.add_argument("--data", required=True, help=f"folder with uci/*.csv and {STORED}")
    parser.add_argument("--out", required=True, help=f"folder for {FILE}")
    given = parser.parse_args(arguments)
    try:
        target = check_output_file("out", Path(given.out) / FILE)
        atomic_write(target, as_csv(protocol_rows(given.data)))
    except ParameterError as refusal:
        parser.error(str(refusal))


if __name__ == "__main__":
    main()
