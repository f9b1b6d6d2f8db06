"""Compute the headline: the noise each accounting requires and the number of trials the same noise allows. It needs no data.

Trials are DP-SGD with q = 1024/60000 and 600 steps, K is geometric, delta is 1e-5.

``python -m research.experiments.headline --out docs/experiments``
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.atomic_files import atomic_write, check_output_file
from privselect._util.plotting import check_plot_file
from privselect._util.validation import check_number, integer_range
from privselect.counts import Geometric
from privselect.errors import PrivselectError
from privselect.open_spec import UNKNOWN
from privselect.planning.plan import plan
from privselect.planning.search import InfeasibleError
from research.csv_io import as_csv
from research.experiments.banks import tell
from research.experiments.headline_figure import draw
from research.experiments.settings import DELTA, open_training, training, untuned_noise

if TYPE_CHECKING:
    from research.csv_io import Row

EPSILONS = (1.0, 3.0, 8.0)
MEANS = (10, 30, 100, 1000)
TABLE, PICTURE = "headline.csv", "headline.png"


def headline_row(epsilon: float, mean: int) -> Row:
    """Return the noise that each accounting requires for this mean, and the trials allowed at equal noise.

    ``exact_trials_at_paper_noise`` is the mean number of trials that exact accounting allows at the noise the paper's bound requires.
    ``paper_trials_at_exact_noise`` is the reverse; 0 means not even one trial is allowed.
    """
    found = plan(open_training(), Geometric(mean=mean), epsilon=epsilon, delta=DELTA)
    noise = {"untuned": untuned_noise(epsilon), "exact": found.value, **found.baselines}
    row: Row = {"epsilon": epsilon, "mean": mean, **{f"{name}_noise": value for name, value in noise.items()}}
    for name in ("paper", "renyi"):
        row[f"exact_trials_at_{name}_noise"] = _trials(noise[name], epsilon, "exact")
    row.update({f"{name}_trials_at_exact_noise": _trials(noise["exact"], epsilon, name) for name in ("paper", "renyi")})
    return row


def _trials(noise: float | None, epsilon: float, accounting: str) -> float | None:
    """Return the mean number of trials that one accounting allows at this noise."""
    if noise is None:
        return None
    try:
        found = plan(training(noise), Geometric(mean=UNKNOWN), epsilon=epsilon, delta=DELTA)
    except InfeasibleError:
        return 0.0
    # A looser bound has a limit whenever the exact bound has one. If it returns no number, it does not allow even one trial.
    return found.value if accounting == "exact" else found.baselines[accounting] or 0.0


def run(out: Path, jobs: int) -> None:
    """Compute the table and the figure and write both to a folder."""
    check_number("jobs", jobs, integer_range(1, 64))
    table, picture = check_output_file("out", out / TABLE), check_plot_file(out / PICTURE)
    asked = [(epsilon, mean) for epsilon in EPSILONS for mean in MEANS]
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(headline_row, *one) for one in asked]
        for place, _ in enumerate(as_completed(waiting), 1):
            tell(f"headline: {place} of {len(waiting)}")
        rows = [future.result() for future in waiting]
    atomic_write(table, as_csv(rows))
    draw(table, picture)


def main(arguments: list[str] | None = None) -> None:
    """Run the computation and write the table and the figure."""
    parser = argparse.ArgumentParser(description="Noise and trials that a budget allows, by each way of accounting.")
    parser.add_argument("--out", required=True, help=f"folder for {TABLE} and {PICTURE}")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    given = parser.parse_args(arguments)
    try:
        run(Path(given.out), given.jobs)
    except PrivselectError as refusal:
        parser.error(str(refusal))


if __name__ == "__main__":
    main()
