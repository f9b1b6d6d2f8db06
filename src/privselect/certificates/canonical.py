"""One way to write a value as JSON, so that equal values have equal hashes."""

from __future__ import annotations

import hashlib
import json
import math

from privselect._util.validation import format_value
from privselect.errors import ParameterError


def canonical(value: object) -> bytes:
    """JSON with sorted keys, no spaces, floats by their shortest digits, as UTF-8; what is not finite is refused."""
    _check(value)
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError:
        raise ParameterError("a value to be hashed must be text that UTF-8 can write, got half of a surrogate pair") from None


def digest(value: object) -> str:
    """``sha256:`` and the hash of the canonical JSON, in hexadecimal."""
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def _check(value: object) -> None:
    # json.dumps would turn the keys 1 and True into text, and two different values into one.
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
