"""Figure 3: how epsilon grows with the number of trials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.counts.negative_binomial import Geometric
from privselect.errors import NotCoveredError
from privselect.mechanisms import Gaussian
from privselect.selection.bounds.paper_bounds import lem_gdp
from research.figures.figure_2 import TRIAL
from research.figures.picture import Panel, Picture
from research.figures.selection_curves import bounds_named, over_means

if TYPE_CHECKING:
    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism

MEANS = (1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 50.0, 100.0, 200.0, 300.0, 500.0, 1000.0, 2000.0, 3000.0, 5000.0, 10000.0)


def picture() -> Picture:
    """Compute ``thm:negbin``, its closed form ``lem:GDP`` (corrected), ``thm:rdp_negbin``, Liu and Talwar's bound, and the exact bounds."""
    bounds = {**bounds_named("ratio", "paper", "renyi", "liu_talwar"), "closed_form": _closed_form}
    panel = Panel("epsilon at delta = 1e-6", "mean", "epsilon", over_means(TRIAL, lambda mean: Geometric(mean=mean), MEANS, bounds))
    return Picture(3, "The best of a geometric number of Gaussian trials, noise 4", (panel,))


def _closed_form(mechanism: Mechanism, count: Count, delta: float) -> float:
    if not isinstance(mechanism, Gaussian):
        raise NotCoveredError(f"lem:GDP is for a Gaussian mechanism, got {mechanism}")
    return lem_gdp(mechanism.sigma, count, delta)
