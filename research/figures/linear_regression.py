"""Run the paper's experiment on linear regression again, with more methods and a private validation.

``python -m research.figures.linear_regression --data FOLDER --out research/figures/results`` writes the tables that
``python -m research.figures 5`` draws.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.atomic_files import atomic_write, check_output_file
from privselect._util.validation import check_number, integer_range
from privselect.errors import ParameterError
from privselect.regression.noise_source import make_noise_source
from research.csv_io import as_csv
from research.figures.allowed_noise import ACCOUNTINGS, MEAN, TrialNoise, gaussian_mu, trial_noise
from research.figures.data_sets import load
from research.figures.single_fits import corrected_ada_ssp, corrected_ops_balanced
from research.figures.split_problem import split_problem
from research.figures.tuned_regression import RIDGES, Draws, Winner, draw_trials, fitted_posteriors, perturbed_outputs, winners

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from research.csv_io import Row
    from research.figures.split_problem import Problem

DELTA = 1e-6
EPSILONS = tuple(0.02 * 500.0 ** (step / 15.0) for step in range(15))
DATA_SETS = ("bike", "elevators_data", "protein", "power_plant")
REPETITIONS = 20
SEED = 600
VALIDATIONS = ("unpaid", "paid")
RESULTS, NOISE = "linear_regression.csv", "linear_regression_noise.csv"
STORED = Path(__file__).parent / "results"  # stored results of both tables


@dataclass(frozen=True, slots=True)
class Allowed:
    """What every method may leak at one epsilon."""

    epsilon: float
    trials: dict[str, TrialNoise]
    output_mu: float


def allowed_at(epsilon: float) -> Allowed:
    """Return the noise that each accounting allows for OPS-PTR; output perturbation uses exact accounting."""
    return Allowed(epsilon, {name: trial_noise(name, epsilon, DELTA) for name in ACCOUNTINGS}, gaussian_mu("ours", epsilon, DELTA))


def noise_rows(allowed: Iterable[Allowed]) -> list[Row]:
    """Return one row for each epsilon and accounting."""
    return [
        {
            "epsilon": one.epsilon,
            "accounting": name,
            "mu": noise.mu,
            "target_delta": noise.delta,
            "failure": noise.failure,
            "score_mu": noise.score_mu,
        }
        for one in allowed
        for name, noise in one.trials.items()
    ]


def data_set_rows(name: str, folder: str, allowed: Sequence[Allowed], repetitions: int) -> list[Row]:
    """Return one row for each method, validation and epsilon.

    All random numbers of a repetition (the split, K, the candidates, every normal) are drawn once, so methods and accountings use the
    same draws.
    """
    records, problems = load(name, folder), []
    for repetition in range(repetitions):
        generator = np.random.Generator(np.random.PCG64DXSM([SEED, DATA_SETS.index(name), repetition]))
        problem = split_problem(records, generator)
        problems.append((problem, draw_trials(len(problem.values), MEAN, generator)))
    found: list[Row] = []
    for one in allowed:
        found += [{"data_set": name, **row} for row in _epsilon_rows(problems, one)]
    return found


def _epsilon_rows(problems: Sequence[tuple[Problem, Draws]], allowed: Allowed) -> list[Row]:
    rows: list[Row] = []
    ours: dict[str, list[Winner]] = {}
    for accounting, noise in allowed.trials.items():
        runs = [winners(problem, fitted_posteriors(problem, noise, draws), draws, noise.score_mu) for problem, draws in problems]
        for validation in VALIDATIONS:
            chosen = [run[validation] for run in runs]
            rows.append(_row(("ops_ptr", accounting, validation), allowed.epsilon, chosen, ours.setdefault(validation, chosen)))
    runs = [winners(problem, perturbed_outputs(problem, allowed.output_mu, draws), draws, allowed.output_mu) for problem, draws in problems]
    for validation in VALIDATIONS:
        chosen = [run[validation] for run in runs]
        rows.append(_row(("output_perturbation", "ours", validation), allowed.epsilon, chosen, ours[validation]))
    for method, fit in (("ada_ssp", corrected_ada_ssp), ("ops_balanced", corrected_ops_balanced)):
        chosen = []
        for place, (problem, _) in enumerate(problems):
            coefficients = problem.vectors.T @ fit(problem.training, allowed.epsilon, DELTA, make_noise_source(SEED + place))
            chosen.append(Winner(problem.test_error(coefficients), np.nan, np.nan, np.nan))
        rows.append(_row((method, "none", "none"), allowed.epsilon, chosen, ours["paid"]))
    rows.append(_row(("non_private", "none", "unpaid"), allowed.epsilon, [_non_private(problem) for problem, _ in problems], ours["paid"]))
    trivial = [Winner(problem.test_error(np.zeros_like(problem.moment)), np.nan, np.nan, np.nan) for problem, _ in problems]
    rows.append(_row(("trivial", "none", "none"), allowed.epsilon, trivial, ours["paid"]))
    return rows


def _non_private(problem: Problem) -> Winner:
    """Fit ridge regression with the ridge of the same grid that is best on the validation part."""
    solutions = problem.solutions(RIDGES)
    best = int(np.argmin(problem.validation_errors(solutions)))
    return Winner(problem.test_error(solutions[best]), float(RIDGES[best]), np.nan, np.nan)


def _row(names: tuple[str, str, str], epsilon: float, chosen: Sequence[Winner], ours: Sequence[Winner]) -> Row:
    errors = np.array([one.test_error for one in chosen])
    more = errors - [one.test_error for one in ours]
    precision = np.array([one.precision for one in chosen])
    ridge = np.array([one.ridge for one in chosen])
    return {
        "method": names[0],
        "accounting": names[1],
        "validation": names[2],
        "epsilon": epsilon,
        "test_mse_mean": float(errors.mean()),
        "test_mse_std": float(errors.std(ddof=1)),
        "more_than_ours_mean": float(more.mean()),
        "more_than_ours_error": float(more.std(ddof=1) / np.sqrt(len(more))),
        "precision": _middle(precision),
        "ridge": _middle(ridge),
        "answered": float(np.mean([one.answered for one in chosen])),
        "repetitions": len(errors),
    }


def _middle(values: np.typing.NDArray[np.float64]) -> float:
    """Return the geometric mean of the finite positive values."""
    known = values[np.isfinite(values) & (values > 0.0)]
    return float(np.exp(np.log(known).mean())) if len(known) else np.nan


def main(arguments: list[str] | None = None) -> None:
    """Run the experiment and write its tables."""
    parser = argparse.ArgumentParser(description="Run the paper's experiment on linear regression again.")
    parser.add_argument("--data", required=True, help="folder with uci/*.csv")
    parser.add_argument("--out", required=True, help=f"folder for {RESULTS} and {NOISE}")
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    try:
        run(given.data, Path(given.out), given.repetitions, given.jobs)
    except ParameterError as refusal:
        parser.error(str(refusal))


def run(folder: str, out: Path, repetitions: int, jobs: int) -> None:
    """Measure on the data in one folder and write the tables to another."""
    check_number("repetitions", repetitions, integer_range(2, 10_000))
    check_number("jobs", jobs, integer_range(1, 64))
    results, noise = check_output_file("out", out / RESULTS), check_output_file("out", out / NOISE)
    check_data(folder)
    allowed, rows = measure(folder, repetitions, jobs)
    atomic_write(noise, as_csv(noise_rows(allowed)))
    atomic_write(results, as_csv(rows))


def check_data(folder: str) -> None:
    """Raise if a data set is missing, before the work starts."""
    for name in DATA_SETS:
        load(name, folder)


def measure(folder: str, repetitions: int, jobs: int) -> tuple[list[Allowed], list[Row]]:
    """Return the allowed noise, and one row for each data set, method, validation and epsilon. Takes minutes."""
    with ProcessPoolExecutor(jobs) as pool:
        allowed = list(pool.map(allowed_at, EPSILONS))
        tables = pool.map(partial(data_set_rows, folder=folder, allowed=allowed, repetitions=repetitions), DATA_SETS)
        rows: list[Row] = []
        for name, table in zip(DATA_SETS, tables, strict=True):
            rows += table
            print(f"{name}: {len(table)} rows", file=sys.stderr)
    return allowed, rows


if __name__ == "__main__":
    main()
