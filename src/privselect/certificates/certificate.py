"""The certificate: immutable, versioned, written as JSON, and read as untrusted input."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NoReturn

from pydantic import Field, ValidationError, field_validator

from privselect._util.atomic_files import atomic_write, check_output_file, read_prefix, write_error
from privselect._util.validation import format_value
from privselect.certificates.canonical import digest
from privselect.certificates.model import (
    Accuracy,
    ApproximateGDP,
    Composition,
    EpsilonInterval,
    OtherBounds,
    PlanTerms,
    ProfilePoint,
    RunMetadata,
    Signature,
    TotalEpsilon,
    Versions,
)
from privselect.certificates.strict_model import Line, Lines, StrictModel, first_error
from privselect.errors import CertificateError, FieldsError

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_VERSION: Final = 3
LARGEST_CERTIFICATE = 2_000_000  # bytes: two text forms of the greatest length, and some space
_TIME = "%Y-%m-%dT%H:%M:%SZ"
_HASH = r"^sha256:[0-9a-f]{64}$"


class Certificate(StrictModel):
    """A plan, its certified privacy cost, and everything needed to recompute the cost."""

    version: Literal[3] = Field(description="The version of the certificate format.")
    statement: str = Field(description="The claim in one paragraph; it follows from the other fields.")
    draft: bool = Field(description="Whether the unit of privacy, the trust model or the status of the number of records is undeclared.")
    plan: PlanTerms = Field(description="The plan: search, final training, budget and declarations.")
    plan_hash: str = Field(pattern=_HASH, description="The hash of the plan.")
    neighbours: Literal["add_remove", "replace_one", "any"] = Field(description="The neighbouring relation of the mechanism.")
    total: TotalEpsilon
    curve: Annotated[tuple[ProfilePoint, ...], Field(strict=False, min_length=1, max_length=1000)] = Field(
        description="Upper bounds on delta(epsilon)."
    )
    gaussian_dp: ApproximateGDP | None = Field(description="Null if no mu was found.")
    base: EpsilonInterval = Field(description="Epsilon of one trial alone at the same delta.")
    final_alone: EpsilonInterval | None = Field(description="Epsilon of the final training alone; null without a final training.")
    bounds: OtherBounds | None = Field(description="Null without a law of K.")
    composition: Composition | None = Field(description="Null without a law of K.")
    theorems: Lines = Field(description="Labels in docs/theorems.md.")
    accuracy: Accuracy
    released: Line
    withheld: Lines
    run: RunMetadata | None = Field(description="Null for a certificate of a plan that was not run.")
    versions: Versions
    issued_at: str = Field(description="The time of issue, in UTC.")
    hash: str = Field(pattern=_HASH, description="The hash of the canonical JSON of all other fields except the signature.")
    signature: Signature | None

    @field_validator("issued_at")
    @classmethod
    def _check_time(cls, text: str) -> str:
        return format_time(parse_time(text))

    def content(self) -> dict[str, Any]:
        """Return the data that is hashed and signed: every field except the hash and the signature."""
        return {name: value for name, value in self.as_dict().items() if name not in {"hash", "signature"}}

    def digest(self) -> str:
        """Compute the hash of the content."""
        return digest(self.content())

    def to_json(self) -> str:
        """Return JSON with the fields in a fixed order and every digit."""
        return json.dumps(self.as_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"

    def write(self, path: str | Path) -> None:
        """Write the certificate to a file atomically."""
        file = check_output_file("out", path)
        try:
            atomic_write(file, self.to_json().encode("utf-8"))
        except OSError as error:
            raise write_error("out", file, error) from None

    @classmethod
    def from_json(cls, text: str | bytes) -> Certificate:
        """Read a certificate from JSON without checking its claim; :func:`verify` checks it."""
        fields = _read_json(text)
        _check_version(fields)
        try:
            found = cls.model_validate_json(text)
        except ValidationError as error:
            raise FieldsError(f"the certificate does not fit format {FORMAT_VERSION}: {first_error(error)}") from None
        # Fields with a default may be omitted in Python, never in a certificate.
        missing = _missing(fields, found.as_dict())
        if missing is not None:
            raise FieldsError(f"the certificate does not fit format {FORMAT_VERSION}: `{missing}` is missing")
        # The hash and the signature cover the canonical text forms, so the file must contain exactly these.
        if fields != found.as_dict():
            raise FieldsError("the text forms of the certificate differ from the canonical ones, which are hashed")
        return found

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """Read a certificate from a file without checking its claim."""
        return cls.from_json(read_bytes(path))


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file, up to one byte more than a certificate may have."""
    return read_prefix("the certificate", path, LARGEST_CERTIFICATE + 1, CertificateError)


def parse_time(text: str) -> datetime:
    """Parse a time as certificates write it."""
    with suppress(ValueError):
        time = datetime.strptime(text, _TIME).replace(tzinfo=UTC)
        if format_time(time) == text:
            return time
    raise ValueError(f"`issued_at` must be a time such as 2030-01-31T23:59:59Z, got {format_value(text)}")


def format_time(time: datetime) -> str:
    """Return a time as certificates write it."""
    return f"{time:{_TIME}}"


def _check_version(fields: dict[str, Any]) -> None:
    version = fields.get("version")
    if version is None:
        raise CertificateError("the file is not a certificate: it has no `version`")
    if type(version) is not int or version < 1:
        raise CertificateError(f"`version` of a certificate must be an integer >= 1, got {format_value(version)}")
    if version != FORMAT_VERSION:
        advice = "Issue it again with privselect certify." if version < FORMAT_VERSION else "Update privselect to read it."
        raise CertificateError(f"The certificate has format {format_value(version)}; this version reads format {FORMAT_VERSION}. {advice}")


def _missing(given: Any, complete: Any, place: str = "") -> str | None:
    """Return the first field of ``complete`` that is not in ``given``."""
    entries = complete.items() if isinstance(complete, dict) else enumerate(complete) if isinstance(complete, list) else ()
    for name, value in entries:
        if isinstance(given, dict) and name not in given:
            return f"{place}{name}"
        found = _missing(given[name], value, f"{place}{name}.")
        if found is not None:
            return found
    return None


def _read_json(text: str | bytes) -> dict[str, Any]:
    """Return the JSON object in untrusted text of bounded size, without duplicate keys."""
    text = _decode(text)
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except json.JSONDecodeError as error:
        raise CertificateError(_explain_syntax(text, error)) from None
    except (FieldsError, CertificateError):
        raise
    except (ValueError, RecursionError):  # integers of thousands of digits; deeply nested brackets
        raise CertificateError("the certificate is not valid: its JSON nests too deeply or has huge integers") from None
    if not isinstance(value, dict):
        raise CertificateError(f"a certificate must be a JSON object, got {format_value(value)}")
    return value


def _decode(text: str | bytes) -> str:
    if len(text) > LARGEST_CERTIFICATE:
        raise CertificateError(f"a certificate must have at most {LARGEST_CERTIFICATE} bytes, got {len(text)} or more")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise CertificateError("the certificate is not JSON: it is not text in UTF-8") from None
    if not decoded.strip():
        raise CertificateError("the certificate is empty")
    return decoded


def _explain_syntax(text: str, error: json.JSONDecodeError) -> str:
    is_object = text.lstrip().startswith("{")
    if is_object and (not text.rstrip().endswith("}") or error.pos >= len(text.rstrip())):
        return f"the certificate is truncated: its JSON is incomplete after {len(text)} characters"
    return f"the certificate is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}"


def _refuse_constant(name: str) -> NoReturn:
    raise CertificateError(f"the certificate is not JSON: {name} is not a JSON number")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise FieldsError(f"the certificate contains `{format_value(key)[1:-1]}` twice")
        found[key] = value
    return found
