"""Files that appear whole or not at all, and refusals about them in one sentence."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_output_file(name: str, path: str | Path, endings: Sequence[str] = ()) -> Path:
    """``path`` as a file that can be written, or one clear sentence: to be asked before the work begins."""
    file = Path(path)
    try:
        if file.is_dir():
            raise ParameterError(f"`{name}` must be a file, got the directory {format_value(str(path))}")
        if file.exists() and not file.is_file():  # putting a file in the place of a device would remove the device
            raise ParameterError(f"`{name}` must be a regular file, got {format_value(str(path))}")
        if endings and file.suffix.lower() not in endings:
            raise ParameterError(f"`{name}` must end in {', '.join(endings)}, got {format_value(str(path))}")
        if not file.parent.is_dir():
            raise ParameterError(f"`{name}` must be a file in a folder that exists, got {format_value(str(path))}")
    except OSError as error:  # a name too long to ask about
        raise write_error(name, file, error) from None
    return file


def write_error(name: str, file: Path, error: OSError) -> ParameterError:
    """What the system said about a file to be written, as a refusal."""
    return ParameterError(f"`{name}` must be a file that can be written, got {format_value(str(file))} ({error.strerror})")


def atomic_write(path: Path, content: bytes) -> None:
    """Beside the file first, then under its name: a failure leaves nothing half-written."""
    file = path.resolve()  # a link stays one
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, file)  # noqa: PTH105 -- over an existing file too, on every system
    finally:
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Names that were given in a folder outlast a loss of power, where the system lets folders be synced."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
