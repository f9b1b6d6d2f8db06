"""A trial that is not what the plan says."""

from __future__ import annotations

from typing import NamedTuple

_SENTENCES: list[str] = []  # of the breaches of this process


def sentences() -> tuple[str, ...]:
    """Of all breaches of this process so far: also of one that a trainer caught, or that ended a thread of it and nothing else."""
    return tuple(_SENTENCES)


class Breach(BaseException):
    """Raised in a trial, it gives up the whole run without a release; no ``except Exception`` of a trainer may catch it.

    Other exceptions are failures of one trial, which then has the worst score: here the guarantee itself would be wrong. ``sentence``
    is shown, so it must be a fixed one that depends on no record; ``details`` are shown in a dry run alone.
    """

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(sentence, details)  # both, so that a copy from another process has the same sentence
        self.sentence, self.details = sentence, details
        _SENTENCES.append(sentence)

    def __str__(self) -> str:
        return f"{self.sentence}: {self.details}" if self.details else self.sentence


class Breached(NamedTuple):
    """What a worker hands to the coordinator instead of an outcome."""

    sentence: str
