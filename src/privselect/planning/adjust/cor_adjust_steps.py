"""``cor:adjust``: the greatest number of steps with which a candidate keeps both thresholds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from privselect.errors import NotCoveredError
from privselect.mechanisms.base import MOST_RUNS
from privselect.planning.adjust.step_search import LOG_DELTA, Steps
from privselect.planning.adjust.thresholds import gaussian_mu

if TYPE_CHECKING:
    from privselect.planning.adjust.dpsgd_candidates import Candidates
    from privselect.planning.adjust.thresholds import Thresholds


def paper_steps(candidates: Candidates, place: int, thresholds: Thresholds) -> int:
    """T at which the profile, from above, is below both points, and is not at T + 1.

    The true profile rises with T. What is proved of it wavers by about 1e-3, relative, so a few steps more might also be proved.
    """
    epsilons, deltas = (np.array(column) for column in zip(*thresholds.points, strict=True))

    def excess(steps: int) -> float:
        proved = np.asarray(candidates.candidate(place, steps).delta_at(epsilons).upper)
        with np.errstate(divide="ignore"):
            excess = float(np.log(proved / deltas).max())
        # The comparison itself decides: a logarithm may round to 0 what is above.
        return max(excess, math.ulp(0.0)) if (proved > deltas).any() else min(excess, 0.0)

    first = candidates.usual_steps(place, gaussian_mu(thresholds.epsilon_hat, thresholds.delta_hat))
    low, high = Steps(excess, first, LOG_DELTA).around(0.0)
    noise = candidates.noise_multipliers[place]
    if low == 0:
        raise NotCoveredError(f"even with steps = 1, noise multiplier {noise:g} exceeds the thresholds of cor:adjust")
    if high > MOST_RUNS:
        raise NotCoveredError(f"even with steps = {MOST_RUNS}, noise multiplier {noise:g} keeps the thresholds of cor:adjust")
    return low
