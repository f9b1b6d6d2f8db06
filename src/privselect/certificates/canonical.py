"""Canonical JSON: equal values have equal bytes and equal hashes."""

from __future__ import annotations

import hashlib
import json
import math

from privselect._util.validation import format_value
from privselect.errors import ParameterError


def canonical(value: object) -> bytes:
    """Return JSON in UTF-8 with sorted keys, no spaces and shortest floats; infinite numbers and NaN are errors."""
    _check(value)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ParameterError("a value to be hashed must be valid Unicode text, got an unpaired surrogate") from None


def digest(value: object) -> str:
    """Return ``sha256:`` and the hexadecimal hash of the canonical JSON."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def _check(value: object) -> None:
    # json.dumps would write the keys 1 and True as text, so different values would have the same JSON.
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                raise ParameterError(f"a value to be hashed must have keys that are text, got {format_value(key)}")
            _check(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            _check(entry)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ParameterError(f"a value to be hashed must hold finite numbers, got {value}")
    elif value is not None and not isinstance(value, str | int):
        raise ParameterError(f"a value to be hashed must be JSON, got a {type(value).__name__}")
