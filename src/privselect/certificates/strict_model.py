"""What all parts of a certificate share: they cannot change, know every field, and refuse in one sentence."""

from __future__ import annotations

import unicodedata
from typing import Annotated, Any, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from privselect._util.validation import truncate, format_value
from privselect.errors import ParameterError

_HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}  # controls, marks that turn or hide text, ends of line
_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"  # letters and signs that are drawn as nothing
_LONGEST = 1000


class Frozen(BaseModel):
    """Immutable, strict about types, without unknown fields; a value that does not fit is a ``ParameterError``."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise ParameterError(told(error)) from None

    def plain(self) -> dict[str, Any]:
        """The fields as JSON has them: lists, not tuples."""
        return self.model_dump(mode="json")


def told(error: ValidationError) -> str:
    """The first complaint of pydantic, in one sentence."""
    first = error.errors(include_url=False)[0]
    # A name may be anyone's: shown without what a terminal would obey.
    place = truncate(".".join(repr(part).strip("'\"") for part in first["loc"] if not _is_branch(part)))
    if not place and first["type"] != "value_error":
        return first["msg"].lower()
    if first["type"] == "missing":
        return f"`{place}` is missing"
    if first["type"] == "extra_forbidden":
        return f"`{place}` is no field that is known here"
    if first["type"] == "value_error":
        reason = str(first["ctx"]["error"])
        if reason.startswith("must "):
            return f"`{place}` {reason}"
        return reason if reason.startswith(f"`{place}`") or not place else f"`{place}`: {reason}"
    wanted = first["msg"].removeprefix("Input should be ").removeprefix("String should ")
    return f"`{place}` must {'' if wanted.startswith(('have', 'match')) else 'be '}{wanted}, got {format_value(first['input'])}"


def _is_branch(part: str | int) -> bool:
    """The name of a union's branch, which is no field."""
    return isinstance(part, str) and (part == "float" or part.startswith("literal["))


def _one_line(text: str) -> str:
    # Nobody may smuggle lines, or text that is read backwards, into what is printed.
    for character in text:
        if unicodedata.category(character) in _HIDDEN or character in _BLANKS or "VARIATION SELECTOR" in unicodedata.name(character, ""):
            raise ValueError(f"must be one line of visible text, got the character U+{ord(character):04X}")
    if not text.strip():
        raise ValueError("must be one line of visible text, got blanks")
    return text


Line: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=_LONGEST), AfterValidator(_one_line)]
Lines: TypeAlias = Annotated[tuple[Line, ...], Field(strict=False, max_length=100)]  # JSON has lists
