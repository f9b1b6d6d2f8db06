"""Figure 2: selection over a Gaussian mechanism, a geometric number of trials."""

from __future__ import annotations

from privselect.counts.negative_binomial import Geometric
from privselect.mechanisms import Gaussian
from privselect.selection.selection import Selection
from research.figures.picture import Panel, Picture
from research.figures.selection_curves import DELTA, bounds_named, over_deltas

MEANS = (30.0, 300.0, 3000.0)
TRIAL = Gaussian(sigma=4.0)


def picture() -> Picture:
    """Compute ``thm:negbin``, ``thm:rdp_negbin`` and the exact bounds, a panel for each mean."""
    bounds = bounds_named("ratio", "paper", "renyi")
    panels = [
        Panel(f"m = {mean:g}", "delta", "epsilon", over_deltas(Selection(TRIAL, Geometric(mean=mean)), bounds), DELTA) for mean in MEANS
    ]
    return Picture(2, "The best of a geometric number of Gaussian trials, noise 4", tuple(panels), columns=3)
