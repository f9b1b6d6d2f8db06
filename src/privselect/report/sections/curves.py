"""The whole curve of the claim, and the law of K."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.planning.plan import QUANTILES, SHARES
from privselect.planning.success_probability import chance_of_best
from privselect.report.document import Curve, Figures, Section, Table, paragraph
from privselect.report.number_format import at_most, percent_down
from privselect.report.survival_curve import survival
from privselect.text_forms import parse, write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.certificates.certificate import Certificate
    from privselect.counts import Count
    from privselect.report.document import Block, Words
    from privselect.report.verified_numbers import Proved

_QUADRATURE = 1e-9  # how far off a chance may be: without it, a chance of 1% would be shown as 0.9%


def the_curves(certificate: Certificate, proved: Proved) -> Section:
    """The claim at every epsilon and, where there is a law of K, what it says of the number of trials."""
    law = None if certificate.promise.count is None else parse(certificate.promise.count)
    title = "The curve" if law is None else "The curve, and the law of K"
    return Section("curves", title, tuple(_blocks(certificate, law, proved)))


def _blocks(certificate: Certificate, law: Count | None, proved: Proved) -> Iterator[Block]:
    charts: list[tuple[Curve, Words]] = [(_profile(proved, certificate.total.delta), _PROFILE)]
    if law is not None:
        charts.append((_law(law), _LAW))
    yield Figures(tuple(charts))
    if law is None:
        return
    yield Table("The law of K, known before any data is touched", (), tuple(_trials(law)))
    runs = 1 if certificate.run is None else certificate.run.runs
    each = "" if runs == 1 else f" Each of the {runs:,} runs drew a K of its own."
    yield paragraph(
        f"All of this follows from the plan. The K that is drawn is secret, and nothing on this page depends on it.{each}", kind="note"
    )


_PROFILE: Words = (
    "The claim is one point of many that hold together, each an epsilon with its delta, from above. Between them the line is only drawn.",
)
_LAW: Words = ("The chance that k trials or more are run.",)


def _profile(proved: Proved, delta: float) -> Curve:
    first, last = proved.curve[0], proved.curve[-1]
    label = f"({at_most(proved.epsilon)}, {write_value(delta)})"
    return Curve(
        "profile",
        "delta over epsilon",
        f"A falling curve on a logarithmic scale: from delta {at_most(first.delta)} at epsilon {at_most(first.epsilon)} to delta "
        f"{at_most(last.delta)} at epsilon {at_most(last.epsilon)}. The certified point {label} is marked.",
        "epsilon",
        "delta",
        tuple((point.epsilon, point.delta) for point in proved.curve),
        logarithmic=True,
        mark=(proved.epsilon, delta, label),
    )


def _law(law: Count) -> Curve:
    half, most = law.quantile(0.5), law.quantile(0.99)
    return Curve(
        "law",
        "the law of K",
        f"Falling steps: the chance that k trials or more are run. In half of all cases it is at most {half:,} trials, in 99% at most "
        f"{most:,}.",
        "trials, k",
        "P(K \u2265 k)",
        survival(law),
        steps=True,
    )


def _trials(law: Count) -> Iterator[tuple[Words, ...]]:
    yield ("trials, in the mean",), (f"{law.expected():,.6g}",)
    for level in QUANTILES:
        yield (f"trials, in {level:.0%} of all cases at most",), (f"{law.quantile(level):,}",)
    none = law.probability_of_zero()
    if none > 0.0:
        yield ("chance that no trial is run, and a fixed symbol is released",), (f"{none:.3g}",)
    for share in SHARES:
        yield (
            (f"chance that some trial is among the best {share:.0%} of the candidates",),
            (percent_down(min(chance_of_best(law, share) + _QUADRATURE, 1.0)),),
        )
