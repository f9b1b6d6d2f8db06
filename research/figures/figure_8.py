"""Figure 8: candidates of DP-SGD that differ in their noise, each with the steps that ``cor:adjust`` allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.counts.negative_binomial import Geometric
from privselect.mechanisms import DPSGD
from privselect.open_spec import UNKNOWN
from privselect.planning.adjust.cor_adjust import cor_adjust_steps, thresholds_for_base
from privselect.planning.adjust.mixture import check_candidates
from privselect.planning.plan import plan
from privselect.selection.selection import Selection
from research.figures.picture import Panel, Picture
from research.figures.selection_curves import DELTA, bounds_named, curve, selection_curves

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism
    from research.figures.picture import Curve

NOISE = (2.0, 3.0, 4.0)
SAMPLING = 0.01
EPSILON_BASE = 1.5  # epsilon_Q: the budget of a single candidate
MEAN = 30.0
MEANS = (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
_CANDIDATES = check_candidates(NOISE, SAMPLING, None, None)


def picture(means: Sequence[float] = MEANS) -> Picture:
    """Compute ``cor:adjust``, ``thm:negbin``, ``thm:rdp_negbin`` and the exact bounds for each candidate alone and for the mixture."""
    steps = {mean: allowed_steps(mean) for mean in means}
    bounds = {"adjust": _cor_adjust, **bounds_named("paper", "renyi")}
    panels = []
    for place, noise in enumerate(NOISE):
        alone = [(mean, _selection(_CANDIDATES.candidate(place, steps[mean][place]), mean), DELTA) for mean in means]
        panels.append(Panel(f"noise {noise:g}", "mean", "epsilon", selection_curves(alone, bounds), MEAN))
    drawn = [(mean, _selection(_CANDIDATES.mixture(steps[mean]), mean), DELTA) for mean in means]
    del bounds["renyi"]  # a mixture has no Renyi curve here
    panels.append(Panel("one of the three, drawn at random", "mean", "epsilon", selection_curves(drawn, bounds), MEAN))
    panels.append(Panel("steps of noise 2, 3 and 4, alone and tuned", "mean", "steps", tuple(_step_curves(steps)), MEAN))
    return Picture(8, "DP-SGD, q = 0.01, its noise tuned; a geometric number of trials, delta = 1e-6", tuple(panels), columns=3)


def allowed_steps(mean: float) -> tuple[int, ...]:
    """Return the steps of each candidate by ``cor:adjust``."""
    thresholds = thresholds_for_base(EPSILON_BASE, DELTA, Geometric(mean=mean))
    return tuple(cor_adjust_steps(_CANDIDATES, place, thresholds) for place in range(len(NOISE)))


def _selection(trial: Mechanism, mean: float) -> Selection:
    return Selection(trial, Geometric(mean=mean))


def _cor_adjust(_: Mechanism, count: Count, delta: float) -> float:
    """Return the total epsilon for any candidate that meets the thresholds, and therefore for a mixture of them."""
    return thresholds_for_base(EPSILON_BASE, delta, count).epsilon


def _step_curves(steps: dict[float, tuple[int, ...]]) -> Iterator[Curve]:
    for place, noise in enumerate(NOISE):
        trial = DPSGD(noise_multiplier=noise, sampling_probability=SAMPLING, steps=UNKNOWN)
        alone = plan(trial, epsilon=EPSILON_BASE, delta=DELTA).value
        yield curve("adjust", ((_selection(trial, mean), mean, taken[place]) for mean, taken in steps.items()))
        yield curve("base", ((trial, mean, alone) for mean in steps))
