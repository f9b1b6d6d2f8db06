"""Issue a certificate."""

from __future__ import annotations

import math
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, check_number, format_value
from privselect.certificates.certificate import FORMAT_VERSION, Certificate, format_time
from privselect.certificates.model import (
    BoundValue,
    Composition,
    Declared,
    EpsilonInterval,
    OtherBounds,
    PlanTerms,
    TotalEpsilon,
    Versions,
    compose_runs,
)
from privselect.certificates.profile import fit_gdp, profile_points
from privselect.certificates.statement import Costs, derived_fields
from privselect.errors import ParameterError
from privselect.interval import Interval
from privselect.mechanisms.base import check_accuracy
from privselect.selection.compare import compare

if TYPE_CHECKING:
    from fractions import Fraction

    from privselect.certificates.model import RunMetadata
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.compare import Comparison

_LAST_SECOND = 253_402_300_799  # of the year 9999


def certify(  # noqa: PLR0913 - the parts of a plan
    mechanism: Mechanism | str,
    count: Count | str | None = None,
    *,
    final: Mechanism | str | None = None,
    visible: int | None = None,
    subsample: Fraction | float | str | None = None,
    delta: float,
    epsilon: float | None = None,
    declared: Declared | None = None,
    accuracy: float | None = None,
    run: RunMetadata | None = None,
) -> Certificate:
    """Issue the certificate of a plan, or of a ``run`` of it; a cost above the budget ``epsilon`` is an error.

    - ``count``: the law of K of a secret search; ``visible``: the number of trials of a visible search instead.
    - ``subsample``: the probability of each record to be in the one sample that all search trials share.
    - ``final``: the mechanism of one final training with the candidate that the search found.

    Without ``epsilon``, the certified cost becomes the budget. Missing declarations make the certificate a draft.
    """
    at = check_number("delta", delta, OPEN_UNIT)
    budget = None if epsilon is None else check_number("epsilon", epsilon, NON_NEGATIVE)
    within = check_accuracy(accuracy)
    plan = PlanTerms(
        mechanism=str(mechanism),
        count=None if count is None else str(count),
        visible=visible,
        subsample=None if subsample is None else str(subsample),
        final=None if final is None else str(final),
        epsilon=0.0 if budget is None else budget,
        delta=at,
        declared=Declared() if declared is None else declared,
    )
    comparison = compare(plan.whole, delta=at)
    total = compute_total(plan, run, within, comparison)
    if budget is None:
        plan = plan.model_copy(update={"epsilon": total.upper})
    elif total.upper > budget:
        raise ParameterError(f"`epsilon` must be at least {total.upper!r}, the certified cost at delta {at:g}, got {format_value(budget)}")
    curve = profile_points(compose_runs(plan.whole, run), total)
    costs = Costs(total, trial_alone(plan), final_alone(plan))
    unhashed = Certificate(
        version=FORMAT_VERSION,
        plan=plan,
        total=total,
        curve=curve,
        gaussian_dp=fit_gdp(curve, total.delta),
        base=costs.base,
        final_alone=costs.final_alone,
        bounds=other_bounds(comparison),
        composition=full_composition(comparison),
        run=run,
        versions=_versions(),
        issued_at=format_time(_now()),
        hash="sha256:" + 64 * "0",
        signature=None,
        **derived_fields(plan, costs, run, within),
    )
    return unhashed.model_copy(update={"hash": unhashed.digest()})


def compute_total(plan: PlanTerms, run: RunMetadata | None, accuracy: float | None, comparison: Comparison) -> TotalEpsilon:
    """Return bounds on epsilon at the plan's delta, for all runs; an infinite upper bound is an error."""
    exact = comparison.bounds["exact"]
    if accuracy is None and isinstance(exact, Interval) and (run is None or run.runs == 1):
        interval = exact
    else:
        interval = compose_runs(plan.whole, run).epsilon_at(plan.delta, accuracy=accuracy)
    upper = float(interval.upper)
    if upper > LARGEST_EPSILON:
        problem = f"`delta` must be large enough for a certified epsilon up to {LARGEST_EPSILON:g}, got {plan.delta!r}"
        raise ParameterError(problem + _explain_infinite(plan))
    return TotalEpsilon(lower=None if interval.lower is None else float(interval.lower), upper=upper, delta=plan.delta)


def _explain_infinite(plan: PlanTerms) -> str:
    """Return the usual reason for an infinite epsilon: trials that may reveal everything, too many of them for delta."""
    selection = plan.selection
    if selection is None:
        return ""
    leak = max(bracket.upper.p_only for bracket in selection.mechanism.brackets)
    expected = selection.count.expected()
    if leak == 0.0 or leak * expected < plan.delta:
        return ""
    return f": one trial reveals everything with probability {leak:.3g}, and {expected:.4g} trials are expected"


def trial_alone(plan: PlanTerms) -> EpsilonInterval:
    """Return epsilon of one trial alone."""
    return epsilon_interval(plan.trial, plan.delta)


def final_alone(plan: PlanTerms) -> EpsilonInterval | None:
    """Return epsilon of the final training alone; None without a final training."""
    return None if plan.final_training is None else epsilon_interval(plan.final_training, plan.delta)


def epsilon_interval(mechanism: Mechanism, delta: float) -> EpsilonInterval:
    """Return bounds on the epsilon of a mechanism as a certificate writes them."""
    interval = mechanism.epsilon_at(delta)
    lower, upper = interval.lower, float(interval.upper)
    # An infinite lower bound cannot be written as a number.
    finite_lower = None if lower is None or not math.isfinite(float(lower)) else float(lower)
    return EpsilonInterval(lower=finite_lower, upper=upper if math.isfinite(upper) else "infinite")


def other_bounds(comparison: Comparison) -> OtherBounds | None:
    """Return epsilon by the other bounds; None without a law of K."""
    if comparison.count is None:
        return None
    return OtherBounds(**{name: _bound_value(comparison, name) for name in OtherBounds.model_fields})


def full_composition(comparison: Comparison) -> Composition | None:
    """Return epsilon of releasing a fixed number of trials in full; None without a law of K."""
    if comparison.composition_runs is None:
        return None
    return Composition(runs=comparison.composition_runs, epsilon=_bound_value(comparison, "composition"))


def _bound_value(comparison: Comparison, name: str) -> BoundValue:
    value = comparison.bounds[name]
    if value is None or isinstance(value, Interval):
        return "not covered"
    return float(value) if math.isfinite(value) else "infinite"


def _now() -> datetime:
    """Return the current time, or SOURCE_DATE_EPOCH if it is set, for reproducible certificates."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if seconds is None:
        return datetime.now(UTC)
    if not (seconds.isascii() and seconds.isdigit() and len(seconds) < 12 and int(seconds) <= _LAST_SECOND):
        raise ParameterError(f"SOURCE_DATE_EPOCH must be an integer number of seconds since 1970, got {format_value(seconds)}")
    return datetime.fromtimestamp(int(seconds), UTC)


def _versions() -> Versions:
    installed = {name.replace("-", "_"): version(name) for name in ("privselect", "numpy", "scipy", "dp-accounting")}
    return Versions(python=platform.python_version(), **installed)
