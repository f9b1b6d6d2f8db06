"""The numbers of the claim, and what is declared beside them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from privselect.certificates.certify import base_of
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.report.document import Code, Facts, Said, Section, Strong
from privselect.report.number_format import at_least, at_most, interval, one_in, percent_up
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.certificates.certificate import Certificate
    from privselect.report.document import Words
    from privselect.report.verified_numbers import Proved
    from privselect.selection.compare import Comparison

_RELATIONS = {
    ADD_REMOVE: "two data sets are neighbours where one has a record more than the other",
    REPLACE_ONE: "two data sets are neighbours where they differ in one record, and have equally many",
    ANY: "the mechanism's own, which is not part of its description",
}
_PUBLIC = {True: "public", False: "not public"}
NOT_DECLARED: Words = (Strong("not declared"),)


def the_numbers(certificate: Certificate, proved: Proved, prices: Comparison) -> Section:
    """What is certified, how much of the budget that is, and for whom."""
    return Section("numbers", "The numbers", (Facts(tuple(_certified(certificate, proved, prices))), Facts(tuple(_declared(certificate)))))


def _certified(certificate: Certificate, proved: Proved, prices: Comparison) -> Iterator[tuple[str, Words]]:
    total, promise, base = certificate.total, certificate.promise, base_of(prices)
    epsilon = proved.epsilon
    yield "epsilon", (Strong(at_most(epsilon)), f", for {_what(certificate)}")
    if proved.lower is None:
        yield "no less than", ("no lower end is proved",)
    else:
        yield "no less than", (f"{at_least(proved.lower)}: the worst that fits the description needs as much",)
    yield "delta", (Strong(write_value(total.delta)), f", {one_in(total.delta)}")
    yield "budget", (f"epsilon {write_value(promise.epsilon)} at delta {write_value(promise.delta)}{_used(epsilon, promise.epsilon)}",)
    if promise.count is not None:
        yield "one trial alone", (f"epsilon {interval(base.lower, base.upper)} at the same delta",)
    if proved.gaussian_dp is not None:
        pair = proved.gaussian_dp
        yield "as Gaussian DP", (f"mu {at_most(pair.mu)}, but for a leak of {at_most(pair.delta)}: for composing it with other releases",)


def _declared(certificate: Certificate) -> Iterator[tuple[str, Words]]:
    promise, declared = certificate.promise, certificate.promise.declared
    yield "protected", NOT_DECLARED if declared.unit is None else (Said(declared.unit),)
    yield "neighbours", (_RELATIONS[certificate.neighbours],)
    yield "trust model", NOT_DECLARED if declared.trust_model is None else (Said(declared.trust_model),)
    yield "number of records", NOT_DECLARED if declared.records_public is None else (_PUBLIC[declared.records_public],)
    yield "one trial" if promise.count is not None else "mechanism", (Code(promise.mechanism),)
    if promise.count is not None:
        yield "law of K", (Code(promise.count),)


def _what(certificate: Certificate) -> str:
    runs = 1 if certificate.run is None else certificate.run.runs
    one = "all that is released" if certificate.promise.count is None else "the whole selection, however many trials it took"
    return one if runs == 1 else f"{runs:,} runs together"


def _used(upper: float, budget: float) -> str:
    """Nothing is used of a budget of nothing; the quotient, which may have been rounded down, is taken one unit in the last place up."""
    if budget == 0.0:
        return ""
    share = math.nextafter(upper / budget, math.inf)
    return f", of which {percent_up(share if upper > budget else min(share, 1.0))} is used"
