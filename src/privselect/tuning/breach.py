"""A trial that is not what the plan says."""

from __future__ import annotations

from typing import NamedTuple


class Breach(BaseException):
    """Raised in a trial, it gives up the whole run without a release; no ``except Exception`` of a trainer may catch it.

    Other exceptions are failures of one trial, which then has the worst score: here the guarantee itself would be wrong. ``sentence``
    is shown, so it must be a fixed one that depends on no record; ``details`` are shown in a dry run alone.
    """

    def __init__(self, sentence: str, details: str = "") -> None:
        super().__init__(f"{sentence}: {details}" if details else sentence)
        self.sentence = sentence


class Breached(NamedTuple):
    """What a worker hands to the coordinator instead of an outcome."""

    sentence: str
