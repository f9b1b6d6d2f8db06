"""The declared export of an artifact, so nothing else that a trainer left in an object is released."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from privselect._util.validation import format_value
from privselect.errors import MissingExtraError, ParameterError
from privselect.tuning.plan_ids import name_in_plan

EXPORT_KINDS = ("arrays", "safetensors")
_NAME = re.compile(r"\w+(\.\w+)*")


@dataclass(frozen=True)
class Export:
    """How an artifact becomes bytes, and the file that holds them; ``name`` is the name in the plan."""

    name: str
    file: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def read_export(given: str | Callable[[Any], bytes] | None) -> Export | None:
    """Return the export for "arrays", "safetensors" or a function from the artifact to bytes; None releases only the candidate."""
    if given is None:
        return None
    if given == "arrays":
        return Export("arrays", "model.npz", arrays_to_bytes, arrays_from_bytes)
    if given == "safetensors":
        try:
            import safetensors.numpy as library
        except ModuleNotFoundError:
            raise MissingExtraError(
                "export to safetensors needs safetensors; install it with: pip install 'privselect[safetensors]'"
            ) from None
        return Export("safetensors", "model.safetensors", lambda artifact: bytes(library.save(_check_arrays(artifact))), library.load)
    if callable(given):
        return Export(name_in_plan(given), "model.bin", partial(_call_user_export, given), bytes)
    raise ParameterError(f"`export` must be one of {', '.join(EXPORT_KINDS)}, or a function that returns bytes, got {format_value(given)}")


def arrays_to_bytes(artifact: Any) -> bytes:
    """Encode a dict of arrays as an .npz file whose bytes depend on the arrays only."""
    import numpy as np

    buffer = io.BytesIO()
    # Not with numpy's savez, which has its own argument "file".
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in _check_arrays(artifact).items():
            content = io.BytesIO()
            np.lib.format.write_array(content, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content.getvalue())  # with a fixed date
    return buffer.getvalue()


def arrays_from_bytes(content: bytes) -> Any:
    """Decode the arrays of an .npz file."""
    import numpy as np

    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _check_arrays(artifact: Any) -> dict[str, Any]:
    import numpy as np

    if not isinstance(artifact, Mapping):
        raise ParameterError(f"an artifact of arrays must be a dict of names and arrays, got a {type(artifact).__name__}")
    for name in artifact:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ParameterError(f"an artifact of arrays must have names such as weights or layers.0.bias, got {format_value(name)}")
    arrays = {}
    for name in sorted(artifact):
        value = artifact[name]
        if hasattr(value, "detach") and hasattr(value, "cpu"):
            value = value.detach().cpu().numpy()  # a torch tensor, even if it is still part of a graph
        arrays[name] = array = np.asarray(value, order="C")
        if array.dtype.kind not in "biufcSU":
            raise ParameterError(f"an artifact of arrays must hold numbers or text, got {name} of type {array.dtype}")
    return arrays


def _call_user_export(function: Callable[[Any], bytes], artifact: Any) -> bytes:
    content = function(artifact)
    if not isinstance(content, bytes):
        raise ParameterError(f"`export` must return bytes, got a {type(content).__name__}")
    return content
