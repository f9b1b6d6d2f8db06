"""Figure 4: a binomial number of trials, and its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privselect.counts import Binomial, Poisson
from privselect.mechanisms import Gaussian
from privselect.selection.selection import Selection
from research.figures.picture import Curve, Panel, Picture, Point
from research.figures.renyi_alone import renyi_alone
from research.figures.selection_curves import DELTA, bounds_named, over_deltas

if TYPE_CHECKING:
    from privselect.counts.base import Count

TRIAL = Gaussian(sigma=4.0)
MEAN = 10.0
LAWS: dict[str, Count] = {
    **{f"n = {n}": Binomial(n=n, p=MEAN / n) for n in (12, 20, 40, 100)},
    "Poisson": Poisson(mean=MEAN),
}
_LONGEST = 30


def picture() -> Picture:
    """Compute ``thm:hs_bin`` and the exact bounds for each n, ``thm:rdp_poisson`` in every panel, and the laws of K."""
    poisson = over_deltas(Selection(TRIAL, LAWS["Poisson"]), {**bounds_named("paper", "renyi"), "renyi_alone": renyi_alone})
    baseline = tuple(one for one in poisson if one.bound.startswith("renyi"))
    panels = []
    for name, law in LAWS.items():
        of_law = poisson if law == LAWS["Poisson"] else over_deltas(Selection(TRIAL, law), bounds_named("paper")) + baseline
        panels.append(Panel(f"{name}, m = 10", "delta", "epsilon", of_law, DELTA))
    laws = Panel("laws of K, m = 10", "k", "probability", tuple(_distribution(name, law) for name, law in LAWS.items()))
    title = "The best of a binomial number of Gaussian trials, noise 4 (Rényi: of a Poisson number)"
    return Picture(4, title, (*panels, laws), columns=3)


def _distribution(name: str, law: Count) -> Curve:
    k = np.arange(_LONGEST + 1)
    below = np.minimum(np.cumsum(np.exp(law.log_pmf(k))), 1.0)
    return Curve("distribution", tuple(Point(str(law), float(one), float(chance)) for one, chance in zip(k, below, strict=True)), name)
