"""What a certificate takes for granted: the assumptions about the search, the final training and the parts of a mechanism.

The texts belong to the certificate format: verify compares them literally, so a changed text needs a new format version.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.validation import truncate
from privselect.certificates.theorems import walk_parts
from privselect.mechanisms import Disjoint
from privselect.noisy_max import NoisyMax
from privselect.regression import OPS, ProposeTestRelease
from privselect.selection import Selection
from privselect.text_forms import write_value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect.certificates.model import PlanTerms
    from privselect.mechanisms import Mechanism

LONGEST = 300  # characters of a text form in the statement; the certificate has the complete one

_HIDDEN_SEARCH = (
    "K is drawn from its distribution and is never revealed, not even through timing.",
    "Each trial draws its candidate independently, from a distribution that was fixed before the data was used.",
    "The random draws of a trial are independent of those of other trials.",
    "The guarantee of a trial covers its score.",
    "A failed trial counts as the worst score and is not run again.",
)
_ONLY_WINNER, _ONLY_WINNER_OF_SEARCH = "Only the winner is released.", "Of the search, only the winner is released."
_VISIBLE_SEARCH = (
    "The noise, the sampling rate, the number of steps and the number of trials were fixed in advance.",
    "{trials} released, and each candidate may depend on earlier results.",
    "The random draws of a trial are independent of those of other trials.",
    "The guarantee of a trial covers its score.",
    "A trial that is stopped early or not run counts in full.",
    "No result of a trial needs to stay secret.",
)
_SAMPLE = (
    "One sample of the records is drawn{times}. It contains each record with probability {probability}, independently of other records.",
    "The sample and its size are never revealed.",
)
_FINAL_TRAINING = (
    "Its candidate is a function of what the search released and of public numbers.",
    "The mechanism stated for it was fixed before the search.",
    "Its random draws are independent of the search.",
    "It runs once; a failed training is not run again.",
)
_MECHANISM = ("The mechanism is run as described.", "Only its output is released.")
_DISJOINT = (
    "Disjoint parts of the data share no record. The part that a record belongs to depends only on that record and is the same in every "
    "trial of a selection."
)
_ALL_RECORDS = (
    "The final training may use the records of every part: a held-out record is covered for the noisy results on it and for the final "
    "training."
)


def contains_selection(mechanism: Mechanism) -> bool:
    """Return whether the mechanism is or contains a selection."""
    return any(isinstance(part, Selection) for part in walk_parts(mechanism))


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions about one stage. ``title`` is None if there is only one stage."""

    title: str | None
    lines: tuple[str, ...]

    def __str__(self) -> str:
        numbered = " ".join(f"({number}) {line}" for number, line in enumerate(self.lines, start=1))
        return numbered if self.title is None else f"{self.title}: {numbered}"


def stage_assumptions(plan: PlanTerms) -> Iterator[Assumptions]:
    """Yield the assumptions about each stage."""
    two_stages = plan.final is not None
    if plan.selection is not None:
        winner = _ONLY_WINNER_OF_SEARCH if two_stages else _ONLY_WINNER
        yield Assumptions("Secret search" if two_stages else None, (*_HIDDEN_SEARCH, winner))
    elif plan.visible is not None:
        trials = "The one trial is" if plan.visible == 1 else f"All {plan.visible} trials are"
        yield Assumptions(
            "Visible search (composition, adaptive candidates)", tuple(line.format(trials=trials) for line in _VISIBLE_SEARCH)
        )
    else:
        yield Assumptions(None, _MECHANISM)
    if plan.subsample is not None:
        times = ", once for all search trials" if plan.count is not None or plan.visible is not None else ""
        yield Assumptions("Sample", tuple(line.format(times=times, probability=plan.subsample) for line in _SAMPLE))
    if two_stages:
        yield Assumptions("Final training", _FINAL_TRAINING)
    if any(contains_selection(part) for part in (plan.trial, plan.final_training) if part is not None):
        yield Assumptions("For each selection in the mechanism", (*_HIDDEN_SEARCH, _ONLY_WINNER))


def part_assumptions(plan: PlanTerms) -> Iterator[str]:
    """Yield a sentence for each assumption about a part of a mechanism."""
    parts = list(walk_parts(plan.whole))
    if any(isinstance(part, Disjoint) for part in parts):
        yield _DISJOINT if plan.visible is None else _DISJOINT.replace("of a selection", "of the search")
    if plan.final is not None and any(isinstance(part, Disjoint) for part in walk_parts(plan.trial)):
        yield _ALL_RECORDS
    yield from dict.fromkeys(describe(part) for part in parts for kind, describe in _OF_PARTS if isinstance(part, kind))


def _noisy_max(noisy_max: NoisyMax) -> str:
    changed = "each score" if noisy_max.changed_scores == noisy_max.m else f"at most {noisy_max.changed_scores} of the scores"
    direction = ", all in the same direction" if noisy_max.monotone else ""
    return (
        f"In each round of {truncate(str(noisy_max), LONGEST)} one record changes {changed} by at most 1{direction}, each score gets "
        "noise of exactly this distribution, and only the index of the largest noisy score is used."
    )


def _test(release: ProposeTestRelease) -> str:
    failure = "releases a bound that is wrong for the data" if release.calibrated else "accepts a proposal that is wrong for the data"
    return (
        f"In {truncate(str(release), LONGEST)} the test {failure} with probability at most {write_value(release.failure)}; otherwise "
        f"the release leaks at most {truncate(str(release.target), LONGEST)}."
    )


def _regression(sample: OPS) -> str:
    return (
        f"In {truncate(str(sample), LONGEST)} no row has a larger leverage or signal than stated, both measured without that row, and "
        "one posterior sample is released."
    )


_OF_PARTS: tuple[tuple[type, Callable[..., str]], ...] = ((NoisyMax, _noisy_max), (ProposeTestRelease, _test), (OPS, _regression))
