"""JSON from strangers: one value, of bounded size, in which nothing stands twice."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from privselect._util.validation import format_value
from privselect.errors import CertificateError, FieldsError

MOST_BYTES = 2_000_000  # two text forms of the greatest length, and room


def read_json(text: str | bytes) -> dict[str, Any]:
    """The object that a certificate's text holds, or one sentence on why there is none."""
    text = _decoded(text)
    try:
        value = json.loads(text, parse_constant=_no_number, object_pairs_hook=_once)
    except json.JSONDecodeError as error:
        raise CertificateError(_unreadable(text, error)) from None
    except (FieldsError, CertificateError):
        raise
    except (ValueError, RecursionError):  # a whole number of thousands of digits; brackets in brackets in brackets
        raise CertificateError("the certificate is not JSON that a certificate could be: it nests or counts too far") from None
    if not isinstance(value, dict):
        raise CertificateError(f"a certificate must be a JSON object, got {format_value(value)}")
    return value


def _decoded(text: str | bytes) -> str:
    if len(text) > MOST_BYTES:
        raise CertificateError(f"a certificate must have at most {MOST_BYTES} bytes, got {len(text)} or more")
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise CertificateError("the certificate is not JSON: it is not text in UTF-8") from None
    if not decoded.strip():
        raise CertificateError("the certificate is empty")
    return decoded


def _unreadable(text: str, error: json.JSONDecodeError) -> str:
    begun = text.lstrip().startswith("{")
    if begun and (not text.rstrip().endswith("}") or error.pos >= len(text.rstrip())):
        return f"the certificate is truncated: it ends after {len(text)} characters in the middle of its JSON"
    return f"the certificate is not JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}"


def _no_number(name: str) -> NoReturn:
    raise CertificateError(f"the certificate is not JSON: {name} is no number of JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise FieldsError(f"`{format_value(key)[1:-1]}` stands twice in the certificate")
        found[key] = value
    return found
