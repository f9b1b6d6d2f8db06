"""The certificate: frozen, versioned, written as JSON, read with suspicion."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError, field_validator

from privselect._util.atomic_files import check_output_file, write_error, atomic_write
from privselect._util.validation import format_value
from privselect.certificates.canonical import digest
from privselect.certificates.number_models import Accuracy, Bounds, Composition, Ends, Leaky, Point, Signature, Total, Versions
from privselect.certificates.plan_commitment import Promise
from privselect.certificates.run_metadata import Run
from privselect.certificates.strict_model import Frozen, Line, Lines, told
from privselect.certificates.untrusted_json import MOST_BYTES, read_json
from privselect.errors import CertificateError, FieldsError

VERSION: Final = 1
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_HASH = r"^sha256:[0-9a-f]{64}$"


class Certificate(Frozen):
    """What was promised, what it costs, and everything needed to compute that again."""

    version: Literal[1] = Field(description="Of this format.")
    statement: str = Field(description="The claim in one paragraph; it follows from the other fields.")
    draft: bool = Field(description="True where the unit of privacy, the trust model or whether n is public is not declared.")
    promise: Promise = Field(description="The plan: mechanism, law of K, budget, and what the user declares.")
    promise_hash: str = Field(pattern=_HASH, description="The hash of the plan.")
    neighbours: Literal["add_remove", "replace_one", "any"] = Field(description="The neighbouring relation, from the mechanism.")
    total: Total
    curve: Annotated[tuple[Point, ...], Field(strict=False, min_length=1, max_length=1000)] = Field(
        description="delta(epsilon), from above."
    )
    gaussian_dp: Leaky | None = Field(description="Null where no mu was found.")
    base: Ends = Field(description="Epsilon of one trial alone, at the same delta.")
    bounds: Bounds | None = Field(description="Null where there is no law of K.")
    composition: Composition | None = Field(description="Null where there is no law of K.")
    theorems: Lines = Field(description="Labels in docs/theorems.md.")
    accuracy: Accuracy
    released: Line
    withheld: Lines
    run: Run | None = Field(description="Null for a certificate that is about a plan.")
    versions: Versions
    made: str = Field(description="When, in UTC.")
    hash: str = Field(pattern=_HASH, description="Of the canonical JSON of all fields but this one and the signature.")
    signature: Signature | None

    @field_validator("made")
    @classmethod
    def _is_a_time(cls, text: str) -> str:
        if written_time(read_time(text)) != text:
            raise ValueError(f"`made` must be a time such as 2030-01-31T23:59:59Z, got {format_value(text)}")
        return text

    def content(self) -> dict[str, Any]:
        """What is hashed and signed: every field but the hash and the signature."""
        return {name: value for name, value in self.plain().items() if name not in {"hash", "signature"}}

    def digest(self) -> str:
        """The hash of the content, computed anew."""
        return digest(self.content())

    def to_json(self) -> str:
        """As text, in a fixed order, with every digit."""
        return json.dumps(self.plain(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> None:
        """Into a file, whole or not at all."""
        file = check_output_file("out", path)
        try:
            atomic_write(file, self.to_json().encode("utf-8"))
        except OSError as error:
            raise write_error("out", file, error) from None

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """The certificate that a text holds; whether its claim holds is for :func:`verify` to say."""
        fields = read_json(text)
        _check_version(fields)
        try:
            found = cls.model_validate_json(text)
        except ValidationError as error:
            raise FieldsError(f"the certificate does not fit version {VERSION}: {told(error)}") from None
        # A field with a default may be left out in Python, never in a certificate.
        missing = _missing(fields, found.plain())
        if missing is not None:
            raise FieldsError(f"the certificate does not fit version {VERSION}: `{missing}` is missing")
        # What is hashed, signed and shown is this, and a reader of the file must see the same.
        if fields != found.plain():
            raise FieldsError("the certificate does not write its text forms as they are hashed")
        return found

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """The certificate in a file."""
        return cls.from_json(read_bytes(path))


def read_bytes(path: str | Path) -> bytes:
    """What a file holds, up to just more than a certificate may."""
    try:
        with Path(path).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # a name with a null character is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise CertificateError(f"the certificate must be a file that can be read, got {format_value(str(path))} ({reason})") from None


def read_time(text: str) -> datetime:
    """A time as certificates write it."""
    try:
        return datetime.strptime(text, _TIME).replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"`made` must be a time such as 2030-01-31T23:59:59Z, got {format_value(text)}") from None


def written_time(time: datetime) -> str:
    """The same, written."""
    return f"{time:{_TIME}}"


def _check_version(fields: dict[str, Any]) -> None:
    version = fields.get("version")
    if version is None:
        raise CertificateError("the file is no certificate: it has no `version`")
    if type(version) is not int or version < 1:
        raise CertificateError(f"`version` of a certificate must be a whole number >= 1, got {format_value(version)}")
    if version > VERSION:
        raise CertificateError(
            f"the certificate is of version {format_value(version)}, made by a later privselect: this one reads version {VERSION}"
        )


def _missing(given: Any, whole: Any, place: str = "") -> str | None:
    """The first field of ``whole`` that is not in ``given``."""
    if isinstance(whole, dict):
        for name, value in whole.items():
            if name not in given:
                return f"{place}{name}"
            found = _missing(given[name], value, f"{place}{name}.")
            if found is not None:
                return found
    if isinstance(whole, list):
        for index, (mine, value) in enumerate(zip(given, whole, strict=True)):
            found = _missing(mine, value, f"{place}{index}.")
            if found is not None:
                return found
    return None
