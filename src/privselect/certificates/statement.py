"""The fields of a certificate that follow from other fields, such as the statement.

The texts belong to the certificate format: verify compares them literally, so a changed text needs a new format version.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.rounding import format_digits_up
from privselect._util.validation import truncate
from privselect.certificates.assumptions import LONGEST, contains_selection, part_assumptions, stage_assumptions
from privselect.certificates.model import ROUNDING, Accuracy, compose_runs
from privselect.certificates.theorems import theorem_labels
from privselect.mechanisms.neighbours import ADD_REMOVE, ANY, REPLACE_ONE
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.certificates.certificate import Certificate
    from privselect.certificates.model import EpsilonInterval, PlanTerms, RunMetadata, TotalEpsilon

_RELATIONS = {
    ADD_REMOVE: "one has one record more than the other",
    REPLACE_ONE: "they differ in one record",
    ANY: "the guarantee of the mechanism holds for them (its description does not say which ones)",
}
_PUBLIC = {True: "public", False: "not public", None: "not declared"}
CLAIMED = "What one trial leaks is a claim of the user: the trainer does not state it."
CLAIMED_BOTH = "What one trial and the final training leak is a claim of the user: the trainer does not state it."
_WITHHELD_BY_SELECTION = (
    "K, the number of trials",
    "the scores, candidates and outputs of all losing trials",
    "the run time and everything else that depends on K",
)
_WITHHELD_BY_MECHANISM = "all intermediate values of the mechanism"
_WITHHELD_BY_VISIBLE = "all intermediate values of the trials"
_WITHHELD_BY_STAGES = "all intermediate values of the trials and of the final training"
_WITHHELD_BY_FALLBACK = "the reason for a fixed symbol: no trial, failed trials or a failed final training"
_WITHHELD_SAMPLE = "the sample of the search and its size"


@dataclass(frozen=True, slots=True)
class Costs:
    """The epsilons that the statement quotes: of everything, of one trial alone, of the final training alone."""

    total: TotalEpsilon
    base: EpsilonInterval
    final_alone: EpsilonInterval | None

    @classmethod
    def of(cls, certificate: Certificate) -> Costs:
        """Return the costs that a certificate claims."""
        return cls(certificate.total, certificate.base, certificate.final_alone)


def derived_fields(plan: PlanTerms, costs: Costs, run: RunMetadata | None, accuracy: float | None) -> dict[str, Any]:
    """Return every field that follows from the given ones."""
    composed, total = compose_runs(plan.whole, run), costs.total
    return {
        "statement": " ".join(_sentences(plan, costs, composed.neighbours, run)),
        "draft": bool(plan.declared.missing),
        "plan_hash": plan.digest(),
        "neighbours": composed.neighbours,
        "theorems": theorem_labels(composed, lower=total.lower is not None),
        "accuracy": Accuracy(requested=accuracy, gap=total.upper / total.lower - 1.0 if total.lower else None, rounding=ROUNDING),
        "released": _released(plan, run),
        "withheld": tuple(_withheld(plan)),
    }


def claim_mark(plan: PlanTerms, run: RunMetadata | None) -> str | None:
    """Return the sentence that marks mechanisms as the user's claim; None if the trainer states them."""
    if run is None or not run.mechanism_claimed:
        return None
    return CLAIMED if plan.final is None else CLAIMED_BOTH


def describe_stages(plan: PlanTerms) -> dict[str, str]:
    """Return a description of each stage, by name."""
    trial = truncate(plan.mechanism, LONGEST)
    sample = "" if plan.subsample is None else f", on one secret sample with probability {plan.subsample} of each record"
    if plan.count is not None:
        search = f"the best of K trials of {trial}, K drawn from {truncate(plan.count, LONGEST)} and secret{sample}"
    elif plan.visible is not None:
        search = f"{_trials(plan.visible)} of {trial}, all released{sample}"
    else:
        return {"mechanism": f"{trial}{sample}"}
    stages = {"search": search}
    return stages if plan.final is None else {**stages, "final training": truncate(plan.final, LONGEST)}


def _sentences(plan: PlanTerms, costs: Costs, neighbours: str, run: RunMetadata | None) -> Iterator[str]:
    """Yield the claim, its assumptions and the declarations."""
    declared, runs = plan.declared, 1 if run is None else run.runs
    if declared.missing:
        yield f"DRAFT: not declared: {', '.join(declared.missing)}."
    if run is not None and run.insecure:
        yield f"INSECURE: others may know the randomness ({_quoted(run.randomness)}), so release nothing based on this certificate."
    yield "This certificate covers a plan, not a run of it." if run is None else f"This certificate covers {_runs(runs)} of a plan."
    if (claimed := claim_mark(plan, run)) is not None:
        yield claimed
    yield f"Unit of privacy: {_declared(declared.unit)}. Two data sets are neighbours if {_RELATIONS[neighbours]}."
    yield (
        f"{_action(plan, runs)} is (epsilon, delta)-differentially private with epsilon = {format_digits_up(costs.total.upper)} "
        f"and delta = {write_value(costs.total.delta)}{_alone(plan, costs)}."
    )
    yield f"The claim holds for {_runs(runs)} on the same data under these assumptions:"
    yield from map(str, stage_assumptions(plan))
    yield from part_assumptions(plan)
    if plan.visible is not None or contains_selection(plan.whole):
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
    trial = truncate(plan.mechanism, LONGEST)
    if plan.count is None and plan.visible is None:
        return f"Releasing the output of {trial}{'' if plan.subsample is None else ' on one secret sample of the records'}{repeated}"
    kind = "trials" if plan.final is None else "search trials"
    secret = plan.count is not None
    details = [f"with K drawn from {truncate(str(plan.count), LONGEST)} and kept secret"] if secret else []
    if plan.subsample is not None:
        details.append("with one secret sample of the records for all trials")
    what = f"only the best of K {kind} of {trial}" if secret else f"all outputs of {_trials(plan.visible or 1, kind)} of {trial}"
    if plan.final is not None:
        of_whom = "the winner's candidate" if secret else "a candidate chosen from the released results"
        what += f" and then the output of one final training {truncate(plan.final, LONGEST)} with {of_whom}"
    return f"Releasing {what}{repeated}{''.join(f', {detail}' for detail in details)}{',' if details else ''}"


def _alone(plan: PlanTerms, costs: Costs) -> str:
    """Return the clause with the costs of one trial alone and of the final training alone."""
    if plan.selection is None and plan.visible is None:
        return ""
    base = f"; one {'search ' if costs.final_alone else ''}trial alone has epsilon = {_format_upper(costs.base)}"
    final = "" if costs.final_alone is None else f" and the final training alone has epsilon = {_format_upper(costs.final_alone)}"
    return f"{base}{final} at this delta"


def _format_upper(interval: EpsilonInterval) -> str:
    return format_digits_up(interval.upper) if interval.upper != "infinite" else "infinity"


def _runs(runs: int) -> str:
    return "one run" if runs == 1 else f"{runs} runs"


def _trials(number: int, kind: str = "trials") -> str:
    return f"one {kind.removesuffix('s')}" if number == 1 else f"{number} {kind}"


def _declared(text: str | None) -> str:
    return "not declared" if text is None else _quoted(text)


def _quoted(text: str) -> str:
    # Quotes separate the user's words from those of privselect.
    return json.dumps(text, ensure_ascii=False)


def _released(plan: PlanTerms, run: RunMetadata | None) -> str:
    selection, trial = plan.selection, "trial" if plan.final is None else "search trial"
    if selection is not None:
        released = f"only the output of the best-scoring {trial}"
    elif plan.visible is not None:
        released = f"the outputs of all {_trials(plan.visible, f'{trial}s')}" if plan.visible > 1 else f"the output of the {trial}"
    else:
        inner = ", with only the winner of each selection in it" if contains_selection(plan.whole) else ""
        released = f"the output of the mechanism{inner}"
    if plan.final is not None:
        released += " and the output of the final training"
    if selection is not None and selection.count.probability_of_zero() > 0.0:
        released += ", or a fixed symbol if no trial is drawn"
    return released if run is None or run.runs == 1 else f"for each of {run.runs} runs: {released}"


def _withheld(plan: PlanTerms) -> Iterator[str]:
    secret = contains_selection(plan.whole)
    if secret:
        yield from _WITHHELD_BY_SELECTION
    if plan.final is not None:
        yield from (_WITHHELD_BY_FALLBACK, _WITHHELD_BY_STAGES) if secret else (_WITHHELD_BY_STAGES,)
    elif not secret:
        yield _WITHHELD_BY_MECHANISM if plan.visible is None else _WITHHELD_BY_VISIBLE
    if plan.subsample is not None:
        yield _WITHHELD_SAMPLE
