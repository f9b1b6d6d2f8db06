"""The base class of all certificate fields: immutable, strictly typed, with errors of one sentence."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from privselect._util.validation import format_value, truncate
from privselect.errors import ParameterError

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # control characters, invisible marks, line separators
_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"  # letters and symbols that are displayed as blanks
_LONGEST = 1000


class StrictModel(BaseModel):
    """An immutable model with strict types and no unknown fields; an invalid value is a ``ParameterError``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ParameterError(first_error(error)) from None

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON data: lists, not tuples."""
        return self.model_dump(mode="json")


def first_error(error: ValidationError) -> str:
    """Return the first error of pydantic as one sentence."""
    first = error.errors(include_url=False)[0]
    # A field name may come from an untrusted file: escape characters that a terminal would interpret.
    place = truncate(".".join(repr(part).strip("'\"") for part in first["loc"] if not _is_branch(part)))
    if not place and first["type"] != "value_error":
        return first["msg"].lower()
    if first["type"] == "missing":
        return f"`{place}` is missing"
    if first["type"] == "extra_forbidden":
        return f"`{place}` is not a known field"
    if first["type"] == "value_error":
        reason = str(first["ctx"]["error"])
        if reason.startswith("must "):
            return f"`{place}` {reason}"
        return reason if reason.startswith(f"`{place}`") or not place else f"`{place}`: {reason}"
    requirement = first["msg"].removeprefix("Input should be ").removeprefix("String should ")
    verb = "" if requirement.startswith(("have", "match")) else "be "
    return f"`{place}` must {verb}{requirement}, got {format_value(first['input'])}"


def _is_branch(part: str | int) -> bool:
    """Return whether a part of a location names a branch of a union, not a field."""
    return isinstance(part, str) and (part == "float" or part.startswith("literal["))


def _check_line(text: str) -> str:
    # Text is printed: line breaks and characters that reorder or hide text could forge other output.
    for character in text:
        if unicodedata.category(character) in _HIDDEN or character in _BLANKS or "VARIATION SELECTOR" in unicodedata.name(character, ""):
            raise ValueError(f"must be one line of visible text, got the character U+{ord(character):04X}")
    if not text.strip():
        raise ValueError("must be one line of visible text, got blanks")
    return text


Line: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST), AfterValidator(_check_line)]
Lines: TypeAlias = Annotated[tuple[Line, ...], Field(strict=False, max_length=100)]  # JSON has lists, not tuples
