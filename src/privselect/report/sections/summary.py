"""The promise in plain words, for somebody who has not heard of epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privselect.counts import Fixed
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.report.attack_bounds import most_found, most_guessed
from privselect.report.document import Heading, Raised, Said, Section, Strong, Table, paragraph
from privselect.report.number_format import at_most, factor_up, one_in, percent_up
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.number_models import Point
    from privselect.mechanisms import Mechanism
    from privselect.report.document import Block, Words
    from privselect.report.verified_numbers import Proved

_FALSE_ALARMS = (0.01, 0.05)
_NEXT_TO_NOTHING = 0.95  # of guesses right, where blind ones reach 0.5

# What is changed in the data, and what an attacker asks, by the neighbouring relation.
_OTHERWISE = {
    ADD_REMOVE: "with one record more or less",
    REPLACE_ONE: "with any other record in the place of one",
    ANY: "on any neighbouring data (which data are neighbours belongs to the mechanism, and is not part of its description)",
}
_IN_OR_OUT = "It raises a wrong alarm for some of the records that are not in the data, and finds some of those that are."
_ONE_OR_OTHER = "It raises a wrong alarm in some of the cases where it is the first, and finds some of those where it is the second."
_ASKED = {
    ADD_REMOVE: ("whether a record is in the data", _IN_OR_OUT),
    REPLACE_ONE: ("which of two records is in the data", _ONE_OR_OTHER),
    ANY: ("which of two neighbouring data sets was used", _ONE_OR_OTHER),
}
_POWER: Words = ("e", Raised("epsilon"))


def in_plain_words(certificate: Certificate, proved: Proved) -> Section:
    """What is released, to whom it is promised, and what the two numbers leave to an attacker."""
    blocks = (*_promised(certificate, proved.epsilon), Heading("What that leaves to an attacker"), *_attack(certificate, proved.curve))
    return Section("summary", "In plain words", blocks)


def _promised(certificate: Certificate, epsilon: float) -> Iterator[Block]:
    total, unit, shown = certificate.total, certificate.promise.declared.unit, at_most(epsilon)
    yield paragraph(_released(certificate))
    protected: Words = (Strong("a unit that is not declared"),) if unit is None else (Said(unit), ", whichever it is")
    yield paragraph(
        "The promise is made to ",
        *protected,
        f": what is released would come out nearly as likely {_OTHERWISE[certificate.neighbours]}. "
        "It holds whatever an observer knows already, and whatever is done with the release afterwards.",
    )
    yield paragraph(
        "How near is said by two numbers, epsilon and delta. Whatever somebody looks for in the release, one record changes its chance "
        "at most by the factor ",
        *_POWER,
        " = e",
        Raised(shown),
        f" = {factor_up(float(shown))}, and beyond that by at most delta = {write_value(total.delta)}, which is {one_in(total.delta)}.",
    )


def _released(certificate: Certificate) -> str:
    run = certificate.run
    what = f"What {'is to be' if run is None else 'was'} released is {certificate.released}."
    said = f"On private data {_trials(certificate.promise.described())}. {what}"
    if run is None:
        return f"{said} This is a plan: whether and how it was run is not known here."
    return said if run.runs == 1 else f"{said} What follows is about all of it together."


def _trials(described: Mechanism) -> str:
    if not isinstance(described, Selection):
        return "one computation is run"
    count = described.count
    if isinstance(count, Fixed):
        return f"{count.k:,} {'trial is' if count.k == 1 else 'trials are'} run"
    return "trials are run; how many, K, is drawn at random from a law that is public, and stays secret"


def _attack(certificate: Certificate, curve: Sequence[Point]) -> Iterator[Block]:
    question, test = _ASKED[certificate.neighbours]
    guessed = most_guessed(curve)
    yield paragraph(
        f"Somebody knows all else there is to know, and puts the release to a test, to tell {question}. {test} "
        "However clever the test, this is the most that it finds:"
    )
    found = {share: most_found(curve, share) for share in _FALSE_ALARMS}
    rows = tuple(((f"{share:.0%}",), (f"at most {percent_up(most)}",), (f"{share:.0%}",)) for share, most in found.items())
    yield Table("The most that any test finds", ("wrong alarms", "found", "found by chance alone"), rows)
    yield paragraph(
        f"And where both answers are as likely beforehand, a guess is right in at most {percent_up(guessed)} of all cases; "
        "a coin is right in 50%."
    )
    if guessed >= _NEXT_TO_NOTHING:
        yield paragraph(Strong("Bounds this near to 100% promise next to nothing against such an attack."))
    yield paragraph(
        "With f the share of wrong alarms, the share found is at most ",
        *(*_POWER, " f + delta, and at most 1 \u2212 (1 \u2212 f \u2212 delta) / ", *_POWER),
        ". A guess at even odds is right with a chance of at most 1/2 + (",
        *(*_POWER, " \u2212 1 + 2 delta) / (2 ", *_POWER, " + 2). "),
        "Taken is the least over all points of the curve below, rounded up. "
        "No test is beyond these bounds; one that can be run mostly finds less.",
        kind="note",
    )
    yield paragraph(
        "Not promised is that nothing can be learned about people: what holds for many at once, such as a link between two "
        "traits, may be learned from the release, and is true of somebody whether or not they are in the data."
    )
