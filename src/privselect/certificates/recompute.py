"""One check per part of a certificate: each yields a sentence for every fault it finds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.validation import format_value
from privselect.certificates.certificate import read_time
from privselect.certificates.certify import base_of, bounds_of, composition_of, total_of
from privselect.certificates.derived_fields import consequences
from privselect.certificates.gdp_fit import covers, fitted
from privselect.certificates.number_models import Leaky, Point
from privselect.certificates.profile_points import upper_delta
from privselect.certificates.run_metadata import together
from privselect.errors import PrivselectError
from privselect.interval import Interval
from privselect.selection.compare import compare
from privselect.selection.safe_search import LARGEST_EPSILON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.number_models import Bound, Total
    from privselect.mechanisms import Mechanism

    Floats = NDArray[np.float64]

EPSILON_TOLERANCE = 1e-4  # relative: another version, or other versions of what it needs, may round differently
DELTA_TOLERANCE = 2e-3  # relative: what the mesh of the exact bound leaves open in delta
_MU_TOLERANCE = 1e-9  # relative: of the normal distribution elsewhere
_CLOCKS = timedelta(days=1)  # by which two clocks may differ

_FAULTS = {
    "statement": "the statement is not the one that follows from the other fields",
    "draft": "the draft mark does not fit what is declared: {declared}",
    "promise_hash": "the hash of the plan does not belong to the plan",
    "neighbours": "the neighbouring relation is {claimed}, but the mechanism is stated for {right}",
    "theorems": "the theorem labels are not those that the mechanism rests on",
    "accuracy": "the numerical accuracy is not that of the interval",
    "released": "what is released is not what the mechanism releases",
    "withheld": "what is withheld is not what the mechanism needs withheld",
}


def check_contents(certificate: Certificate) -> Iterator[str]:
    """The fields that follow from others, the budget and the time: nothing here needs much computing."""
    promise, total = certificate.promise, certificate.total
    try:
        right = consequences(promise, total, certificate.base, certificate.run, certificate.accuracy.asked)
    except PrivselectError as error:
        yield f"the fields do not fit together: {error}"
        return
    declared = f"{', '.join(promise.declared.missing)} not declared" if promise.declared.missing else "nothing is missing"
    for name, value in right.items():
        if getattr(certificate, name) != value:
            yield _FAULTS[name].format(claimed=getattr(certificate, name), right=value, declared=declared)
    if total.delta != promise.delta:
        yield f"the claim is for delta {total.delta!r}, the plan for {promise.delta!r}"
    if total.upper > promise.epsilon:
        yield f"the claimed epsilon {total.upper!r} is above the budget of the plan, {promise.epsilon!r}"
    if read_time(certificate.made) > datetime.now(UTC) + _CLOCKS:
        yield f"the certificate says it was made at {certificate.made}, which is yet to come"


def check_numbers(certificate: Certificate) -> tuple[Interval | None, tuple[Point, ...], tuple[str, ...]]:
    """Every number anew, from the text forms: the interval of the total that was found, the curve as it is proved, and what is wrong."""
    try:
        comparison = compare(certificate.promise.described(), delta=certificate.promise.delta)
        total = total_of(certificate.promise, certificate.run, certificate.accuracy.asked, comparison)
        curve, wrong = _check_curve(certificate, total)
        wrong = [*_check_total(certificate, total), *wrong, *_check_gaussian(certificate)]
    except PrivselectError as error:
        return None, (), (f"the claim cannot be computed again: {error}",)
    base, bounds, composition = base_of(comparison), bounds_of(comparison), composition_of(comparison)
    wrong += _check_bound("one trial alone", certificate.base.upper, base.upper)
    if certificate.base.lower is not None and (base.lower is None or certificate.base.lower > base.lower * (1.0 + EPSILON_TOLERANCE)):
        wrong.append(f"the lower end of one trial alone, {certificate.base.lower!r}, is above what can be proved, {base.lower!r}")
    if (certificate.bounds is None) != (bounds is None) or (certificate.composition is None) != (composition is None):
        wrong.append("the other bounds are there without a law of K, or missing with one")
    elif certificate.bounds is not None and bounds is not None and certificate.composition is not None and composition is not None:
        for name, value in bounds:
            wrong += _check_bound(f"the bound `{name}`", getattr(certificate.bounds, name), value)
        wrong += _check_bound("plain composition", certificate.composition.epsilon, composition.epsilon)
        if certificate.composition.runs != composition.runs:
            wrong.append(f"plain composition is of {format_value(composition.runs)} runs, claimed are {format_value(certificate.composition.runs)}")
    return Interval(total.lower, total.upper), curve, tuple(wrong)


def _check_total(certificate: Certificate, found: Total) -> Iterator[str]:
    claimed = certificate.total
    if claimed.upper < found.upper * (1.0 - EPSILON_TOLERANCE):
        yield f"the claimed epsilon {claimed.upper!r} is too small: {found.upper!r} is what can be proved"
    elif found.lower is not None and claimed.upper < found.lower:
        # However little: whatever version made it, no upper end lies below a proved lower one.
        yield f"the claimed epsilon {claimed.upper!r} is too small: it is proved that {found.lower!r} is needed"
    if found.lower is not None and certificate.promise.epsilon < found.lower:
        yield f"the budget {certificate.promise.epsilon!r} is not kept: it is proved that {found.lower!r} is needed"
    if claimed.lower is not None and found.lower is None:
        yield "a lower end is claimed where none can be proved"
    elif claimed.lower is not None and found.lower is not None and claimed.lower > found.lower * (1.0 + EPSILON_TOLERANCE):
        yield f"the claimed lower end {claimed.lower!r} is above the one that can be proved, {found.lower!r}"


def _check_curve(certificate: Certificate, total: Total) -> tuple[tuple[Point, ...], list[str]]:
    """A point may be short by as much as the total may, in its epsilon, and by what the mesh leaves open in its delta.

    Returned is the curve as it is proved here, ``total`` being the one that was found, and what is wrong with the one that is claimed.
    """
    epsilon = np.array([point.epsilon for point in certificate.curve])
    delta = np.array([point.delta for point in certificate.curve])
    claimed = certificate.total
    if epsilon[0] != 0.0 or np.any(np.diff(epsilon) <= 0.0) or np.any(np.diff(delta) > 0.0):
        return (), ["the curve must start at epsilon 0, with epsilon rising and delta not"]
    wrong = []
    if not np.any((epsilon == claimed.upper) & (delta <= claimed.delta)):
        wrong.append("the curve does not hold the certified point")
    # What the total itself implies needs no second look.
    implied = (epsilon >= claimed.upper) & (delta >= claimed.delta)
    mechanism = together(certificate.promise.described(), certificate.run)
    found = _upper_deltas(mechanism, epsilon, ~implied)
    asked = ~implied & (delta < found * (1.0 - DELTA_TOLERANCE))
    if asked.any():
        asked &= delta < _upper_deltas(mechanism, epsilon * (1.0 + EPSILON_TOLERANCE), asked) * (1.0 - DELTA_TOLERANCE)
    if asked.any():
        first = int(np.argmax(asked))
        wrong.append(f"the curve's delta {float(delta[first])!r} at epsilon {float(epsilon[first])!r} is too small")
    return _proved_curve(epsilon, np.where(implied, claimed.delta, np.maximum(delta, found)), claimed, total), wrong


def _upper_deltas(mechanism: Mechanism, epsilon: Floats, asked: NDArray[np.bool_]) -> Floats:
    """At these epsilons where it is asked for: a bound proved at an epsilon holds at every larger one."""
    found, upper = np.ones(len(epsilon)), upper_delta(mechanism)
    found[asked] = [upper(float(at)) for at in epsilon[asked]]
    return np.minimum.accumulate(found)


def _proved_curve(epsilon: Floats, delta: Floats, claimed: Total, total: Total) -> tuple[Point, ...]:
    """The points, with the greater of both totals in place of what rests on the lesser one."""
    proved = max(claimed.upper, total.upper)
    points = {float(at): float(value) for at, value in zip(epsilon, delta, strict=True) if not claimed.upper <= at < proved}
    if proved <= LARGEST_EPSILON:
        points[proved] = min(points.get(proved, 1.0), claimed.delta)
    ascending = sorted(points)
    least = np.minimum.accumulate([points[at] for at in ascending])
    return tuple(Point(epsilon=at, delta=float(value)) for at, value in zip(ascending, least, strict=True))


def _check_gaussian(certificate: Certificate) -> Iterator[str]:
    """Against the certificate's own curve, which is checked by itself."""
    claimed = certificate.gaussian_dp
    if claimed is None:
        if fitted(certificate.curve, certificate.total.delta) is not None:
            yield "the Gaussian DP pair is missing, though there is one"
    elif not covers(Leaky(mu=claimed.mu * (1.0 + _MU_TOLERANCE), delta=claimed.delta), certificate.curve):
        yield f"the Gaussian DP pair (mu {claimed.mu!r}, delta {claimed.delta!r}) does not cover the curve"


def _check_bound(name: str, claimed: Bound, found: Bound) -> Iterator[str]:
    if isinstance(claimed, str):  # claims nothing
        return
    if isinstance(found, str):
        yield f"{name} has no epsilon ({found}), claimed is {claimed!r}"
    elif claimed < found * (1.0 - EPSILON_TOLERANCE):
        yield f"{name} has epsilon {found!r}, claimed is less: {claimed!r}"
