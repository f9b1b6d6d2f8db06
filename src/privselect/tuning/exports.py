"""What leaves a trial: a declared export, never whatever the trainer happened to leave in an object."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from privselect._util.validation import format_value
from privselect.errors import MissingExtraError, ParameterError
from privselect.tuning.plan_ids import name_in_plan

_KINDS = ("arrays", "safetensors")
_NAME = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True)
class Export:
    """How an artifact becomes bytes and which file holds them; ``name`` is what the plan says."""

    name: str
    file: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def read_export(given: str | Callable[[Any], bytes] | None) -> Export | None:
    """``"arrays"``, ``"safetensors"``, a function from the artifact to bytes, or None where only the candidate is released."""
    if given is None:
        return None
    if given == "arrays":
        return Export("arrays", "model.npz", arrays_to_bytes, arrays_from_bytes)
    if given == "safetensors":
        _safetensors()
        return Export("safetensors", "model.safetensors", _to_safetensors, _from_safetensors)
    if callable(given):
        return Export(name_in_plan(given), "model.bin", _UserExport(given), bytes)
    raise ParameterError(f"`export` must be one of {', '.join(_KINDS)}, or a function that returns bytes, got {format_value(given)}")


def arrays_to_bytes(artifact: Any) -> bytes:
    """A table of numeric arrays as the bytes of an .npz file, which depend on nothing but the arrays."""
    import numpy as np

    buffer = io.BytesIO()
    # Not by numpy's savez, to which an array called "file" is something else.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in _checked_arrays(artifact).items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())  # of a fixed date
    return buffer.getvalue()


def arrays_from_bytes(content: bytes) -> Any:
    """The arrays back."""
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _checked_arrays(artifact: Any) -> dict[str, Any]:
    import numpy as np

    if not isinstance(artifact, Mapping):
        raise ParameterError(f"an artifact of arrays must be a table of names and arrays, got a {type(artifact).__name__}")
    for name in artifact:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ParameterError(f"an artifact of arrays must have names such as weights or layers.0.bias, got {format_value(name)}")
    arrays = {name: np.asarray(_plain_array(artifact[name]), order="C") for name in sorted(artifact)}
    for name, array in arrays.items():
        if array.dtype.kind not in "biufcSU":
            raise ParameterError(f"an artifact of arrays must hold numbers or text, got {name} of type {array.dtype}")
    return arrays


def _plain_array(value: Any) -> Any:
    """A torch tensor as an array, also one that is still part of a graph."""
    return value.detach().cpu().numpy() if hasattr(value, "detach") and hasattr(value, "cpu") else value


@dataclass(frozen=True)
class _UserExport:
    function: Callable[[Any], bytes]

    def __call__(self, artifact: Any) -> bytes:
        content = self.function(artifact)
        if not isinstance(content, bytes):
            raise ParameterError(f"`export` must return bytes, got a {type(content).__name__}")
        return content


def _safetensors() -> Any:
    try:
        import safetensors.numpy
    except ModuleNotFoundError:
        raise MissingExtraError("export to safetensors needs safetensors; install it with: pip install 'privselect[safetensors]'") from None
    return safetensors.numpy


def _to_safetensors(artifact: Any) -> bytes:
    return bytes(_safetensors().save(_checked_arrays(artifact)))


def _from_safetensors(content: bytes) -> Any:
    return _safetensors().load(content)
