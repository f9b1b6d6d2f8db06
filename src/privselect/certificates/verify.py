"""Verify a certificate: recompute its numbers from the text forms and compare all other fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from privselect._util.rounding import format_digits_up
from privselect._util.safe_search import LARGEST_EPSILON
from privselect._util.validation import format_value
from privselect.certificates.certificate import Certificate, parse_time
from privselect.certificates.certify import compute_total, final_alone, full_composition, other_bounds, trial_alone
from privselect.certificates.model import ApproximateGDP, ProfilePoint, compose_runs
from privselect.certificates.profile import fit_gdp, gdp_covers, upper_delta_function
from privselect.certificates.sign import check_key, is_signed
from privselect.certificates.statement import Costs, derived_fields, describe_stages
from privselect.errors import FieldsError, ParameterError, PrivselectError
from privselect.interval import Interval
from privselect.selection.compare import compare
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from privselect.certificates.model import BoundValue, EpsilonInterval, TotalEpsilon
    from privselect.mechanisms import Mechanism
    from privselect.selection.compare import Comparison

    Floats = NDArray[np.float64]

EPSILON_TOLERANCE = 1e-4  # relative: other versions of privselect or its dependencies may round differently
DELTA_TOLERANCE = 2e-3  # relative: accuracy of delta on the mesh of the exact bound
_MU_TOLERANCE = 1e-9  # relative: differences between implementations of the normal distribution
_CLOCK_TOLERANCE = timedelta(days=1)

_UNPROTECTED_PLAN = (
    "whether search, final training, delta and budget are the agreed ones",
    "the declarations: unit of privacy, trust model, whether the number of records is public, score, accesses that are not covered",
)
_UNPROTECTED_RUN = (
    "whether the certificate covers a plan or a run, how many runs on the same data, their randomness, who states the mechanism, and notes",
    "the time of issue and the software versions",
)
_FAULTS = {
    "statement": "the statement does not follow from the other fields",
    "draft": "the draft mark does not match the declarations: {declared}",
    "plan_hash": "the hash of the plan does not match the plan",
    "neighbours": "the neighbouring relation is {claimed}, but the mechanism has {right}",
    "theorems": "the theorem labels do not match the mechanism",
    "accuracy": "the accuracy does not match the bounds of the total",
    "released": "`released` does not match the mechanism",
    "withheld": "`withheld` does not match the mechanism",
}


@dataclass(frozen=True, slots=True)
class VerificationResult:
    """Whether the claim of a certificate holds, and the reasons if it does not.

    - ``unprotected``: facts that anyone could have changed together with all hashes. Only a signature by a known key protects them
      all; a known hash of the plan protects the plan.
    - ``proved_curve``: the certificate's curve; a point that claims less than the recomputed one is replaced by it.
    - ``comparison``: all bounds as recomputed.
    """

    holds: bool
    reasons: tuple[str, ...]
    signed_by: str | None
    draft: bool
    recomputed: Interval | None
    unprotected: tuple[str, ...]
    certificate: Certificate | None
    proved_curve: tuple[ProfilePoint, ...] = ()
    comparison: Comparison | None = None

    @property
    def proved_total(self) -> Interval | None:
        """The wider one of the claimed and the recomputed bounds; None if nothing could be computed."""
        if self.certificate is None or self.recomputed is None:
            return None
        total, found = self.certificate.total, self.recomputed
        lower = None if total.lower is None or found.lower is None else min(total.lower, float(found.lower))
        return Interval(lower, max(total.upper, float(found.upper)))

    @property
    def summary(self) -> str:
        """The result in one line."""
        if not self.holds or self.certificate is None or self.proved_total is None:
            more = f" (and {len(self.reasons) - 1} more)" if len(self.reasons) > 1 else ""
            return f"REFUSED: {self.reasons[0]}{more}"
        total, run = self.certificate.total, self.certificate.run
        marks = ["insecure"] if run is not None and run.insecure else []
        marks += ["mechanism claimed by the user"] if run is not None and run.mechanism_claimed else []
        marks += ["draft"] if self.draft else []
        marks.append("unsigned" if self.signed_by is None else f"signed by {self.signed_by}")
        return f"the claim holds: ({format_digits_up(float(self.proved_total.upper))}, {write_value(total.delta)})-DP; {'; '.join(marks)}"

    def as_dict(self) -> dict[str, object]:
        """Return the result as JSON data."""
        found = self.certificate
        return {
            "holds": self.holds,
            "reasons": list(self.reasons),
            "signed_by": self.signed_by,
            "draft": self.draft,
            "mechanism_claimed": found is not None and found.run is not None and found.run.mechanism_claimed,
            "stages": {} if found is None else describe_stages(found.plan),
            "recomputed": None if self.recomputed is None else self.recomputed.as_dict(),
            "unprotected": list(self.unprotected),
        }


def verify(certificate: Certificate | str | bytes, *, plan_hash: str | None = None, key: str | None = None) -> VerificationResult:
    """Recompute every number from the text forms and check that every other field follows.

    ``plan_hash`` is the hash of the agreed plan, and ``key`` is the public key that must have signed. A text that is not a
    certificate of the current format raises a ``CertificateError``; every other fault is a reason in the result.
    """
    expected_key = None if key is None else check_key(key)
    if plan_hash is not None and not isinstance(plan_hash, str):
        raise ParameterError(f"`plan_hash` must be the hash of a plan, got {format_value(plan_hash)}")
    if not isinstance(certificate, Certificate | str | bytes):
        raise ParameterError(f"`certificate` must be a certificate or its text, got {format_value(certificate)}")
    try:
        found = certificate if isinstance(certificate, Certificate) else Certificate.from_json(certificate)
    except FieldsError as error:
        return VerificationResult(False, (str(error),), None, True, None, (), None)  # noqa: FBT003 - refused, and treated as a draft
    recomputed, curve, comparison, wrong = _check_numbers(found)
    reasons = (*_check_origin(found, plan_hash, expected_key), *wrong, *_check_contents(found))
    signer = found.signature.public_key if found.signature is not None and is_signed(found) else None
    # Anyone can sign with a new key: a signature protects nothing unless the key is an expected one.
    protected = expected_key is not None and found.signature is not None and found.signature.public_key == expected_key
    return VerificationResult(
        holds=not reasons,
        reasons=reasons,
        signed_by=signer,
        draft=bool(found.plan.declared.missing),
        recomputed=recomputed,
        unprotected=() if protected else (_UNPROTECTED_RUN if plan_hash is not None else _UNPROTECTED_PLAN + _UNPROTECTED_RUN),
        certificate=found,
        proved_curve=curve,
        comparison=comparison,
    )


def _check_origin(certificate: Certificate, plan_hash: str | None, key: str | None) -> Iterator[str]:
    """Yield the faults of hashes and signature."""
    if certificate.hash != certificate.digest():
        yield "the hash does not match the content: the certificate was changed after it was issued"
    if plan_hash is not None and certificate.plan.digest() != plan_hash:
        yield f"the plan is a different one: its hash is {certificate.plan.digest()}, expected {format_value(plan_hash)[1:-1]}"
    if certificate.signature is not None and not is_signed(certificate):
        yield "the signature does not match the content and the key that it names"
    if key is not None and certificate.signature is None:
        yield f"the certificate is unsigned, expected a signature by {key}"
    elif key is not None and certificate.signature is not None and certificate.signature.public_key != key:
        yield f"the certificate is signed by {certificate.signature.public_key}, expected {key}"


def _check_contents(certificate: Certificate) -> Iterator[str]:
    """Yield the faults of the derived fields, the budget and the time; this is fast."""
    plan, total = certificate.plan, certificate.total
    try:
        right = derived_fields(plan, Costs.of(certificate), certificate.run, certificate.accuracy.requested)
    except PrivselectError as error:
        yield f"the fields contradict each other: {error}"
        return
    declared = f"{', '.join(plan.declared.missing)} not declared" if plan.declared.missing else "nothing is missing"
    for name, value in right.items():
        if getattr(certificate, name) != value:
            yield _FAULTS[name].format(claimed=getattr(certificate, name), right=value, declared=declared)
    if total.delta != plan.delta:
        yield f"the claim is for delta {total.delta!r}, the plan for {plan.delta!r}"
    if total.upper > plan.epsilon:
        yield f"the claimed epsilon {total.upper!r} is above the budget of the plan, {plan.epsilon!r}"
    if parse_time(certificate.issued_at) > datetime.now(UTC) + _CLOCK_TOLERANCE:
        yield f"the time of issue, {certificate.issued_at}, is in the future"


def _check_numbers(certificate: Certificate) -> tuple[Interval | None, tuple[ProfilePoint, ...], Comparison | None, tuple[str, ...]]:
    """Recompute every number; return the bounds on the total, the proved curve, all bounds, and the faults."""
    try:
        comparison = compare(certificate.plan.whole, delta=certificate.plan.delta)
        total = compute_total(certificate.plan, certificate.run, certificate.accuracy.requested, comparison)
        curve, wrong = _check_curve(certificate, total)
        wrong = [*_check_total(certificate, total), *wrong, *_check_gaussian(certificate)]
    except PrivselectError as error:
        return None, (), None, (f"the claim cannot be recomputed: {error}",)
    wrong += _check_comparison(certificate, comparison)
    return Interval(total.lower, total.upper), curve, comparison, tuple(wrong)


def _check_comparison(certificate: Certificate, comparison: Comparison) -> Iterator[str]:
    final, bounds, composition = final_alone(certificate.plan), other_bounds(comparison), full_composition(comparison)
    yield from _check_interval("one trial alone", certificate.base, trial_alone(certificate.plan))
    if (certificate.final_alone is None) != (final is None):
        yield "the epsilon of the final training alone is present without a final training, or missing with one"
    elif certificate.final_alone is not None and final is not None:
        yield from _check_interval("the final training alone", certificate.final_alone, final)
    if (certificate.bounds is None) != (bounds is None) or (certificate.composition is None) != (composition is None):
        yield "the other bounds are present without a law of K, or missing with one"
    elif certificate.bounds is not None and bounds is not None and certificate.composition is not None and composition is not None:
        for name, value in bounds:
            yield from _check_bound(f"the bound `{name}`", getattr(certificate.bounds, name), value)
        yield from _check_bound("full composition", certificate.composition.epsilon, composition.epsilon)
        if certificate.composition.runs != composition.runs:
            claimed, found = format_value(certificate.composition.runs), format_value(composition.runs)
            yield f"full composition has {found} runs, the certificate claims {claimed}"


def _check_interval(name: str, claimed: EpsilonInterval, found: EpsilonInterval) -> Iterator[str]:
    yield from _check_bound(name, claimed.upper, found.upper)
    if claimed.lower is not None and (found.lower is None or claimed.lower > found.lower * (1.0 + EPSILON_TOLERANCE)):
        yield f"the lower bound of {name}, {claimed.lower!r}, is above the proved one, {found.lower!r}"


def _check_bound(name: str, claimed: BoundValue, found: BoundValue) -> Iterator[str]:
    if isinstance(claimed, str):  # "infinite" and "not covered" claim nothing
        return
    if isinstance(found, str):
        yield f"{name} has no epsilon ({found}), the certificate claims {claimed!r}"
    elif claimed < found * (1.0 - EPSILON_TOLERANCE):
        yield f"{name} has epsilon {found!r}, the certificate claims less: {claimed!r}"


def _check_total(certificate: Certificate, found: TotalEpsilon) -> Iterator[str]:
    claimed = certificate.total
    if claimed.upper < found.upper * (1.0 - EPSILON_TOLERANCE):
        yield f"the claimed epsilon {claimed.upper!r} is too small: {found.upper!r} can be proved"
    elif found.lower is not None and claimed.upper < found.lower:
        # No tolerance here: an upper bound below a proved lower bound is wrong, whatever the version.
        yield f"the claimed epsilon {claimed.upper!r} is too small: at least {found.lower!r} is necessary"
    if found.lower is not None and certificate.plan.epsilon < found.lower:
        yield f"the budget {certificate.plan.epsilon!r} is exceeded: at least {found.lower!r} is necessary"
    if claimed.lower is not None and found.lower is None:
        yield "the certificate claims a lower bound, but none can be proved"
    elif claimed.lower is not None and found.lower is not None and claimed.lower > found.lower * (1.0 + EPSILON_TOLERANCE):
        yield f"the claimed lower bound {claimed.lower!r} is above the proved one, {found.lower!r}"


def _check_gaussian(certificate: Certificate) -> Iterator[str]:
    """Check against the certificate's own curve, which is checked separately."""
    claimed = certificate.gaussian_dp
    if claimed is None:
        if fit_gdp(certificate.curve, certificate.total.delta) is not None:
            yield "the Gaussian DP pair is missing although one exists"
    elif not gdp_covers(ApproximateGDP(mu=claimed.mu * (1.0 + _MU_TOLERANCE), delta=claimed.delta), certificate.curve):
        yield f"the Gaussian DP pair (mu {claimed.mu!r}, delta {claimed.delta!r}) does not cover the curve"


def _check_curve(certificate: Certificate, total: TotalEpsilon) -> tuple[tuple[ProfilePoint, ...], list[str]]:
    """Return the proved curve and the faults of the claimed one; ``total`` is the recomputed total.

    A point is accepted if it is proved at an epsilon larger by ``EPSILON_TOLERANCE`` and a delta larger by ``DELTA_TOLERANCE``.
    """
    epsilon = np.array([point.epsilon for point in certificate.curve])
    delta = np.array([point.delta for point in certificate.curve])
    claimed = certificate.total
    if epsilon[0] != 0.0 or np.any(np.diff(epsilon) <= 0.0) or np.any(np.diff(delta) > 0.0):
        return (), ["the curve must start at epsilon 0, with increasing epsilon and nonincreasing delta"]
    wrong = []
    if not np.any((epsilon == claimed.upper) & (delta <= claimed.delta)):
        wrong.append("the curve does not contain the certified point")
    # Points that follow from the total need no computation.
    implied = (epsilon >= claimed.upper) & (delta >= claimed.delta)
    mechanism = compose_runs(certificate.plan.whole, certificate.run)
    found = _upper_deltas(mechanism, epsilon, ~implied)
    short = ~implied & (delta < found * (1.0 - DELTA_TOLERANCE))
    if short.any():
        short &= delta < _upper_deltas(mechanism, epsilon * (1.0 + EPSILON_TOLERANCE), short) * (1.0 - DELTA_TOLERANCE)
    if short.any():
        first = int(np.argmax(short))
        wrong.append(f"the delta {float(delta[first])!r} of the curve at epsilon {float(epsilon[first])!r} is too small")
    return _proved_curve(epsilon, np.where(implied, claimed.delta, np.maximum(delta, found)), claimed, total), wrong


def _upper_deltas(mechanism: Mechanism, epsilon: Floats, needed: NDArray[np.bool_]) -> Floats:
    """Return upper bounds on delta where needed; a bound that is proved at an epsilon holds at every larger one."""
    found, upper = np.ones(len(epsilon)), upper_delta_function(mechanism)
    found[needed] = [upper(float(at)) for at in epsilon[needed]]
    return np.minimum.accumulate(found)


def _proved_curve(epsilon: Floats, delta: Floats, claimed: TotalEpsilon, total: TotalEpsilon) -> tuple[ProfilePoint, ...]:
    """Return the points, with the larger one of both totals for points that follow from the smaller one."""
    proved = max(claimed.upper, total.upper)
    points = {float(at): float(value) for at, value in zip(epsilon, delta, strict=True) if not claimed.upper <= at < proved}
    if proved <= LARGEST_EPSILON:
        points[proved] = min(points.get(proved, 1.0), claimed.delta)
    ascending = sorted(points)
    smallest = np.minimum.accumulate([points[at] for at in ascending])
    return tuple(ProfilePoint(epsilon=at, delta=float(value)) for at, value in zip(ascending, smallest, strict=True))
