"""Figure 6: DP-SGD with the parameters of Papernot and Steinke."""

from __future__ import annotations

from privselect.counts import Poisson
from privselect.counts.negative_binomial import Geometric
from privselect.mechanisms import DPSGD
from privselect.selection.selection import Selection
from research.figures.picture import Panel, Picture
from research.figures.renyi_alone import renyi_alone
from research.figures.selection_curves import DELTA, bounds_named, over_deltas, over_means

TRAINING = DPSGD(noise_multiplier=1.1, sampling_probability=256 / 60_000, steps=14_063)  # 60 epochs
GEOMETRIC, POISSON = 30.0, 10.0  # mean of K
GEOMETRIC_MEANS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0)
POISSON_MEANS = (1.0, 2.0, 3.0, 5.0, 7.0, 10.0, 15.0, 20.0, 25.0, 30.0)


def picture() -> Picture:
    """Compute ``thm:negbin``, ``thm:rdp_negbin``, ``cor:binomial_to_poisson``, ``thm:rdp_poisson`` and the exact bounds."""
    bounds = bounds_named("paper", "renyi")
    for_poisson = {**bounds, "renyi_alone": renyi_alone}
    panels = (
        Panel("geometric", "mean", "epsilon", over_means(TRAINING, lambda mean: Geometric(mean=mean), GEOMETRIC_MEANS, bounds), GEOMETRIC),
        Panel("Poisson", "mean", "epsilon", over_means(TRAINING, lambda mean: Poisson(mean=mean), POISSON_MEANS, for_poisson), POISSON),
        Panel("geometric, m = 30", "delta", "epsilon", over_deltas(Selection(TRAINING, Geometric(mean=GEOMETRIC)), bounds), DELTA),
        Panel("Poisson, m = 10", "delta", "epsilon", over_deltas(Selection(TRAINING, Poisson(mean=POISSON)), for_poisson), DELTA),
    )
    return Picture(6, "DP-SGD, q = 256/60000, noise 1.1, 14063 steps; above: at delta = 1e-6", panels, columns=2)
