"""A keyed fingerprint of the data: resuming with the same randomness on changed data would be a differencing attack."""

from __future__ import annotations

import dataclasses
import functools
import pickle
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import PurePath
from types import CodeType, FunctionType, MethodType
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
    elif isinstance(value, PurePath):
        raise ParameterError("`data` must be the data itself, not the path of a file, which may change unseen; got a path")
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        _feed_all(state, type(value).__qualname__, [{**fields, **getattr(value, "__dict__", {})}])  # also what is no field
    elif hasattr(value, "detach") and hasattr(value, "view"):  # a torch tensor
        _feed_tensor(state, value.detach().cpu().contiguous())
    else:
        _piece(state, "pickle", _pickled(value))


def _feed_array(state: Any, array: Any) -> None:
    if array.dtype.hasobject:
        _feed_all(state, f"objects{array.shape}", array.ravel().tolist())
        return
    _piece(state, "array", f"{array.dtype.descr if array.dtype.names else array.dtype.str}{array.shape}".encode())
    state.update(np.ascontiguousarray(array).view(np.uint8).reshape(-1) if array.size and array.ndim else array.tobytes())


def _feed_tensor(state: Any, tensor: Any) -> None:
    """By its bytes: numpy does not know all of torch's types."""
    import torch

    _piece(state, "tensor", f"{tensor.dtype}{tuple(tensor.shape)}".encode())
    state.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b"")


def _feed_all(state: Any, kind: str, values: Any) -> None:
    _piece(state, kind, str(len(values)).encode())
    for value in values:
        _feed(state, value)


def _piece(state: Any, kind: str, content: bytes) -> None:
    state.update(f"{kind}:{len(content)}:".encode())
    state.update(content)


def feature(objective: Any, within: tuple[Any, ...] = ()) -> Any:
    """What tells an objective from another of the same name, for the fingerprint: its code, and what it holds that cannot change.

    What can change, such as a counter or a cache, is known by its type alone: it may have changed in the trials already run. All this
    is kept under the key, never in the public hash of the plan: it may hold records. A function may hold itself, and is looked at
    once ``within`` itself.
    """
    if any(objective is outer for outer in within):
        return "itself"
    within = (*within, objective)
    if isinstance(objective, functools.partial):
        given = [*objective.args, *objective.keywords.items()]
        return ["partial", feature(objective.func, within), [_known(value, within) for value in given]]
    if isinstance(objective, MethodType):
        return ["method", feature(objective.__func__, within), _known(objective.__self__, within)]
    if isinstance(objective, FunctionType):
        held = [cell.cell_contents for cell in objective.__closure__ or () if _has_contents(cell)]
        given = [*(objective.__defaults__ or ()), *(objective.__kwdefaults__ or {}).items()]
        return ["function", _code(objective.__code__), [_known(value, within) for value in [*held, *given]]]
    return ["object", _known(objective, within)]


def _code(code: CodeType) -> list[Any]:
    return [code.co_code, list(code.co_names), [_constant(constant) for constant in code.co_consts]]


def _constant(constant: Any) -> Any:
    if isinstance(constant, CodeType):
        return _code(constant)
    # A set has another order in every process.
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)


def _has_contents(cell: Any) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:  # of a name that is not bound yet
        return False


def _known(value: Any, within: tuple[Any, ...]) -> Any:
    """A value that cannot change, or an array; of anything else the type, and what it does when it is called."""
    if isinstance(value, FunctionType | MethodType | functools.partial):
        return feature(value, within)
    if isinstance(value, tuple):
        return [_known(part, within) for part in value]
    if value is None or isinstance(value, bool | int | float | str | bytes | np.ndarray):
        return value
    call = vars(type(value)).get("__call__")
    known = [type(value).__qualname__, *([feature(call, within)] if isinstance(call, FunctionType) else [])]
    if dataclasses.is_dataclass(value) and getattr(type(value), "__dataclass_params__").frozen:  # noqa: B009 - mypy does not know it
        known += [_known(getattr(value, field.name), within) for field in dataclasses.fields(value)]
    return known


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception:  # noqa: BLE001 - whatever its reason
        raise ParameterError(
            f"`data` must be arrays, numbers, text, tables and lists of these, or what can be pickled, got a {type(value).__name__}"
        ) from None
