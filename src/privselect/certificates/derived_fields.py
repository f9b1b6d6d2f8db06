"""The fields of a certificate that follow from others: written by certify, written anew and compared by verify."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect.certificates.number_models import DIRECTION, Accuracy
from privselect.certificates.run_metadata import together
from privselect.certificates.statement import selects, write_statement
from privselect.certificates.theorems import theorem_labels
from privselect.selection import Selection

if TYPE_CHECKING:
    from privselect.certificates.number_models import Ends, Total
    from privselect.certificates.plan_commitment import Promise
    from privselect.certificates.run_metadata import Run
    from privselect.mechanisms import Mechanism

_WITHHELD = (
    "K, the number of trials",
    "the scores, candidates and outputs of the trials that did not win",
    "the time that the run took, and whatever else tells K",
)
_WITHHELD_ALONE = ("everything that the mechanism computes but its output",)


def consequences(promise: Promise, total: Total, base: Ends, run: Run | None, asked: float | None) -> dict[str, Any]:
    """Every field that needs no number but those given."""
    whole = together(promise.described(), run)
    return {
        "statement": write_statement(promise, total, base, whole.neighbours, run),
        "draft": bool(promise.declared.missing),
        "promise_hash": promise.digest(),
        "neighbours": whole.neighbours,
        "theorems": theorem_labels(whole, lower=total.lower is not None),
        "accuracy": Accuracy(asked=asked, gap=total.upper / total.lower - 1.0 if total.lower else None, direction=DIRECTION),
        "released": _released(promise.described(), run),
        "withheld": _WITHHELD if selects(whole) else _WITHHELD_ALONE,
    }


def _released(mechanism: Mechanism, run: Run | None) -> str:
    if isinstance(mechanism, Selection):
        what = "the output of the best-scoring trial alone"
        if mechanism.count.probability_of_zero() > 0.0:
            what += ", or a fixed symbol where no trial was drawn"
    else:
        what = "the output of the mechanism" + (", of each selection in it only the winner" if selects(mechanism) else "")
    return what if run is None or run.runs == 1 else f"of each of {run.runs} runs, {what}"
