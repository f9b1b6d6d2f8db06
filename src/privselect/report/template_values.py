"""The values that the report template shows."""

from __future__ import annotations

import math
import shlex
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from privselect.certificates.assumptions import contains_selection, part_assumptions, stage_assumptions
from privselect.certificates.certify import epsilon_interval, final_alone, trial_alone
from privselect.certificates.profile import fit_gdp, gdp_covers
from privselect.certificates.statement import claim_mark
from privselect.counts import Fixed
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.planning.plan_result import QUANTILES, TOP_FRACTIONS, success_probability
from privselect.report.attack_bounds import max_detection_rate, max_guess_probability
from privselect.report.charts import CurveChart, survival_steps
from privselect.report.comparison import comparison_values
from privselect.report.number_format import format_interval, format_upper, join_words, percent_down, percent_up
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.model import ApproximateGDP, EpsilonInterval, PlanTerms, ProfilePoint
    from privselect.certificates.verify import VerificationResult
    from privselect.report.source import ReleasedValues

_FALSE_ALARM_RATES = (0.01, 0.05)
_WEAK_GUESS = 0.95  # a guess this often right means almost no protection; a blind guess is right half the time
_QUADRATURE_ERROR = 1e-9  # of a success probability: without it, 1% would be shown as 0.9%

_RELATIONS = {
    ADD_REMOVE: "two data sets are neighbours if one has exactly one record more than the other",
    REPLACE_ONE: "two data sets of the same size are neighbours if they differ in one record",
    ANY: "the relation of the mechanism, which is not part of its description",
}
_CHANGES = {
    ADD_REMOVE: "if one record is added or removed",
    REPLACE_ONE: "if one record is replaced by any other record",
    ANY: "on neighbouring data (the relation belongs to the mechanism and is not part of its description)",
}
_QUESTIONS = {
    ADD_REMOVE: "whether a record is in the data",
    REPLACE_ONE: "which of two records is in the data",
    ANY: "which of two neighbouring data sets was used",
}
_PRESENT = ("A false alarm reports an absent record as present.", "A detection reports a present record as present.")
_FIRST_OR_SECOND = ("A false alarm mistakes the first one for the second one.", "A detection recognizes the second one.")


def template_values(
    name: str,
    result: VerificationResult,
    *,
    plan_hash: str | None = None,
    key: str | None = None,
    release: ReleasedValues | None = None,
) -> dict[str, Any]:
    """Return the values for the page of the certificate file ``name``. For a refused certificate, these are only the reasons.

    ``plan_hash`` and ``key`` are the expectations that the certificate was verified against.
    """
    certificate, comparison = result.certificate, result.comparison
    accepted = result.holds and certificate is not None and comparison is not None
    expectations = ["the given plan"] * (plan_hash is not None) + ["the given signer"] * (key is not None)
    values: dict[str, Any] = {
        "accepted": accepted,
        "producer": f"privselect {version('privselect')}",
        "compared_with": join_words(expectations) if expectations else "",
        "commands": list(_commands(name, signed=accepted and certificate is not None and certificate.signature is not None)),
        "reasons": result.reasons,
        "law": None,
        "comparison": None,
    }
    if not result.holds or certificate is None or comparison is None:
        return values
    return {
        **values,
        **_plan_values(certificate),
        **_stage_values(certificate),
        **_origin_values(certificate, result),
        **_epsilon_values(certificate, result),
        "law": None if certificate.plan.count is None else _law_values(certificate.plan),
        "comparison": comparison_values(certificate.plan, comparison),
        "key_expected": key is not None,
        "release": release,
    }


def _commands(name: str, *, signed: bool) -> Iterator[str]:
    # A name that begins with a dash would be read as an option.
    file = shlex.quote(f"./{name}" if name.startswith("-") else name)
    yield "pip install 'privselect[cli,sign]'" if signed else "pip install 'privselect[cli]'"
    yield f"privselect verify {file}"
    yield f"privselect verify {file} --plan PLAN.toml  # compare with the agreed plan"
    if signed:
        yield f"privselect verify {file} --key KEY  # refuse every other signer"
    yield f"privselect report {file}"


def _plan_values(certificate: Certificate) -> dict[str, Any]:
    """Return what the certificate says about the plan and the release."""
    plan, declared = certificate.plan, certificate.plan.declared
    return {
        "mechanism": plan.mechanism,
        "scores": plan.visible is not None or contains_selection(plan.whole),
        "stage_assumptions": list(stage_assumptions(plan)),
        "mechanism_assumptions": list(part_assumptions(plan)),
        "unit": declared.unit,
        "trust_model": declared.trust_model,
        "records_public": declared.records_public,
        "score": declared.score,
        "not_covered": declared.not_covered,
        "missing": join_words(list(declared.missing)) if declared.missing else "",
        "relation": _RELATIONS[certificate.neighbours],
        "neighbour_change": _CHANGES[certificate.neighbours],
        "released": certificate.released,
        "withheld": certificate.withheld,
    }


def _stage_values(certificate: Certificate) -> dict[str, Any]:
    """Return what is known about the search and the final training, and what each of them costs alone."""
    plan = certificate.plan
    count = None if plan.selection is None else plan.selection.count
    searches = plan.count is not None or plan.visible is not None
    return {
        "searches": searches,
        "visible": plan.visible,
        "subsample": plan.subsample,
        "final": plan.final,
        "fixed_trials": count.k if isinstance(count, Fixed) else None,
        "random_trials": count is not None,
        "one_trial": _interval_text(trial_alone(plan)) if searches else "",
        "search_alone": _interval_text(epsilon_interval(plan.search, plan.delta)) if plan.final is not None else "",
        "final_alone": "" if (alone := final_alone(plan)) is None else _interval_text(alone),
    }


def _interval_text(interval: EpsilonInterval) -> str:
    return format_interval(interval.lower, interval.upper)


def _origin_values(certificate: Certificate, result: VerificationResult) -> dict[str, Any]:
    """Return how the certificate came about, and what protects it."""
    run, signature = certificate.run, certificate.signature
    insecure, claimed = run is not None and run.insecure, claim_mark(certificate.plan, run)
    return {
        "run": run is not None,
        "runs": 1 if run is None else run.runs,
        "randomness": None if run is None else run.randomness,
        "insecure": insecure,
        "notes": () if run is None else run.notes,
        "claimed": claimed,
        "warnings": ["insecure"] * insecure
        + ["mechanism claimed by the user"] * (claimed is not None)
        + ["draft"] * bool(certificate.plan.declared.missing),
        "signed_by": result.signed_by,
        "unprotected": result.unprotected,
        "statement": certificate.statement,
        "theorems": certificate.theorems,
        "rounding": certificate.accuracy.rounding,
        "hash": certificate.hash,
        "plan_hash": certificate.plan_hash,
        "spec_hash": None if run is None else run.spec_hash,
        "public_key": None if signature is None else signature.public_key,
        "issued_at": certificate.issued_at,
        "versions": [(package.replace("_", "-"), text) for package, text in certificate.versions],
    }


def _epsilon_values(certificate: Certificate, result: VerificationResult) -> dict[str, Any]:
    """Return the numbers of the claim, as they were proved during verification.

    The certificate may claim slightly less than is proved here, because versions round differently.
    """
    proved, delta, curve = result.proved_total, certificate.total.delta, result.proved_curve
    if proved is None:
        raise ValueError("a certificate that holds needs a proved total, got none")
    lower, upper = None if proved.lower is None else float(proved.lower), float(proved.upper)
    point = f"({format_upper(upper)}, {write_value(delta)})"
    return {
        "claim": f"{point}-differential privacy",
        "epsilon": upper,
        "lower": lower,
        "delta": delta,
        # Rounded up, as the quotient of two floats may be too small.
        "gap": math.nextafter(upper / lower, math.inf) - 1.0 if lower else None,
        "gaussian_dp": _proved_gdp(certificate, curve),
        "budget": {
            "epsilon": certificate.plan.epsilon,
            "delta": certificate.plan.delta,
            "used": _used_share(upper, certificate.plan.epsilon),
        },
        "attack": _attack_values(curve, certificate.neighbours),
        "profile_chart": _profile_chart(curve, (upper, delta, point)),
    }


def _proved_gdp(certificate: Certificate, curve: Sequence[ProfilePoint]) -> ApproximateGDP | None:
    claimed = certificate.gaussian_dp
    return claimed if claimed is None or gdp_covers(claimed, curve) else fit_gdp(curve, certificate.total.delta)


def _used_share(epsilon: float, budget: float) -> str:
    if budget == 0.0:
        return ""
    share = math.nextafter(epsilon / budget, math.inf)  # the quotient may have been rounded down
    return percent_up(share if epsilon > budget else min(share, 1.0))


def _attack_values(curve: Sequence[ProfilePoint], neighbours: str) -> dict[str, Any]:
    false_alarm, detection = _PRESENT if neighbours == ADD_REMOVE else _FIRST_OR_SECOND
    guess = max_guess_probability(curve)
    return {
        "question": _QUESTIONS[neighbours],
        "false_alarm": false_alarm,
        "detection": detection,
        "rows": [(f"{rate:.0%}", percent_up(max_detection_rate(curve, rate))) for rate in _FALSE_ALARM_RATES],
        "guess": percent_up(guess),
        "weak": guess >= _WEAK_GUESS,
    }


def _profile_chart(curve: Sequence[ProfilePoint], marker: tuple[float, float, str]) -> CurveChart:
    first, last = curve[0], curve[-1]
    return CurveChart(
        "profile",
        "delta over epsilon",
        f"A falling curve on a logarithmic scale, from delta {format_upper(first.delta)} at epsilon {format_upper(first.epsilon)} to delta "
        f"{format_upper(last.delta)} at epsilon {format_upper(last.epsilon)}. The certified point {marker[2]} is marked.",
        "epsilon",
        "delta",
        tuple((point.epsilon, point.delta) for point in curve),
        logarithmic=True,
        marker=marker,
    )


def _law_values(plan: PlanTerms) -> dict[str, Any]:
    """Return what is public about the law of K: its text form, a chart and a table."""
    if plan.selection is None:
        raise ValueError(f"a law of K needs a secret search, got {plan.count} without one")
    count = plan.selection.count
    chart = CurveChart(
        "law",
        "the law of K",
        f"Falling steps: the probability that k or more trials run. With probability 50% it is at most {count.quantile(0.5):,} trials, "
        f"with 99% at most {count.quantile(0.99):,}.",
        "trials, k",
        "P(K \u2265 k)",
        survival_steps(count),
        steps=True,
    )
    rows = [("expected number of trials", f"{count.expected():,.6g}")]
    rows += [(f"number of trials, {level:.0%} quantile", f"{count.quantile(level):,}") for level in QUANTILES]
    if (none := count.probability_of_zero()) > 0.0:
        rows.append(("probability of no trial, which releases a fixed symbol", f"{none:.3g}"))
    for top in TOP_FRACTIONS:
        probability = min(success_probability(count, top) + _QUADRATURE_ERROR, 1.0)
        rows.append((f"probability of a trial among the best {top:.0%} of candidates", percent_down(probability)))
    return {"text": plan.count, "chart": chart, "rows": rows}
