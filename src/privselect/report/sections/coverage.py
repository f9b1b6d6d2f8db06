"""What is covered, what is not, and what all of it rests on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from privselect.certificates.statement import granted, selects
from privselect.report.document import Code, Facts, Heading, Items, Said, Section, paragraph
from privselect.report.number_format import at_most
from privselect.report.sections.numbers import NOT_DECLARED

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.verification_result import Verdict
    from privselect.report.document import Block, Words
    from privselect.report.source import Released
    from privselect.report.verified_numbers import Proved


_UNPROTECTED = "So says release.json beside the certificate. No hash and no signature covers that file: anyone can change it."


def the_coverage(certificate: Certificate, proved: Proved, released: Released | None) -> Section:
    """What leaves, what must not, and what the guarantee leaves out."""
    blocks: list[Block] = [Facts(tuple(_covered(certificate, proved.gap)))]
    if released is not None:
        blocks += [Heading("What was released"), paragraph(_UNPROTECTED), Facts(tuple(_release(released)))]
    return Section("coverage", "What is covered, and what is not", tuple(blocks))


def the_caveats(certificate: Certificate, verdict: Verdict) -> Section:
    """What nobody can check from here."""
    blocks: list[Block] = [
        paragraph("The numbers are proved. What they are about is taken on trust, and the promise fails where one of these does not hold:"),
        _lines(tuple(_assumed(certificate))),
    ]
    if verdict.unprotected:
        signed = "Only a signature by a known key" if verdict.signed_by is not None else "It is unsigned. Only a signature by a known key"
        blocks += [
            paragraph(f"{signed} protects the following, as anyone can change it and make all the rest anew:"),
            _lines(verdict.unprotected),
        ]
    blocks += [Heading("The certificate in its own words"), paragraph(certificate.statement, kind="quote")]
    return Section("caveats", "What it rests on", tuple(blocks))


def _covered(certificate: Certificate, gap: float | None) -> Iterator[tuple[str, Words | Items]]:
    declared, run = certificate.promise.declared, certificate.run
    yield "released", (certificate.released,)
    yield "withheld", _lines(certificate.withheld)
    if selects(certificate.promise.described()) or declared.score is not None:
        yield "how the score is private", NOT_DECLARED if declared.score is None else (Said(declared.score),)
    if declared.not_covered:
        yield "not covered", _quoted(declared.not_covered)
    else:
        yield "not covered", ("no other access to the data was declared; any there is, is not covered",)
    if run is not None and run.notes:
        yield "notes on the run", _quoted(run.notes)
    if run is not None:
        yield "randomness", (Said(run.randomness), " (insecure)" if run.insecure else "")
    labels = certificate.theorems
    yield "theorems", (", ".join(labels) if labels else "none are needed: closed forms suffice",)
    apart = "no lower end above 0 is proved" if gap is None else f"the two ends are apart by {at_most(gap)}, relative"
    yield "accuracy", (f"{apart}; {certificate.accuracy.direction}",)


def _release(released: Released) -> Iterator[tuple[str, Words | Items]]:
    if released.candidate is None:
        yield "candidate", ("the fallback: no trial was drawn or all failed, and which of the two stays secret",)
    else:
        chosen = released.candidate.items()
        yield "candidate", Items(tuple((Code(name), " = ", Code(json.dumps(value, ensure_ascii=False))) for name, value in chosen))
        yield "score of the winner", (Code(json.dumps(released.score)),)
    if released.artifact is not None:
        yield "file", (Code(released.artifact),)


def _assumed(certificate: Certificate) -> Iterator[str]:
    run, promise = certificate.run, certificate.promise
    trial = "a trial" if promise.count is not None else "what was run"
    yield f"The program does what is described: {trial} leaks no more than the mechanism says. No program can check this of another."
    chosen = promise.described()
    if selects(chosen):
        yield "K comes from its law, and nobody learns it, not even from how long the run takes."
        yield "Each trial draws its candidate by itself, from a law that was fixed before the data was touched."
        yield "The score is part of what the guarantee of a trial covers, and a trial that fails counts as one with the worst score."
    yield from granted(chosen)
    yield "What is protected is one record. Whose data is in several of them is protected less: each record costs its own share."
    yield "Nothing leaves but what is released: no logs, no other outputs, nothing of what is withheld."
    runs = 1 if run is None else run.runs
    yield (
        f"It is {'one run' if runs == 1 else f'{runs:,} runs'} on this data, and no more. Another run, and every other use of the same "
        "data, costs something of its own."
    )
    yield "What is declared is the word of whoever declared it: the unit, the trust model, the score, what is not covered."


def _lines(lines: Sequence[str]) -> Items:
    return Items(tuple((line,) for line in lines))


def _quoted(lines: Sequence[str]) -> Items:
    return Items(tuple((Said(line),) for line in lines))
