"""Curves of the bounds over the number of trials or over delta, as data."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from privselect._util.plotting import BOUND_STYLES
from privselect._util.rounding import finite_or_none
from privselect._util.validation import OPEN_UNIT, check_number, integer_range
from privselect.counts import Binomial, Fixed, Poisson
from privselect.counts.base import LARGEST_COUNT
from privselect.counts.negative_binomial import TruncatedNegativeBinomial
from privselect.errors import NotCoveredError, ParameterError
from privselect.pairs.compose import ACCURACY
from privselect.selection.compare import BOUNDS
from privselect.selection.staged_bounds import STAGED_BOUNDS
from privselect.selection.two_stages import Stages, stages_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from privselect.counts.base import Count
    from privselect.mechanisms import Mechanism

    Bound = Callable[[Mechanism, Count, float], float]
    StagedBound = Callable[[Stages, float], float]
    Curves = dict[str, list[float | None]]

AXES = ("mean", "delta")
_POINTS = 13
_SMALLEST_DELTA = 1e-15
_FAR_ABOVE = 3.0  # composition is computed until it exceeds every other bound by this factor
_BELOW_COMPOSITION = ("exact_upper", "ratio", "paper", "renyi", "liu_talwar")

_PLOTTED = {name: bound for name, bound in BOUNDS.items() if name in BOUND_STYLES}  # not pointwise, which coincides with exact


def comparison_curves(  # noqa: PLR0913 - the last two are for interactive use
    mechanism: Mechanism | Stages,
    *,
    delta: float,
    over: str,
    points: int = _POINTS,
    accuracy: float = ACCURACY,
    bounds: Mapping[str, Bound] | None = None,
) -> Curves:
    """Compute epsilon by every bound along one axis: equally long lists, with None if a bound is infinite or missing.

    The mechanism is a selection, or a search with a final training. ``over="mean"`` keeps the family of the law of K and varies E K at
    this delta; for a visible search it varies the number of trials. ``over="delta"`` varies delta. The keys are the axis (``mean`` or
    ``delta``), ``base`` (one trial alone), ``final`` (the final training alone), ``exact_lower``, ``exact_upper`` and the names of the
    other bounds except pointwise, which coincides with exact. Over the mean, composition stops where it is far above every other bound.
    ``accuracy`` applies to the exact bound and to the parts alone. ``bounds`` are the other bounds of a selection to compute.
    """
    at, size = check_number("delta", delta, OPEN_UNIT), int(check_number("points", points, integer_range(2, 1000)))
    stages = mechanism if isinstance(mechanism, Stages) else stages_of(mechanism)
    if check_axis(stages, over) == "mean":
        places = with_other_trials(stages, size)
        asked = [(place, other, at) for place, other in places]
    else:
        asked = [(each, stages, each) for each in deltas_around(at, size)]
    computed = staged_bounds(stages, bounds)
    curves: Curves = {over: [], **{name: [] for name in ("base", "final", "exact_lower", "exact_upper", *(bounds or _PLOTTED))}}
    for place, each, each_delta in asked:
        skipped = {"composition"} if over == "mean" and _composition_is_far_above(curves) else set()
        found = epsilons_at(each, each_delta, {name: bound for name, bound in computed.items() if name not in skipped}, accuracy)
        for name, curve in curves.items():
            curve.append(place if name == over else found.get(name))
    return curves


def epsilons_at(stages: Stages, delta: float, bounds: Mapping[str, StagedBound], accuracy: float = ACCURACY) -> dict[str, float | None]:
    """Return epsilon at delta: the exact bounds of everything that is released, each part alone, and each of ``bounds``.

    ``base`` is one trial alone, on the sample if there is one, ``final`` the final training alone. None: infinite, missing or not covered.
    """
    alone = stages.one_trial.epsilon_fast(delta, accuracy=accuracy).upper
    if stages.whole == stages.one_trial:
        return {"base": finite_or_none(alone)}
    exact = stages.whole.epsilon_fast(delta, accuracy=accuracy)
    found = {"base": alone, "exact_lower": exact.lower, "exact_upper": exact.upper}
    found["final"] = None if stages.final is None else stages.final.epsilon_fast(delta, accuracy=accuracy).upper
    for name, bound in bounds.items():
        try:
            found[name] = bound(stages, delta)
        except NotCoveredError:
            found[name] = None
    return {name: finite_or_none(None if value is None else float(value)) for name, value in found.items()}


def staged_bounds(stages: Stages, bounds: Mapping[str, Bound] | None = None) -> Mapping[str, StagedBound]:
    """Return the other bounds on these stages; ``bounds`` are those of a selection alone."""
    if not stages.is_selection:
        return STAGED_BOUNDS

    def of_selection(bound: Bound) -> StagedBound:
        return lambda stages, delta: bound(stages.mechanism, stages.count, delta)  # type: ignore[arg-type]  # a selection has a law of K

    return {name: of_selection(bound) for name, bound in (_PLOTTED if bounds is None else bounds).items()}


# -- axes --------------------------------------------------------------------------------------------------------------------


def check_axis(mechanism: Mechanism | Stages, over: str | None) -> str:
    """Return the axis to plot over: by default the mean if the number of trials can be varied, else delta."""
    stages = mechanism if isinstance(mechanism, Stages) else stages_of(mechanism)
    varies = stages.visible is not None or has_variable_mean(stages.count)
    if over is None:
        return "mean" if varies else "delta"
    if over not in AXES:
        raise ParameterError(f"`over` must be one of {', '.join(AXES)}, got {over!r}")
    if over == "mean" and not varies:
        reason = "no law of K is given" if stages.count is None else f"a {stages.count.text_name} law of K has no mean to vary"
        raise ParameterError(f"`over` must be delta, got 'mean': {reason}")
    return over


def has_variable_mean(count: Count | None) -> bool:
    """Return whether a law of K belongs to a family with a mean that can be varied."""
    return isinstance(count, (TruncatedNegativeBinomial, Poisson, Binomial, Fixed))


def with_other_trials(stages: Stages, size: int = _POINTS) -> list[tuple[float, Stages]]:
    """Return the same stages with other numbers of trials, and the expected number of each; none if it cannot be varied."""
    if stages.visible is not None:
        return [(float(trials), replace(stages, visible=trials)) for trials in _integers_around(stages.visible, size)]
    if not has_variable_mean(stages.count):
        return []
    return [(count.expected(), replace(stages, count=count)) for count in _counts_along_mean(stages.count, size)]


def deltas_around(delta: float, size: int = _POINTS) -> list[float]:
    """Return deltas from about four decades below to four decades above the given one, which is included."""
    low, high = max(delta * 1e-4, _SMALLEST_DELTA), min(delta * 1e4, 0.1)
    low, high = min(low, delta), max(high, delta)
    deltas = np.geomspace(low, high, size)
    deltas[np.argmin(np.abs(np.log(deltas / delta)))] = delta
    return [float(each) for each in deltas]


def _counts_along_mean(count: Count | None, size: int) -> list[Count]:
    """Return laws of K of the same family with means from about 1 to ten times the given mean, including the given one."""
    if isinstance(count, Binomial):
        return [dataclasses.replace(count, n=n) for n in _integers_around(count.n, size)]
    if isinstance(count, Fixed):
        return [dataclasses.replace(count, k=k, cap=None) for k in _integers_around(count.k, size)]
    if isinstance(count, Poisson):
        return [dataclasses.replace(count, mean=mean) for mean in _means_around(min(1.0, 0.1 * count.mean), count.mean, size)]
    return _negative_binomials_along_mean(count, size)


def _negative_binomials_along_mean(count: Any, size: int) -> list[Count]:
    # A law of K given by gamma has a mean too, which defines the others.
    middle = float(count.mean or dataclasses.replace(count, cap=None).expected())
    counts: list[Count] = []
    for mean in _means_around(1.0, middle, size):
        try:
            counts.append(dataclasses.replace(count, mean=mean, gamma=None))
        except ParameterError:  # near eta = -1, or far above its cap, the mean cannot reach ten times the given one
            break
    return counts


def _means_around(low: float, middle: float, size: int) -> list[float]:
    """Return means from ``low`` to ten times ``middle``, equally spaced in the logarithm and including ``middle``."""
    means = np.geomspace(low, min(10.0 * middle, float(LARGEST_COUNT)), size)
    means[np.argmin(np.abs(np.log(means / middle)))] = middle
    means[0] = low
    return sorted({float(mean) for mean in means})


def _integers_around(middle: int, size: int) -> list[int]:
    """Return integers around ``middle``, about equally spaced in the logarithm."""
    return sorted({round(mean) for mean in _means_around(1.0, float(middle), size)})


def _composition_is_far_above(curves: Curves) -> bool:
    """Return whether composition was last far above every other bound; with more runs it only grows."""
    composition = curves.get("composition")
    if not composition:
        return False
    last = len(composition) - 1
    others = [curves[name][last] for name in _BELOW_COMPOSITION if name in curves]
    return composition[-1] is None or composition[-1] > _FAR_ABOVE * max([value for value in others if value is not None], default=math.inf)
