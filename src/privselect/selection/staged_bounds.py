"""Other bounds on a search followed by a final training: the paper's, Papernot and Steinke's, and the release of all trials."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.safe_search import LARGEST_EPSILON
from privselect.counts import Binomial, Poisson
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError
from privselect.mechanisms import Curve
from privselect.mechanisms.renyi import lem_rdp_to_dp_epsilon
from privselect.pairs.compose import ACCURACY
from privselect.pairs.from_profile import place_knots
from privselect.selection.bounds.paper_bounds import cor_binomial_to_poisson, thm_hs_bin, thm_negbin
from privselect.selection.bounds.renyi_bounds import privacy_profile_of, renyi_curve_of, selection_renyi_curve
from privselect.selection.compare import composition_runs, require_composable

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from privselect.counts.base import Count
    from privselect.selection.two_stages import Stages

    Floats = NDArray[np.float64]
    Profile = Callable[[Floats], Floats]

_KNOT_FALL, _FAR_KNOT_FALL = 0.1, 2.0  # of log delta between the knots of the paper's profile
_SMALLEST_DELTA = 1e-60  # the profile ends here; larger losses count as infinite
_PAPER_PROFILES: dict[type[Count], Callable[[Profile, Count, ArrayLike], Floats]] = {
    TruncatedNegativeBinomial: thm_negbin,
    Binomial: thm_hs_bin,
    Poisson: cor_binomial_to_poisson,
}


def staged_paper_bound(stages: Stages, delta: float, accuracy: float = ACCURACY) -> float:
    """Return epsilon with the paper's profile for the search: sampled, and composed with the final training numerically."""
    count = _law_of_secret_search(stages)
    if count.cap is not None:
        raise NotCoveredError("the paper has no bound for a capped law of K")
    bound = next((bound for family, bound in _PAPER_PROFILES.items() if isinstance(count, family)), None)
    if bound is None:
        raise NotCoveredError(f"the paper has no bound for {count.text_name} K")

    def epsilon(profile: Profile) -> float:
        search = _curve(lambda epsilons: bound(profile, count, epsilons))
        whole = dataclasses.replace(stages, mechanism=search, count=None).whole
        return float(whole.epsilon_fast(delta, accuracy=accuracy).upper)

    return max(epsilon(privacy_profile_of(case, accuracy)) for case in stages.mechanism.cases)


def staged_renyi_bound(stages: Stages, delta: float, accuracy: float = ACCURACY) -> float:
    """Return epsilon by Renyi divergences: those of the search and of the final training add up; converted by lem:rdp_to_dp."""
    if stages.count is not None:
        selection_renyi_curve(stages.mechanism, stages.count, accuracy)  # raises for a law of K without a bound
    return max(lem_rdp_to_dp_epsilon(renyi_curve_of(case, accuracy), delta) for case in stages.whole.cases)


def staged_composition_bound(stages: Stages, delta: float, accuracy: float = ACCURACY) -> float:
    """Return epsilon of ``ceil(E K)`` trials and the final training, every output released: another mechanism, not a bound."""
    runs = composition_runs(_law_of_secret_search(stages))
    require_composable(stages.mechanism, runs)
    return float(dataclasses.replace(stages, count=None, visible=runs).whole.epsilon_fast(delta, accuracy=accuracy).upper)


STAGED_BOUNDS: dict[str, Callable[[Stages, float], float]] = {
    "paper": staged_paper_bound,
    "renyi": staged_renyi_bound,
    "composition": staged_composition_bound,
}


def _law_of_secret_search(stages: Stages) -> Count:
    if stages.count is None:
        raise NotCoveredError("only for a secret search")
    return stages.count


def _curve(profile: Profile) -> Curve:
    """Return a mechanism with this profile in both orders of the neighbours."""

    def cut(epsilons: Floats) -> Floats:
        return np.where((found := profile(epsilons)) > _SMALLEST_DELTA, found, 0.0)

    end = 1.0
    while end < LARGEST_EPSILON and cut(np.array([end]))[0] > 0.0:
        end *= 2.0
    knots = place_knots(cut, min(end, LARGEST_EPSILON), _KNOT_FALL, _FAR_KNOT_FALL)
    deltas = profile(knots)
    return Curve(tuple(zip(knots.tolist(), deltas.tolist(), deltas.tolist(), strict=True)))
