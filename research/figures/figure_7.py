"""Figure 7: DP-SGD with the parameters of De et al., and how many models a budget allows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.counts.negative_binomial import Geometric
from privselect.mechanisms import DPSGD
from privselect.open_spec import UNKNOWN
from privselect.planning.plan import plan
from privselect.selection.selection import Selection
from research.figures.picture import Panel, Picture
from research.figures.selection_curves import DELTA, bounds_named, curve, over_deltas, over_means

if TYPE_CHECKING:
    from research.figures.picture import Curve

TRAINING = DPSGD(noise_multiplier=21.1, sampling_probability=16_384 / 50_000, steps=250)
MEAN = 300.0
MEANS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10000.0)
BUDGET = 2.755  # epsilon of the paper's bound for MEAN trials
BUDGETS = (1.5, 1.75, 2.0, 2.25, 2.5, BUDGET, 3.0)


def picture() -> Picture:
    """Compute epsilon over the mean, delta against epsilon, and the mean that a budget allows, by three bounds."""
    bounds = bounds_named("paper", "renyi")
    panels = (
        Panel("delta = 1e-6", "mean", "epsilon", over_means(TRAINING, lambda mean: Geometric(mean=mean), MEANS, bounds), MEAN),
        Panel("m = 300", "delta", "epsilon", over_deltas(Selection(TRAINING, Geometric(mean=MEAN)), bounds), DELTA),
        Panel("models allowed, delta = 1e-6", "epsilon", "mean", _allowed(), BUDGET),
    )
    return Picture(7, "DP-SGD, q = 16384/50000, noise 21.1, 250 steps; a geometric number of models", panels, columns=3)


def _allowed() -> tuple[Curve, ...]:
    """Return the largest mean of K within each budget, by each bound."""
    law = Geometric(mean=UNKNOWN)
    plans = {budget: plan(TRAINING, law, epsilon=budget, delta=DELTA) for budget in BUDGETS}
    asked = Selection(TRAINING, law)
    return (
        curve("exact_upper", ((asked, budget, found.value) for budget, found in plans.items())),
        *(curve(name, ((asked, budget, found.baselines[name]) for budget, found in plans.items())) for name in ("paper", "renyi")),
    )
