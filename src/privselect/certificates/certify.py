"""Issue a certificate."""

from __future__ import annotations

import math
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING

from privselect._util.validation import NON_NEGATIVE, OPEN_UNIT, check_number, format_value
from privselect.certificates.certificate import VERSION, Certificate, written_time
from privselect.certificates.declarations import Declared
from privselect.certificates.derived_fields import consequences
from privselect.certificates.gdp_fit import fitted
from privselect.certificates.number_models import Bound, Bounds, Composition, Ends, Total, Versions
from privselect.certificates.plan_commitment import Promise
from privselect.certificates.profile_points import upper_curve
from privselect.certificates.run_metadata import together
from privselect.errors import ParameterError
from privselect.interval import Interval
from privselect.mechanisms.base import check_accuracy
from privselect.selection.compare import compare
from privselect.selection.safe_search import LARGEST_EPSILON

if TYPE_CHECKING:
    from privselect.certificates.run_metadata import Run
    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.compare import Comparison

_LAST_SECOND = 253_402_300_799  # of the year 9999


def certify(  # noqa: PLR0913 - a plan has as many parts
    mechanism: Mechanism | str,
    count: Count | str | None = None,
    *,
    delta: float,
    epsilon: float | None = None,
    declared: Declared | None = None,
    accuracy: float | None = None,
    run: Run | None = None,
) -> Certificate:
    """The certificate of a plan, or of the ``run`` that followed it; refused above the budget ``epsilon``.

    Without ``epsilon`` the budget is what the plan is found to cost. What ``declared`` leaves open makes the certificate a draft.
    """
    at = check_number("delta", delta, OPEN_UNIT)
    budget = None if epsilon is None else check_number("epsilon", epsilon, NON_NEGATIVE)
    within = check_accuracy(accuracy)
    promise = Promise(
        mechanism=str(mechanism),
        count=None if count is None else str(count),
        epsilon=0.0 if budget is None else budget,
        delta=at,
        declared=Declared() if declared is None else declared,
    )
    comparison = compare(promise.described(), delta=at)
    total = total_of(promise, run, within, comparison)
    if budget is None:
        promise = Promise(**{**promise.plain(), "epsilon": total.upper, "declared": promise.declared})
    elif total.upper > budget:
        raise ParameterError(f"`epsilon` must be at least {total.upper!r}, which this costs at delta {at:g}, got {format_value(budget)}")
    return _issued(promise, total, comparison, run, within)


def total_of(promise: Promise, run: Run | None, accuracy: float | None, comparison: Comparison) -> Total:
    """The interval of epsilon at the promised delta; where nothing finite is proved there is nothing to certify."""
    exact = comparison.bounds["exact"]
    if accuracy is None and isinstance(exact, Interval) and (run is None or run.runs == 1):
        interval = exact
    else:
        interval = together(promise.described(), run).epsilon_at(promise.delta, accuracy=accuracy)
    upper = float(interval.upper)
    if upper > LARGEST_EPSILON:
        told = f"`delta` must be one at which an epsilon up to {LARGEST_EPSILON:g} is proved, got {promise.delta!r}"
        raise ParameterError(told + _outright(comparison, promise.delta))
    return Total(lower=None if interval.lower is None else float(interval.lower), upper=upper, delta=promise.delta)


def _outright(comparison: Comparison, delta: float) -> str:
    """Why no epsilon will do, where trials may leak everything too often: the usual reason, and not seen from the delta alone."""
    leak = max(bracket.upper.p_only for bracket in comparison.mechanism.brackets)
    if comparison.count is None or leak == 0.0 or leak * comparison.count.expected() < delta:
        return ""
    return f": one trial leaks everything with chance {leak:.3g}, and {comparison.count.expected():.4g} are expected"


def base_of(comparison: Comparison) -> Ends:
    """Epsilon of one trial alone."""
    lower, upper = comparison.base.lower, float(comparison.base.upper)
    # Where even the lower end is infinite, there is no number to give.
    shown_lower = None if lower is None or not math.isfinite(float(lower)) else float(lower)
    return Ends(lower=shown_lower, upper=upper if math.isfinite(upper) else "infinite")


def bounds_of(comparison: Comparison) -> Bounds | None:
    """Epsilon by the other bounds."""
    if comparison.count is None:
        return None
    return Bounds(**{name: _bound(comparison, name) for name in Bounds.model_fields})


def composition_of(comparison: Comparison) -> Composition | None:
    """Epsilon of releasing a fixed number of trials in full."""
    if comparison.composition_runs is None:
        return None
    return Composition(runs=comparison.composition_runs, epsilon=_bound(comparison, "composition"))


def _bound(comparison: Comparison, name: str) -> Bound:
    value = comparison.bounds[name]
    if value is None or isinstance(value, Interval):
        return "not covered"
    return float(value) if math.isfinite(value) else "infinite"


def _issued(promise: Promise, total: Total, comparison: Comparison, run: Run | None, accuracy: float | None) -> Certificate:
    curve = upper_curve(together(promise.described(), run), total)
    base = base_of(comparison)
    unhashed = Certificate(
        version=VERSION,
        promise=promise,
        total=total,
        curve=curve,
        gaussian_dp=fitted(curve, total.delta),
        base=base,
        bounds=bounds_of(comparison),
        composition=composition_of(comparison),
        run=run,
        versions=_versions(),
        made=written_time(_now()),
        hash="sha256:" + 64 * "0",
        signature=None,
        **consequences(promise, total, base, run, accuracy),
    )
    return unhashed.model_copy(update={"hash": unhashed.digest()})


def _now() -> datetime:
    """The time, or what SOURCE_DATE_EPOCH says that it is: then the same input gives the same bytes."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told is None:
        return datetime.now(UTC)
    if not (told.isascii() and told.isdigit() and len(told) < 12 and int(told) <= _LAST_SECOND):
        raise ParameterError(f"SOURCE_DATE_EPOCH must be a whole number of seconds since 1970, got {format_value(told)}")
    return datetime.fromtimestamp(int(told), UTC)


def _versions() -> Versions:
    installed = {name.replace("-", "_"): version(name) for name in ("privselect", "numpy", "scipy", "dp-accounting")}
    return Versions(python=platform.python_version(), **installed)
