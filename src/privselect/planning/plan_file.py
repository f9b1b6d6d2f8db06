"""The plan file: one TOML file that says what is to be run and within which budget. docs/plan.md tells every field."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import replace
from datetime import date, time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import field_validator

from privselect._util.atomic_files import check_output_file, write_error, atomic_write
from privselect._util.validation import format_value
from privselect.certificates.declarations import Declared
from privselect.certificates.plan_commitment import Promise
from privselect.certificates.score_privacy import with_score
from privselect.certificates.strict_model import Frozen
from privselect.errors import ParameterError
from privselect.open_spec import OpenSpec
from privselect.planning.open_problem import read_count, read_mechanism
from privselect.planning.plan import Plan, checked, plan
from privselect.planning.tune_config import TuneFields

if TYPE_CHECKING:
    from collections.abc import Iterator

VERSION = 1
_MOST_BYTES = 1_000_000


class Asked(Frozen):
    """The question that a plan answers, its unknown written as ``?``."""

    mechanism: str
    count: str | None = None

    @field_validator("mechanism")
    @classmethod
    def _read_mechanism(cls, text: str) -> str:
        return str(read_mechanism(text))

    @field_validator("count")
    @classmethod
    def _read_count(cls, text: str | None) -> str | None:
        return None if text is None else str(read_count(text))


class PlanFile(Frozen):
    """The fields of a plan file: a promise, the version of this schema, the question it answers, if any, and what is to be run."""

    version: Literal[1]
    mechanism: str
    count: str | None = None
    epsilon: float
    delta: float
    asked: Asked | None = None
    declared: Declared = Declared()
    space: dict[str, Any] | None = None  # read by `privselect tune`
    tune: TuneFields | None = None

    def promise(self) -> Promise:
        """What is promised: the hash of a plan is that of its promise, and that of the run's."""
        declared = self.declared if self.tune is None else with_score(self.declared, self.tune.score_said())
        return Promise(mechanism=self.mechanism, count=self.count, epsilon=self.epsilon, delta=self.delta, declared=declared)

    @property
    def is_open(self) -> bool:
        """Whether a number is still to be solved for."""
        return isinstance(read_mechanism(self.mechanism), OpenSpec) or (self.count is not None and isinstance(read_count(self.count), OpenSpec))

    def plan(self) -> Plan:
        """Solve for what is open; where nothing is, the cost of what is described, refused where it exceeds the budget."""
        if self.is_open:
            return plan(self.mechanism, self.count, epsilon=self.epsilon, delta=self.delta)
        asked = None if self.asked is None else (self.asked.mechanism, self.asked.count)
        return replace(checked(self.mechanism, self.count, epsilon=self.epsilon, delta=self.delta), asked=asked)


def read_plan(path: str | Path) -> PlanFile:
    """A plan file, or one clear sentence on why it is none."""
    file = Path(path)
    try:
        with file.open("rb") as opened:
            content = opened.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise ParameterError(f"a plan must be a file that can be read, got {format_value(str(path))} ({reason})") from None
    if len(content) > _MOST_BYTES:
        raise ParameterError(f"a plan must have at most {_MOST_BYTES} bytes, got more in {format_value(str(path))}")
    try:
        fields = tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError:
        raise ParameterError(f"a plan must be text in UTF-8, got {format_value(str(path))}") from None
    except (ValueError, RecursionError) as error:  # also a number of thousands of digits
        raise ParameterError(f"a plan must be TOML, got {format_value(str(path))} ({error})") from None
    return _checked_fields(fields)


def plan_file_of(answer: Plan, declared: Declared | None = None, run: PlanFile | None = None) -> PlanFile:
    """The file of a plan; what is to be run is taken over from the file that left a number open."""
    return PlanFile(
        version=1,
        mechanism=str(answer.mechanism),
        count=None if answer.count is None else str(answer.count),
        epsilon=answer.epsilon,
        delta=answer.delta,
        asked=None if answer.asked is None else Asked(mechanism=answer.asked[0], count=answer.asked[1]),
        declared=Declared() if declared is None else declared,
        space=None if run is None else run.space,
        tune=None if run is None else run.tune,
    )


def plan_text(file: PlanFile) -> str:
    """As TOML, with a word on each part."""
    return "\n".join(_lines(file)) + "\n"


def write_plan(answer: Plan, path: str | Path, declared: Declared | None = None, run: PlanFile | None = None) -> None:
    """Write a plan file, whole or not at all."""
    file = check_output_file("out", path, (".toml",))
    try:
        atomic_write(file, plan_text(plan_file_of(answer, declared, run)).encode("utf-8"))
    except OSError as error:
        raise write_error("out", file, error) from None


def _checked_fields(fields: dict[str, Any]) -> PlanFile:
    version = fields.get("version", VERSION)
    if type(version) is not int or version < 1:
        raise ParameterError(f"`version` of a plan must be {VERSION}, got {format_value(version)}")
    if version > VERSION:
        raise ParameterError(f"`version` of a plan must be {VERSION}, got {format_value(version)}: it was made by a later privselect")
    return PlanFile(**fields)


def _lines(file: PlanFile) -> Iterator[str]:
    yield "# A plan of privselect: read it back with `privselect plan`, certify it with `privselect certify`."
    yield f"version = {file.version}"
    yield from _entries(file.model_dump(exclude={"version", "asked", "declared", "space", "tune"}))
    if file.asked is not None:
        yield from ("", "[asked]  # the question, its unknown written as ?", *_entries(file.asked.model_dump()))
    said = list(_entries(file.declared.model_dump()))
    yield from ("", "[declared]  # what no program can know; a certificate without the first three is a draft")
    yield from said
    for name, example in _EXAMPLES.items():
        if not any(line.startswith(f"{name} = ") for line in said):
            yield f"# {name} = {example}"
    if file.space is not None:
        yield from ("", "[space]  # the law of the candidates", *_entries(file.space))
    if file.tune is not None:
        yield from ("", "[tune]  # what `privselect tune` runs", *_entries(file.tune.model_dump(exclude_none=True)))


_EXAMPLES = {
    "unit": '"one person"',
    "trust_model": '"central: the curator sees the data"',
    "records_public": "true",
    "score": '"computed from the released model and public data"',
    "not_covered": '["the data was looked at to choose the search space"]',
}


def _entries(fields: dict[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        if value is not None and value != ():
            yield f"{_key(name)} = {_toml(value)}"


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_toml(entry)}" for name, entry in value.items()) + " }"
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return repr(value) if isinstance(value, int | float) else json.dumps(value, ensure_ascii=False)  # a JSON string is one of TOML
