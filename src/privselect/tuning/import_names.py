"""From ``module:function`` to what it names, as a plan file writes it."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import MissingExtraError, ParameterError, PrivselectError
from privselect.tuning.isolation.suppress_output import silence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_MORE = "its text is not shown, as it may hold records: `privselect tune --dry-run` shows more, on synthetic data"


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[None]:
    """Modules in this folder can be imported, as those beside a script can."""
    place = str(folder.resolve())
    sys.path.insert(0, place)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(place)


def imported(key: str, name: str) -> Any:
    """What is called ``module:function``; a module that cannot be imported is the cause of the refusal, for a dry run to show."""
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:  # its text holds a module's name alone
        raise ParameterError(f"`{key}` must be module:function that can be imported, got {format_value(name)} ({error})") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        said = f"importing {module} ended with {type(error).__name__}; {_MORE}"
        raise ParameterError(f"`{key}` must be module:function that can be imported, got {format_value(name)} ({said})") from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ParameterError(f"`{key}` must be module:function that is there, got {format_value(name)}: {format_value(module)} has no {part}")
        found = getattr(found, part)
    return found


def function(key: str, name: str) -> Callable[..., Any]:
    """As above, and it can be called."""
    found = imported(key, name)
    if not callable(found):
        raise ParameterError(f"`{key}` must be a function, got {format_value(name)}, which is a {type(found).__name__}")
    return found  # type: ignore[no-any-return]  # that it can be called is all that is known


def guarded(key: str, name: str) -> Callable[..., Any]:
    """A function that reads private records in this process: of what it prints and of how it fails no text is seen."""
    reader = function(key, name)

    @functools.wraps(reader)
    def read(*arguments: Any) -> Any:
        try:
            with silence():
                return reader(*arguments)
        except (KeyboardInterrupt, MissingExtraError):
            raise
        except BaseException as error:  # noqa: BLE001 - also SystemExit, whose text Python would print
            raise _failed(key, name, error) from None

    return read


def made(key: str, name: str) -> Any:
    """What a function that is given nothing returns."""
    try:
        return function(key, name)()
    except (KeyboardInterrupt, PrivselectError):
        raise
    except BaseException as error:
        raise _failed(key, name, error) from error


def _failed(key: str, name: str, error: BaseException) -> ParameterError:
    return ParameterError(f"`{key}` must be a function that succeeds, got {type(error).__name__} from {format_value(name)}; {_MORE}")
