"""A keyed fingerprint of the data: resuming with the same randomness on changed data would allow a differencing attack."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import PurePath
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

import numpy as np

from privselect.errors import ParameterError


def fingerprint(data: Any, key: bytes) -> bytes:
    """Return 32 bytes that differ if the data differs, and reveal nothing without the key."""
    state = blake2b(digest_size=32, key=key, person=b"data")
    _feed(state, data)
    return state.digest()


def _feed(state: Any, value: Any) -> None:
    """Hash each value with its kind and size, so no two values feed the same bytes."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        _feed_bytes(state, type(value).__name__, value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass"))
    elif isinstance(value, np.ma.MaskedArray):
        _feed_all(state, "masked", [np.ma.getdata(value), np.ma.getmaskarray(value)])
    elif isinstance(value, np.ndarray | np.generic):
        _feed_array(state, np.asarray(value))
    elif isinstance(value, list | tuple):
        _feed_all(state, type(value).__name__, value)
    elif isinstance(value, Mapping):
        _feed_all(state, "mapping", [part for pair in value.items() for part in pair])
    elif isinstance(value, set | frozenset):  # their order differs between processes
        _feed_bytes(state, type(value).__name__, b"".join(sorted(fingerprint(entry, b"entry") for entry in value)))
    elif isinstance(value, PurePath):
        raise ParameterError("`data` must be the data itself, got the path of a file, which could change unnoticed")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        attributes = getattr(value, "__dict__", {})  # includes those that are not fields
        _feed_all(state, type(value).__qualname__, [{**fields, **attributes}])
    elif hasattr(value, "detach") and hasattr(value, "view"):  # a torch tensor
        _feed_tensor(state, value.detach().cpu().contiguous())
    else:
        _feed_pickle(state, value)


def _feed_array(state: Any, array: Any) -> None:
    if array.dtype.hasobject:
        _feed_all(state, f"objects{array.shape}", array.ravel().tolist())
        return
    _feed_bytes(state, "array", f"{array.dtype.descr if array.dtype.names else array.dtype.str}{array.shape}".encode())
    state.update(np.ascontiguousarray(array).view(np.uint8).reshape(-1) if array.size and array.ndim else array.tobytes())


def _feed_tensor(state: Any, tensor: Any) -> None:
    """Hash the bytes of a tensor, because numpy does not know all of torch's types."""
    import torch

    _feed_bytes(state, "tensor", f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    state.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")


def _feed_pickle(state: Any, value: Any) -> None:
    try:
        content = pickle.dumps(value, protocol=5)
    except Exception:  # noqa: BLE001 - for any reason
        raise ParameterError(
            f"`data` must consist of arrays, numbers, text, tables, lists of these, or picklable objects, got a {type(value).__name__}"
        ) from None
    _feed_bytes(state, "pickle", content)


def _feed_all(state: Any, kind: str, values: Any) -> None:
    _feed_bytes(state, kind, str(len(values)).encode())
    for value in values:
        _feed(state, value)


def _feed_bytes(state: Any, kind: str, content: bytes) -> None:
    state.update(f"{kind}:{len(content)}:".encode())
    state.update(content)


def objective_content(objective: Any, enclosing: tuple[Any, ...] = ()) -> Any:
    """Return what distinguishes an objective from another of the same name: its code and the immutable values it holds.

    Mutable values, such as a counter or a cache, may have changed in the trials already run, so only their type is included. All of
    this goes into the keyed fingerprint, never into the public hash of the plan, since it may contain records. A function that refers
    to itself, found among ``enclosing``, is included once.
    """
    if any(objective is outer for outer in enclosing):
        return "itself"
    enclosing = (*enclosing, objective)
    if isinstance(objective, functools.partial):
        given = [*objective.args, *objective.keywords.items()]
        return ["partial", objective_content(objective.func, enclosing), [_fixed_content(value, enclosing) for value in given]]
    if isinstance(objective, MethodType):
        return ["method", objective_content(objective.__func__, enclosing), _fixed_content(objective.__self__, enclosing)]
    if isinstance(objective, FunctionType):
        bound = [cell for cell in objective.__closure__ or () if cell != CellType()]  # an empty cell is a name that is not bound yet
        held = [cell.cell_contents for cell in bound]
        given = [*(objective.__defaults__ or ()), *(objective.__kwdefaults__ or {}).items()]
        return ["function", _code_content(objective.__code__), [_fixed_content(value, enclosing) for value in [*held, *given]]]
    return ["object", _fixed_content(objective, enclosing)]


def _code_content(code: Any) -> Any:
    """Return what distinguishes code, or a constant in it."""
    if isinstance(code, CodeType):
        return [code.co_code, list(code.co_names), [_code_content(constant) for constant in code.co_consts]]
    # The order of a set differs between processes.
    return sorted(map(repr, code)) if isinstance(code, frozenset) else repr(code)


def _fixed_content(value: Any, enclosing: tuple[Any, ...]) -> Any:
    """Return an immutable value or an array unchanged; for anything else its type, and its code if it can be called."""
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return objective_content(value, enclosing)
    if isinstance(value, tuple):
        return [_fixed_content(part, enclosing) for part in value]
    if value is None or isinstance(value, bool | int | float | str | bytes | np.ndarray):
        return value
    call = vars(type(value)).get("__call__")
    content = [type(value).__qualname__, *([objective_content(call, enclosing)] if isinstance(call, FunctionType) else [])]
    parameters = getattr(type(value), "__dataclass_params__", None)
    if dataclasses.is_dataclass(value) and parameters is not None and parameters.frozen:  # not a class itself, as super() holds it
        content += [_fixed_content(getattr(value, field.name), enclosing) for field in dataclasses.fields(value)]
    return content
