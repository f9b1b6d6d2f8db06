"""File access: checks before the work begins, atomic writing, bounded reading."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import ParameterError, PrivselectError

if TYPE_CHECKING:
    from collections.abc import Sequence


def check_output_file(name: str, path: str | Path, suffixes: Sequence[str] = ()) -> Path:
    """Check that ``path`` can be written as a file, and return it. Call this before the work begins."""
    file = Path(path)
    try:
        if file.is_dir():
            raise ParameterError(f"`{name}` must be a file, got the directory {format_value(str(path))}")
        if file.exists() and not file.is_file():  # replacing a device would remove it
            raise ParameterError(f"`{name}` must be a regular file, got {format_value(str(path))}")
        if suffixes and file.suffix.lower() not in suffixes:
            raise ParameterError(f"`{name}` must end in {', '.join(suffixes)}, got {format_value(str(path))}")
        if not file.parent.is_dir():
            raise ParameterError(f"`{name}` must be a file in a folder that exists, got {format_value(str(path))}")
    except OSError as error:  # for example, the name is too long
        raise write_error(name, file, error) from None
    return file


def write_error(name: str, file: Path, error: OSError) -> ParameterError:
    """Return the error for a file that the system refuses to write."""
    return ParameterError(f"`{name}` must be a file that can be written, got {format_value(str(file))} ({error.strerror})")


def atomic_write(path: Path, content: bytes) -> None:
    """Write a temporary file next to ``path``, then rename it: a failure leaves no half-written file."""
    file = path.resolve()  # keep a symbolic link
    part = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        part.write_bytes(content)
        os.replace(part, file)  # noqa: PTH105 -- replaces an existing file on every system
    finally:
        part.unlink(missing_ok=True)


def read_limited(subject: str, path: str | Path, limit: int, error_type: type[PrivselectError] = ParameterError) -> bytes:
    """Return the content of a file of at most ``limit`` bytes, or raise ``error_type`` about ``subject``."""
    content = read_prefix(subject, path, limit + 1, error_type)
    if len(content) > limit:
        raise error_type(f"{subject} must have at most {limit} bytes, got more in {format_value(str(path))}")
    return content


def read_prefix(subject: str, path: str | Path, size: int, error_type: type[PrivselectError] = ParameterError) -> bytes:
    """Return at most the first ``size`` bytes of a file, or raise ``error_type`` about ``subject``."""
    try:
        with Path(path).open("rb") as file:
            return file.read(size)
    except (OSError, ValueError) as error:
        raise read_error(subject, path, error, error_type) from None


def read_error(subject: str, path: str | Path, error: Exception, error_type: type[PrivselectError] = ParameterError) -> PrivselectError:
    """Return the error for a path that the system refuses to read."""
    reason = error.strerror if isinstance(error, OSError) else error  # a name with a null character is a ValueError
    return error_type(f"{subject} must be a file that can be read, got {format_value(str(path))} ({reason})")


def sync_folder(folder: Path) -> None:
    """Sync a folder, if the system allows it, so new file names survive a loss of power."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
