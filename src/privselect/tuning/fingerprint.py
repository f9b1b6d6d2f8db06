"""A keyed fingerprint of the data: resuming with the same randomness on changed data would be a differencing attack."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from privselect.errors import ParameterError


def fingerprint(data: Any, key: bytes) -> bytes:
    """32 bytes that differ where the data differs, and tell nothing to those without the key."""
    state = blake2b(digest_size=32, key=key, person=b"data")
    _feed(state, data)
    return state.digest()


def _feed(state: Any, value: Any) -> None:
    """Each value with its kind and size, so that no two values feed the same bytes."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        _piece(state, type(value).__name__, value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass"))
    elif isinstance(value, np.ma.MaskedArray):
        _feed_all(state, "masked", [np.ma.getdata(value), np.ma.getmaskarray(value)])
    elif isinstance(value, np.ndarray | np.generic):
        _feed_array(state, np.asarray(value))
    elif isinstance(value, list | tuple):
        _feed_all(state, type(value).__name__, value)
    elif isinstance(value, Mapping):
        _feed_all(state, "mapping", [part for pair in value.items() for part in pair])
    elif isinstance(value, set | frozenset):  # in whatever order this process has them
        _piece(state, type(value).__name__, b"".join(sorted(fingerprint(entry, b"entry") for entry in value)))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        _feed_all(state, type(value).__qualname__, [getattr(value, field.name) for field in dataclasses.fields(value)])
    elif hasattr(value, "detach") and hasattr(value, "numpy"):  # a torch tensor
        _feed_array(state, value.detach().cpu().numpy())
    else:
        _piece(state, "pickle", _pickled(value))


def _feed_array(state: Any, array: Any) -> None:
    if array.dtype.hasobject:
        _feed_all(state, f"objects{array.shape}", array.ravel().tolist())
        return
    _piece(state, "array", f"{array.dtype.descr if array.dtype.names else array.dtype.str}{array.shape}".encode())
    state.update(np.ascontiguousarray(array).view(np.uint8).reshape(-1) if array.size and array.ndim else array.tobytes())


def _feed_all(state: Any, kind: str, values: Any) -> None:
    _piece(state, kind, str(len(values)).encode())
    for value in values:
        _feed(state, value)


def _piece(state: Any, kind: str, content: bytes) -> None:
    state.update(f"{kind}:{len(content)}:".encode())
    state.update(content)


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:  # noqa: BLE001 - whatever its reason
        raise ParameterError(
            f"`data` must be arrays, numbers, text, tables and lists of these, or what can be pickled, got a {type(value).__name__}"
        ) from None
