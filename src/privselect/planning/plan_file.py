"""The plan file: TOML with a plan, the user's declarations, and the tuning run. All fields are listed in docs/plan.md."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, field_validator

from privselect._util.atomic_files import atomic_write, check_output_file, read_limited, write_error
from privselect._util.validation import format_value
from privselect.certificates.model import SCORE_KINDS, Declared, PlanTerms, describe_noisy_count, noise_of_count, with_score_declaration
from privselect.certificates.strict_model import Line, StrictModel
from privselect.errors import ParameterError
from privselect.open_spec import OpenSpec
from privselect.planning.open_problem import read_count, read_mechanism
from privselect.planning.plan import check_plan, plan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from privselect.planning.plan_result import Plan

VERSION = 1
IMPORT_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_MOST_BYTES = 1_000_000
_EXAMPLES = {
    "unit": '"one person"',
    "trust_model": '"central: the curator sees the data"',
    "records_public": "true",
    "score": '"computed from the released model and public data"',
    "not_covered": '["the data was looked at to choose the search space"]',
}


def _check_import_name(text: str) -> str:
    if not IMPORT_NAME.fullmatch(text):
        raise ValueError(f"must be a name such as module:function, got {format_value(text)}")
    return text


Name: TypeAlias = Annotated[str, AfterValidator(_check_import_name)]


class NoisyCountTable(StrictModel):
    """A score on private records: the number of correct predictions on a hold-out, plus noise."""

    correct: Name
    sigma: Annotated[float, AfterValidator(lambda sigma: noise_of_count(sigma).sigma)]
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

    def score_description(self) -> str:
        """Return the description of the score in a certificate."""
        return SCORE_KINDS[self.score] if isinstance(self.score, str) else describe_noisy_count(noise_of_count(self.score.sigma))


class ProblemTable(StrictModel):
    """The text forms that the plan was solved from, with the open parameter written as ``?``."""

    mechanism: Annotated[str, AfterValidator(lambda text: str(read_mechanism(text)))]
    count: Annotated[str, AfterValidator(lambda text: str(read_count(text)))] | None = None


class PlanFile(StrictModel):
    """The fields of a plan file."""

    version: Literal[1]
    mechanism: str
    count: str | None = None
    epsilon: float
    delta: float
    problem: ProblemTable | None = None
    declared: Declared = Declared()
    space: dict[str, Any] | None = None  # read by `privselect tune`
    tune: TuneTable | None = None

    def terms(self) -> PlanTerms:
        """Return the part of the plan that certificates contain and that the plan's hash covers."""
        declared = self.declared if self.tune is None else with_score_declaration(self.declared, self.tune.score_description())
        return PlanTerms(mechanism=self.mechanism, count=self.count, epsilon=self.epsilon, delta=self.delta, declared=declared)

    @property
    def is_open(self) -> bool:
        """Whether a parameter is still open."""
        count = None if self.count is None else read_count(self.count)
        return isinstance(read_mechanism(self.mechanism), OpenSpec) or isinstance(count, OpenSpec)

    def plan(self) -> Plan:
        """Solve for the open parameter; without one, check that the plan meets its budget."""
        if self.is_open:
            return plan(self.mechanism, self.count, epsilon=self.epsilon, delta=self.delta)
        problem = None if self.problem is None else (self.problem.mechanism, self.problem.count)
        return replace(check_plan(self.mechanism, self.count, epsilon=self.epsilon, delta=self.delta), problem=problem)


def read_plan(path: str | Path) -> PlanFile:
    """Read a plan file, or raise an error of one sentence."""
    shown = format_value(str(path))
    content = read_limited("a plan", path, _MOST_BYTES)
    try:
        fields = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ParameterError(f"a plan must be text in UTF-8, got {shown}") from None
    except (ValueError, RecursionError) as error:  # includes integers of thousands of digits
        raise ParameterError(f"a plan must be TOML, got {shown} ({error})") from None
    version = fields.get("version", VERSION)
    if type(version) is not int or version != VERSION:
        later = ": a later privselect has written it" if type(version) is int and version > VERSION else ""
        raise ParameterError(f"`version` of a plan must be {VERSION}, got {format_value(version)}{later}")
    return PlanFile(**fields)


def plan_file_of(solved: Plan, declared: Declared | None = None, run: PlanFile | None = None) -> PlanFile:
    """Return the plan file of a solved plan; ``[space]`` and ``[tune]`` are copied from the plan file ``run``."""
    return PlanFile(
        version=1,
        mechanism=str(solved.mechanism),
        count=None if solved.count is None else str(solved.count),
        epsilon=solved.epsilon,
        delta=solved.delta,
        problem=None if solved.problem is None else ProblemTable(mechanism=solved.problem[0], count=solved.problem[1]),
        declared=Declared() if declared is None else declared,
        space=None if run is None else run.space,
        tune=None if run is None else run.tune,
    )


def plan_text(file: PlanFile) -> str:
    """Return the plan file as commented TOML."""
    return "\n".join(_lines(file)) + "\n"


def write_plan(solved: Plan, path: str | Path, declared: Declared | None = None, run: PlanFile | None = None) -> None:
    """Write a plan file atomically."""
    file = check_output_file("out", path, (".toml",))
    try:
        atomic_write(file, plan_text(plan_file_of(solved, declared, run)).encode("utf-8"))
    except OSError as error:
        raise write_error("out", file, error) from None


def _lines(file: PlanFile) -> Iterator[str]:
    yield "# A plan of privselect: read it with `privselect plan`, certify it with `privselect certify`."
    yield f"version = {file.version}"
    yield from _entries(file.model_dump(exclude={"version", "problem", "declared", "space", "tune"}))
    if file.problem is not None:
        yield from ("", "[problem]  # what the plan was solved from; ? is the open parameter", *_entries(file.problem.model_dump()))
    declared = list(_entries(file.declared.model_dump()))
    yield from ("", "[declared]  # stated by the user; without the first three a certificate is a draft")
    yield from declared
    for name, example in _EXAMPLES.items():
        if not any(line.startswith(f"{name} = ") for line in declared):
            yield f"# {name} = {example}"
    if file.space is not None:
        yield from ("", "[space]  # the distribution of candidates", *_entries(file.space))
    if file.tune is not None:
        yield from ("", "[tune]  # the run of `privselect tune`", *_entries(file.tune.model_dump(exclude_none=True)))


def _entries(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if value is not None and value != ():
            yield f"{_key(name)} = {_toml(value)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _toml(name)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(entry)}" for name, entry in value.items()) + " }"
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")  # TOML strings are JSON strings without a raw DEL
