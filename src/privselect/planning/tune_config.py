"""The table ``[tune]`` of a plan file, as plain data: what is run is named here, and imported only by ``privselect tune``."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, Field, field_validator

from privselect._util.validation import format_value
from privselect.certificates.score_privacy import KINDS, count_noise, counted
from privselect.certificates.strict_model import Frozen, Line

NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


def _named(text: str) -> str:
    if not NAME.fullmatch(text):
        raise ValueError(f"must be a name such as module:function, got {format_value(text)}")
    return text


Name: TypeAlias = Annotated[str, AfterValidator(_named)]


class NoisyCountFields(Frozen):
    """A score on private records: the number of right answers on a hold-out, with noise."""

    correct: Name
    sigma: float
    holdout: Name | None = None
    fraction: str | float | None = None  # "1/5" is exact
    ids: Line | None = None  # the name of a column, or module:function

    @field_validator("sigma")
    @classmethod
    def _check_sigma(cls, sigma: float) -> float:
        return count_noise(sigma).sigma

    def said(self) -> str:
        """In the words of a certificate."""
        return counted(count_noise(self.sigma))


class TuneFields(Frozen):
    """What is run and how; the ranges of numbers are checked where the run is made."""

    objective: Name
    data: Name
    synthetic: Name | None = None
    score: str | NoisyCountFields = Field(union_mode="left_to_right")
    export: str | None = None
    fallback: str | dict[str, Any] | None = Field(default=None, union_mode="left_to_right")
    mechanism_of: Name | None = None
    executor: str = "processes"
    workers: int | None = None
    out: str | None = None
    ledger: str | None = None
    seed_bits: int | None = None
    timeout: float | None = None
    memory_limit: int | None = None
    release_at: datetime | str | None = Field(default=None, union_mode="left_to_right")
    deadline: float | None = None
    constant_work: bool | None = None
    losses: int | None = None

    @field_validator("score", mode="before")
    @classmethod
    def _read_score(cls, given: object) -> object:
        if isinstance(given, dict):
            return NoisyCountFields(**given)
        if isinstance(given, NoisyCountFields) or (isinstance(given, str) and given in KINDS):
            return given
        raise ValueError(f"must be {' or '.join(map(repr, KINDS))}, or a table with correct, sigma and the hold-out, got {format_value(given)}")

    @field_validator("fallback", mode="before")
    @classmethod
    def _read_fallback(cls, given: object) -> object:
        if given is None or isinstance(given, dict):
            return given
        if isinstance(given, str) and NAME.fullmatch(given):
            return given
        raise ValueError(f"must be a table of arrays, or a name such as module:function, got {format_value(given)}")

    @field_validator("release_at", mode="before")
    @classmethod
    def _read_moment(cls, given: object) -> object:
        if given is None or isinstance(given, str | datetime):
            return given
        raise ValueError(f"must be a time with its zone, such as 2030-01-31T23:59:00Z, got {format_value(given)}")

    def score_said(self) -> str:
        """How the score is private, in the words of a certificate."""
        return KINDS[self.score] if isinstance(self.score, str) else self.score.said()
