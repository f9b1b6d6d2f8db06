"""What a report says, from a certificate and what verify found: data alone."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING

from privselect.report.document import Code, Content, Items, Mark, Said, Section, paragraph
from privselect.report.number_format import at_most, listed
from privselect.report.sections.comparison import the_others
from privselect.report.sections.coverage import the_caveats, the_coverage
from privselect.report.sections.curves import the_curves
from privselect.report.sections.numbers import the_numbers
from privselect.report.sections.summary import in_plain_words
from privselect.report.sections.verification import how_to_check
from privselect.report.verified_numbers import proved_of
from privselect.selection.compare import compare
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.verification_result import Verdict
    from privselect.report.source import Released


@dataclass(frozen=True, slots=True)
class Checked:
    """A certificate's file by its name, the verdict, what it was held against, and what was released beside it."""

    name: str
    verdict: Verdict
    promise_digest: str | None = None
    key: str | None = None
    released: Released | None = None


def content_of(checked: Checked) -> Content:
    """The whole report; of a certificate that is refused, the reasons alone."""
    certificate = checked.verdict.certificate
    if not checked.verdict.holds or certificate is None:
        return _refused(checked)
    verdict, prices = checked.verdict, compare(certificate.promise.described(), delta=certificate.total.delta)
    proved = proved_of(certificate, verdict)
    marks = tuple(_marks(checked, certificate))
    sections = (
        in_plain_words(certificate, proved),
        the_numbers(certificate, proved, prices),
        the_curves(certificate, proved),
        the_others(certificate, prices),
        the_coverage(certificate, proved, checked.released),
        the_caveats(certificate, verdict),
        how_to_check(checked.name, certificate),
    )
    return Content(
        title="Privacy report",
        subject=_subject(certificate),
        headline=", ".join(["The claim holds", *(mark.name.lower() for mark in marks if mark.grave)]),
        figure=f"({at_most(proved.epsilon)}, {write_value(certificate.total.delta)})-differential privacy",
        verdict=(f"Every number of the certificate was computed again, from its text forms alone, by {_us()}. ", *_against(checked)),
        marks=marks,
        sections=tuple(section for section in sections if section is not None),
        colophon=f"Written by {_us()} from the certificate. This file holds no script and loads nothing.",
    )


def _refused(checked: Checked) -> Content:
    reasons = Items(tuple((reason,) for reason in checked.verdict.reasons))
    told = paragraph(
        "The certificate was read, and is not accepted. Rely on nothing in it. The reasons quote what is wrong in it, and nothing else of "
        "it is repeated here."
    )
    return Content(
        title="Privacy report",
        subject="A certificate that is refused",
        headline="REFUSED",
        figure=None,
        verdict=(f"By {_us()}, from the text forms of the certificate. ", *_against(checked)),
        marks=(),
        sections=(Section("reasons", "Why", (told, reasons)), how_to_check(checked.name, None)),
        colophon=f"Written by {_us()}. This file holds no script and loads nothing.",
    )


def _us() -> str:
    return f"privselect {version('privselect')}"


def _subject(certificate: Certificate) -> str:
    what = "one mechanism" if certificate.promise.count is None else "the best of K private trials"
    if certificate.run is None:
        return f"Of a plan: {what}"
    return f"Of a release: {what}" if certificate.run.runs == 1 else f"Of {certificate.run.runs:,} releases: {what}"


def _against(checked: Checked) -> Iterator[str | Code]:
    against = ["the plan that was given"] * (checked.promise_digest is not None) + ["the signer that was given"] * (checked.key is not None)
    if against:
        yield f"It was held against {listed(against)}."


def _marks(checked: Checked, certificate: Certificate) -> Iterator[Mark]:
    run, signer, missing = certificate.run, checked.verdict.signed_by, certificate.promise.declared.missing
    if run is not None and run.insecure:
        randomness = ("The randomness is ", Said(run.randomness), ", which others may know. Release nothing on the strength of this.")
        yield Mark("Insecure", randomness, grave=True)
    if missing:
        yield Mark(
            "A draft", (f"Not declared: {listed(list(missing))}. Until it is, nobody is promised anything in particular.",), grave=True
        )
    if run is None:
        yield Mark("A plan", ("No run is described here: this is what one would cost.",))
    elif run.runs > 1:
        yield Mark(
            f"{run.runs:,} runs", (f"The plan was run {run.runs:,} times on the same data. The claim is about all of them together.",)
        )
    if signer is None:
        yield Mark("Unsigned", ("Anyone could have made this certificate. What that leaves open is said below, under what it rests on.",))
    elif checked.key is None:
        yield Mark("Signed, by whom?", ("The holder of ", Code(signer), " signed. Whose key that is must be known from elsewhere."))
    else:
        yield Mark("Signed", ("By the key that was asked for, ", Code(signer), "."))
