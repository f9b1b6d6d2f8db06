"""The text of a plan file: commented TOML."""

from __future__ import annotations

import json
import re
from datetime import date, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.planning.plan_file import PlanFile

_EXAMPLES = {
    "unit": '"one person"',
    "trust_model": '"central: the curator sees the data"',
    "records_public": "true",
    "score": '"computed from the released model and public data"',
    "not_covered": '["the data was looked at to choose the search space"]',
}


def plan_text(file: PlanFile) -> str:
    """Return the plan file as commented TOML."""
    return "\n".join(_lines(file)) + "\n"


def _lines(file: PlanFile) -> Iterator[str]:
    yield "# A plan of privselect: read it with `privselect plan`, certify it with `privselect certify`."
    yield from _entries({"version": file.version, "epsilon": file.epsilon, "delta": file.delta})
    yield from ("", "[search]  # one trial, and the number of trials", *_entries(file.search.model_dump()))
    if file.train is not None:
        yield from ("", "[train]  # the final training, on all records", *_entries(file.train.model_dump()))
    if file.problem is not None:
        yield from ("", "[problem]  # what the plan was solved from; ? is an open number", *_entries(file.problem.model_dump()))
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
