"""The headline: how much noise each way of accounting asks for, and how many trials the same noise carries. It needs no data.

Trials are DP-SGD with q = 1024/60000 and 600 steps, K is geometric, delta is 1e-5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.counts import Geometric
from privselect.errors import PrivselectError
from privselect.experiments.settings import DELTA, open_training, training, untuned_noise
from privselect.planning.plan import plan
from privselect.sketch import UNKNOWN

if TYPE_CHECKING:
    from privselect.paper.tables import Row

EPSILONS = (1.0, 3.0, 8.0)
MEANS = (10, 30, 100, 1000)
OTHERS = ("paper", "renyi", "composition")
NOT_ANY = "none"  # not one trial


def headline_rows() -> list[Row]:
    """One row for each epsilon and mean number of trials."""
    return [headline_row(epsilon, mean) for epsilon in EPSILONS for mean in MEANS]


def headline_row(epsilon: float, mean: int) -> Row:
    """The noise that each accounting needs for so many trials, and trials at equal noise.

    ``exact_trials_at_paper_noise`` is how many trials in the mean the exact price allows with the noise that the paper's bound asks for;
    ``paper_trials_at_exact_noise`` is the other way round, 0 where not even one trial is allowed.
    """
    found = plan(open_training(), Geometric(mean=mean), epsilon=epsilon, delta=DELTA)
    noise = {"untuned": untuned_noise(epsilon), "exact": float(found.value or 0.0), **found.instead}
    row: Row = {"epsilon": epsilon, "mean": mean, **{f"{name}_noise": value for name, value in noise.items()}}
    for name in ("paper", "renyi"):
        row[f"exact_trials_at_{name}_noise"] = _trials(noise[name], epsilon, "exact")
    row.update({f"{name}_trials_at_exact_noise": _trials(noise["exact"], epsilon, name) for name in ("paper", "renyi")})
    return row


def _trials(noise: float | None, epsilon: float, accounting: str) -> float | None:
    """The mean number of trials that one accounting allows at this noise."""
    if noise is None:
        return None
    try:
        found = plan(training(noise), Geometric(mean=UNKNOWN), epsilon=epsilon, delta=DELTA)
    except PrivselectError:
        return 0.0
    return found.value if accounting == "exact" else found.instead[accounting]
