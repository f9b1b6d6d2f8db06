"""The tables of a plan file."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from privselect._util.validation import format_value
from privselect.certificates.model import SCORE_KINDS, noise_of_count
from privselect.certificates.strict_model import Line, StrictModel
from privselect.planning.stages import read_count, read_final, read_mechanism, read_probability

IMPORT_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
SAME, NOISE = "same", "noise"  # transfer rules


def _check_transfer(text: str) -> str:
    if text not in {SAME, NOISE} and not IMPORT_NAME.fullmatch(text):
        raise ValueError(f'must be "same", "noise", or the name of a function such as module:function, got {format_value(text)}')
    return text


def _check_import_name(text: str) -> str:
    if not IMPORT_NAME.fullmatch(text):
        raise ValueError(f"must be a name such as module:function, got {format_value(text)}")
    return text


Name: TypeAlias = Annotated[str, AfterValidator(_check_import_name)]


class NoisyCountTable(StrictModel):
    """A score on private records: the number of correct predictions on a hold-out, plus noise."""

    correct: Name
    sigma: Annotated[float, AfterValidator(lambda sigma: noise_of_count(sigma).sigma)] | None = None  # None: from the mechanism
    holdout: Name | None = None
    fraction: str | float | None = None  # text such as "1/5" is exact
    ids: Line | None = None  # the name of a column, or module:function


class TuneTable(StrictModel):
    """The settings of a tuning run; `privselect tune` checks the ranges of numbers."""

    objective: Name
    data: Name
    synthetic: Name | None = None
    score: str | NoisyCountTable = Field(union_mode="left_to_right")
    export: str | None = None
    fallback: str | dict[str, Any] | None = Field(default=None, union_mode="left_to_right")
    mechanism_of: Name | None = None
    executor: str = "processes"
    workers: int | None = None
    out: str | None = None
    ledger: str | None = None
    seed_bits: int | None = None
    timeout: float | None = None
    final_timeout: float | None = None
    memory_limit: int | None = None
    release_at: datetime | str | None = Field(default=None, union_mode="left_to_right")
    deadline: float | None = None
    constant_work: bool | None = None
    losses: int | None = None

    @field_validator("score", mode="before")
    @classmethod
    def _read_score(cls, given: object) -> object:
        if isinstance(given, dict):
            return NoisyCountTable(**given)
        if isinstance(given, NoisyCountTable) or (isinstance(given, str) and given in SCORE_KINDS):
            return given
        kinds = " or ".join(map(repr, SCORE_KINDS))
        raise ValueError(f"must be {kinds}, or a table with correct, sigma and the hold-out, got {format_value(given)}")

    @field_validator("fallback", mode="before")
    @classmethod
    def _read_fallback(cls, given: object) -> object:
        if given is None or isinstance(given, dict) or (isinstance(given, str) and IMPORT_NAME.fullmatch(given)):
            return given
        raise ValueError(f"must be a table of arrays, or a name such as module:function, got {format_value(given)}")

    @field_validator("release_at", mode="before")
    @classmethod
    def _read_time(cls, given: object) -> object:
        if given is None or isinstance(given, str | datetime):
            return given
        raise ValueError(f"must be a time with its zone, such as 2030-01-31T23:59:00Z, got {format_value(given)}")


MechanismText: TypeAlias = Annotated[str, AfterValidator(lambda text: str(read_mechanism(text)))]
FinalText: TypeAlias = Annotated[str, AfterValidator(lambda text: str(read_final(text)))]
CountText: TypeAlias = Annotated[str, AfterValidator(lambda text: str(read_count(text)))]


class SearchTable(StrictModel):
    """The search: one trial, and the law of K of a secret search or the number of trials of a visible one."""

    mechanism: MechanismText
    count: CountText | None = None
    visible: int | None = Field(default=None, ge=1, le=10**6)
    subsample: Annotated[str, BeforeValidator(lambda given: str(read_probability(given)))] | None = None

    @model_validator(mode="after")
    def _check_kind(self) -> SearchTable:
        if self.count is not None and self.visible is not None:
            raise ValueError(f"a search is either secret, with `count`, or visible, got {self.count} and {self.visible} visible trials")
        return self


class TrainTable(StrictModel):
    """The final training, how it gets its candidate, and how the budget is divided if both stages are open."""

    mechanism: FinalText
    transfer: Annotated[str, AfterValidator(_check_transfer)] = SAME
    learning_rate: Line | None = None
    final_noise: float | None = None
    split: str | None = None

    @model_validator(mode="after")
    def _check_learning_rate(self) -> TrainTable:
        if self.learning_rate is not None and self.transfer != NOISE:
            raise ValueError(f'`learning_rate` needs transfer = "noise", got transfer = {format_value(self.transfer)}')
        return self


class ProblemTable(StrictModel):
    """What the plan was solved from: text forms with open numbers written as ``?``, and how the budget was divided."""

    mechanism: MechanismText
    count: CountText | None = None
    final: FinalText | None = None
    final_noise: float | None = None
    split: Literal["auto"] | None = None
