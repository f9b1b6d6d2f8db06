"""The fields of a certificate that follow from other fields, such as the statement.

The texts belong to the certificate format: verify compares them literally, so a changed text needs a new format version.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import format_digits_up
from privselect._util.validation import truncate
from privselect.certificates.model import ROUNDING, Accuracy, compose_runs
from privselect.certificates.theorems import theorem_labels, walk_parts
from privselect.mechanisms import Disjoint
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.noisy_max import NoisyMax
from privselect.regression import OPS, ProposeTestRelease
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.certificates.model import EpsilonInterval, PlanTerms, RunMetadata, TotalEpsilon
    from privselect.mechanisms import Mechanism

_LONGEST = 300  # characters of a text form in the statement; the certificate has the complete one
_RELATIONS = {
    ADD_REMOVE: "one has one record more than the other",
    REPLACE_ONE: "they differ in one record",
    ANY: "the guarantee of the mechanism holds for them (its description does not say which ones)",
}
_PUBLIC = {True: "public", False: "not public", None: "not declared"}
_SELECTION_ASSUMPTIONS = (
    "(1) K is drawn from its distribution and is never revealed, not even through timing. (2) Each trial draws its candidate "
    "independently, from a distribution that was fixed before the data was used. (3) The guarantee of a trial covers its score. "
    "(4) A failed trial counts as the worst score and is not run again. (5) Only the winner is released."
)
_MECHANISM_ASSUMPTIONS = "(1) The mechanism is run as described. (2) Only its output is released."
_DISJOINT_ASSUMPTIONS = (
    "Disjoint parts of the data share no record. The part that a record belongs to depends only on that record and is the same in every "
    "trial of a selection."
)
_WITHHELD_BY_SELECTION = (
    "K, the number of trials",
    "the scores, candidates and outputs of all losing trials",
    "the run time and everything else that depends on K",
)
_WITHHELD_BY_MECHANISM = ("all intermediate values of the mechanism",)


def derived_fields(
    plan: PlanTerms, total: TotalEpsilon, base: EpsilonInterval, run: RunMetadata | None, accuracy: float | None
) -> dict[str, Any]:
    """Return every field that follows from the given ones."""
    composed = compose_runs(plan.whole, run)
    return {
        "statement": " ".join(_sentences(plan, total, base, composed.neighbours, run)),
        "draft": bool(plan.declared.missing),
        "plan_hash": plan.digest(),
        "neighbours": composed.neighbours,
        "theorems": theorem_labels(composed, lower=total.lower is not None),
        "accuracy": Accuracy(requested=accuracy, gap=total.upper / total.lower - 1.0 if total.lower else None, rounding=ROUNDING),
        "released": _released(plan.whole, run),
        "withheld": _WITHHELD_BY_SELECTION if contains_selection(composed) else _WITHHELD_BY_MECHANISM,
    }


def contains_selection(mechanism: Mechanism) -> bool:
    """Return whether the mechanism is or contains a selection."""
    return any(isinstance(part, Selection) for part in walk_parts(mechanism))


def assumptions(mechanism: Mechanism) -> Iterator[str]:
    """Yield a sentence for each assumption about a part of the mechanism."""
    if any(isinstance(part, Disjoint) for part in walk_parts(mechanism)):
        yield _DISJOINT_ASSUMPTIONS
    yield from dict.fromkeys(
        describe(part) for part in walk_parts(mechanism) for kind, describe in _PART_ASSUMPTIONS if isinstance(part, kind)
    )


def _sentences(plan: PlanTerms, total: TotalEpsilon, base: EpsilonInterval, neighbours: str, run: RunMetadata | None) -> Iterator[str]:
    """Yield the claim, its assumptions and the declarations."""
    declared, selection = plan.declared, plan.whole
    runs, selects = 1 if run is None else run.runs, contains_selection(selection)
    if declared.missing:
        yield f"DRAFT: not declared: {', '.join(declared.missing)}."
    if run is not None and run.insecure:
        yield f"INSECURE: others may know the randomness ({_quoted(run.randomness)}), so release nothing based on this certificate."
    yield "This certificate covers a plan, not a run of it." if run is None else f"This certificate covers {_runs(runs)} of a plan."
    yield f"Unit of privacy: {_declared(declared.unit)}. Two data sets are neighbours if {_RELATIONS[neighbours]}."
    one_trial = f"; one trial alone has epsilon = {_format_upper(base)} at this delta" if isinstance(selection, Selection) else ""
    yield (
        f"{_action(plan, runs)} is (epsilon, delta)-differentially private with epsilon = {format_digits_up(total.upper)} "
        f"and delta = {write_value(total.delta)}{one_trial}."
    )
    yield f"The claim holds for {_runs(runs)} on the same data under these assumptions:"
    if isinstance(selection, Selection):
        yield _SELECTION_ASSUMPTIONS
    else:
        yield _MECHANISM_ASSUMPTIONS
        if selects:
            yield f"For each selection in the mechanism: {_SELECTION_ASSUMPTIONS}"
    yield from assumptions(selection)
    if selects:
        yield f"Privacy of the score: {_declared(declared.score)}."
    yield f"Trust model: {_declared(declared.trust_model)}."
    yield f"Number of records: {_PUBLIC[declared.records_public]}."
    if declared.not_covered:
        yield f"The claim does not cover these accesses to the data: {', '.join(map(_quoted, declared.not_covered))}."
    else:
        yield "No other access to the data was declared, and the claim covers none."
    if run is not None and run.notes:
        yield f"Notes on the run: {', '.join(map(_quoted, run.notes))}."


def _action(plan: PlanTerms, runs: int) -> str:
    repeated = "" if runs == 1 else f" {runs} times on the same data"
    if plan.count is None:
        return f"Releasing the output of {truncate(plan.mechanism, _LONGEST)}{repeated}"
    return (
        f"Releasing only the best of K trials of {truncate(plan.mechanism, _LONGEST)}{repeated}, "
        f"with K drawn from {truncate(plan.count, _LONGEST)} and kept secret,"
    )


def _format_upper(base: EpsilonInterval) -> str:
    return format_digits_up(base.upper) if base.upper != "infinite" else "infinity"


def _runs(runs: int) -> str:
    return "one run" if runs == 1 else f"{runs} runs"


def _declared(text: str | None) -> str:
    return "not declared" if text is None else _quoted(text)


def _quoted(text: str) -> str:
    # Quotes separate the user's words from those of privselect.
    return json.dumps(text, ensure_ascii=False)


def _released(mechanism: Mechanism, run: RunMetadata | None) -> str:
    if isinstance(mechanism, Selection):
        released = "only the output of the best-scoring trial"
        if mechanism.count.probability_of_zero() > 0.0:
            released += ", or a fixed symbol if no trial is drawn"
    else:
        inner = ", with only the winner of each selection in it" if contains_selection(mechanism) else ""
        released = f"the output of the mechanism{inner}"
    return released if run is None or run.runs == 1 else f"for each of {run.runs} runs: {released}"


def _noisy_max_assumptions(noisy_max: NoisyMax) -> str:
    changed = "each score" if noisy_max.changed_scores == noisy_max.m else f"at most {noisy_max.changed_scores} of the scores"
    direction = ", all in the same direction" if noisy_max.monotone else ""
    return (
        f"In each round of {truncate(str(noisy_max), _LONGEST)} one record changes {changed} by at most 1{direction}, each score gets "
        "noise of exactly this distribution, and only the index of the largest noisy score is used."
    )


def _test_assumptions(release: ProposeTestRelease) -> str:
    failure = "releases a bound that is wrong for the data" if release.calibrated else "accepts a proposal that is wrong for the data"
    return (
        f"In {truncate(str(release), _LONGEST)} the test {failure} with probability at most {write_value(release.failure)}; otherwise "
        f"the release leaks at most {truncate(str(release.target), _LONGEST)}."
    )


def _regression_assumptions(sample: OPS) -> str:
    return (
        f"In {truncate(str(sample), _LONGEST)} no row has a larger leverage or signal than stated, both measured without that row, and "
        "one posterior sample is released."
    )


_PART_ASSUMPTIONS: tuple[tuple[type, Callable[..., str]], ...] = (
    (NoisyMax, _noisy_max_assumptions),
    (ProposeTestRelease, _test_assumptions),
    (OPS, _regression_assumptions),
)
