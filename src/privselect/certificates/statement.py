"""The claim in one paragraph of plain words. The wording belongs to the version of the certificate: verify writes it anew."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, Context, Decimal
from typing import TYPE_CHECKING

from privselect._util.validation import truncate
from privselect.certificates.theorems import parts_of
from privselect.mechanisms import Disjoint
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.noisy_max import NoisyMax
from privselect.regression import OPS, ProposeTestRelease
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.certificates.number_models import Ends, Total
    from privselect.certificates.plan_commitment import Promise
    from privselect.certificates.run_metadata import Run
    from privselect.mechanisms import Mechanism

_LONGEST = 300  # characters of a text form; the certificate holds it in full
_RELATIONS = {
    ADD_REMOVE: "one has a record more than the other",
    REPLACE_ONE: "they differ in one record",
    ANY: "the mechanism's own guarantee is stated for them (which ones is not part of its description)",
}
_PUBLIC = {True: "public", False: "not public", None: "not declared whether public"}
_ASSUMED = (
    "K is drawn from its law and never revealed, not even by timing; each trial draws its candidate independently, from a law fixed "
    "before the data is touched; the score is part of what a trial's guarantee covers; a trial that fails counts as one with the worst "
    "score and is not run again; and only the winner is released"
)
_SPLIT = (
    "Parts of the data that are disjoint share no record, and which part a record lies in depends on that record alone and is the same "
    "in every trial of a selection."
)
_ASSUMED_ALONE = "the mechanism is run as described and nothing but its output is released"


def write_statement(promise: Promise, total: Total, base: Ends, neighbours: str, run: Run | None) -> str:
    """Who is protected, from what, by how much, and what is taken for granted."""
    return " ".join(_sentences(promise, total, base, neighbours, run))


def _sentences(promise: Promise, total: Total, base: Ends, neighbours: str, run: Run | None) -> Iterator[str]:
    declared, chosen = promise.declared, promise.described()
    if declared.missing:
        yield f"DRAFT: not declared: {', '.join(declared.missing)}."
    if run is not None and run.insecure:
        yield f"INSECURE: the randomness is {_quoted(run.randomness)}, which others may know; release nothing on the strength of this."
    yield "This is about a plan, not about a run that took place." if run is None else f"This is about {_times(run.runs)} of a plan."
    yield (
        f"Protected is {'a unit that is not declared' if declared.unit is None else _quoted(declared.unit)}; "
        f"data sets are neighbours where {_RELATIONS[neighbours]}."
    )
    action = _action(promise)
    if run is not None and run.runs > 1:
        action = f"{action.removesuffix(',')}, {run.runs} times on the same data,"
    yield (
        f"{action} is (epsilon, delta)-differentially private with epsilon = {rounded_up(total.upper)} "
        f"and delta = {write_value(total.delta)}{_alone(chosen, base)}."
    )
    choice = selects(chosen)
    yield f"This holds for {_times(1 if run is None else run.runs)} on the same data, if {_assumed(chosen, selects=choice)}."
    yield from granted(chosen)
    if choice:
        yield f"How the score is private: {'not declared' if declared.score is None else _quoted(declared.score)}."
    yield f"Trust model: {'not declared' if declared.trust_model is None else _quoted(declared.trust_model)}."
    yield f"Number of records: {_PUBLIC[declared.records_public]}."
    if declared.not_covered:
        yield f"Not covered are these accesses to the data: {', '.join(map(_quoted, declared.not_covered))}."
    else:
        yield "No other access to the data was declared; any there is, is not covered."
    if run is not None and run.notes:
        yield f"Of the run: {', '.join(map(_quoted, run.notes))}."


def selects(mechanism: Mechanism) -> bool:
    """Whether there is a selection somewhere in it."""
    return any(isinstance(part, Selection) for part in parts_of(mechanism))


def granted(mechanism: Mechanism) -> Iterator[str]:
    """What is taken for granted about its parts, a sentence for each."""
    if any(isinstance(part, Disjoint) for part in parts_of(mechanism)):
        yield _SPLIT
    yield from dict.fromkeys(sentence(part) for part in parts_of(mechanism) for kind, sentence in _GRANTED if isinstance(part, kind))


def _scores(choice: NoisyMax) -> str:
    """What is taken for granted about the scores of a noisy max, and that nothing but the index leaves."""
    moved = "each of its scores" if choice.changed == choice.m else f"at most {choice.changed} of its scores"
    way = ", all of them the same way" if choice.monotone else ""
    return (
        f"In each round of {truncate(str(choice), _LONGEST)} one record changes {moved} by at most 1{way}, noise of exactly this law is "
        "drawn for each score, and only the index of the greatest is used."
    )


def _tested(whole: ProposeTestRelease) -> str:
    """What is taken for granted about a test and what it lets pass."""
    wrong = "releases a bound that is wrong for the data" if whole.calibrated else "lets a proposal pass that is bad for the data"
    return (
        f"In {truncate(str(whole), _LONGEST)} the test {wrong} with chance at most {write_value(whole.failure)}; where it does not, "
        f"the release leaks at most {truncate(str(whole.target), _LONGEST)}."
    )


def _rows(sample: OPS) -> str:
    """What is taken for granted about the rows of a regression."""
    return (
        f"In {truncate(str(sample), _LONGEST)} no row has a greater leverage or signal than stated, both measured without that row, and "
        "one sample of the posterior is released."
    )


# A sentence for each kind of part that takes something for granted.
_GRANTED: tuple[tuple[type, Callable[..., str]], ...] = ((NoisyMax, _scores), (ProposeTestRelease, _tested), (OPS, _rows))


def _action(promise: Promise) -> str:
    if promise.count is None:
        return f"Releasing the output of {truncate(promise.mechanism, _LONGEST)}"
    return (
        f"Releasing only the best of K trials of {truncate(promise.mechanism, _LONGEST)}, "
        f"with K drawn from {truncate(promise.count, _LONGEST)} and kept secret,"
    )


def _alone(chosen: Mechanism, base: Ends) -> str:
    if not isinstance(chosen, Selection):
        return ""
    return f"; one trial alone has epsilon = {rounded_up(base.upper) if base.upper != 'infinite' else 'infinity'} at this delta"


def _assumed(chosen: Mechanism, *, selects: bool) -> str:
    if isinstance(chosen, Selection):
        return _ASSUMED
    return f"{_ASSUMED_ALONE}; and if, in each selection in it, {_ASSUMED}" if selects else _ASSUMED_ALONE


def _times(runs: int) -> str:
    return "one run" if runs == 1 else f"{runs} runs"


def rounded_up(value: float) -> str:
    """Five digits; never less than the value itself."""
    digits = Context(prec=5, rounding=ROUND_CEILING).plus(Decimal(value))
    return f"{digits:f}" if value == 0.0 or 1e-4 <= value < 1e5 else f"{digits:e}"


def _quoted(text: str) -> str:
    # In quotes, so that the user's words cannot pass for ours.
    return json.dumps(text, ensure_ascii=False)
