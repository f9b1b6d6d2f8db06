"""A mechanism or law of K with a number left open: ``gaussian(sigma=?)``, or ``Gaussian(sigma=UNKNOWN)``."""

from __future__ import annotations

import dataclasses
import inspect
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from privselect.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from privselect._util.validation import Range


class Unknown(Enum):
    """The type of :data:`UNKNOWN`."""

    UNKNOWN = "?"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


UNKNOWN: Final[Any] = Unknown.UNKNOWN  # Any: it stands where a number does


@dataclass(frozen=True, slots=True)
class OpenParameter:
    """Which parameter is left open, of what; ``allowed`` is None where it is no number with a range of its own."""

    owner: OpenSpec
    parameter: str
    allowed: Range | None
    leaks: str | None  # as the parameter grows: see parameters.parameter


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class OpenSpec:
    """What ``described(**arguments)`` will be once its open number is known. It cannot be computed with, only filled."""

    described: type
    arguments: tuple[tuple[str, Any], ...]
    text: str

    def fill(self, value: float) -> Any:
        """The mechanism or law with ``value`` in place of the unknown."""
        return self.described(
            **{
                name: value if argument is UNKNOWN else _mapped(argument, lambda sketch: sketch.fill(value))
                for name, argument in self.arguments
            }
        )

    def emptied(self) -> Any:
        """The mechanism or law with the unknown parameter left out, at its default."""
        return self.described(**{name: _mapped(argument, OpenSpec.emptied) for name, argument in self.arguments if argument is not UNKNOWN})

    @property
    def holes(self) -> tuple[OpenParameter, ...]:
        """Every place left open."""
        return tuple(self._holes())

    def _holes(self) -> Iterator[OpenParameter]:
        fields = {field.name: field.metadata for field in dataclasses.fields(self.described)}
        for name, argument in self.arguments:
            if argument is UNKNOWN:
                yield OpenParameter(self, name, fields[name].get("range"), fields[name].get("leaks"))
            else:
                yield from _inside(argument, OpenParameter(self, name, None, None))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"Sketch({self.text!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ParameterError(f"{self.text} has no `{name}` while a number is left open; solve for it with `plan`")


def is_open(value: object) -> bool:
    """Whether a number is left open somewhere in it."""
    if isinstance(value, tuple | list):
        return any(map(is_open, value))
    if isinstance(value, dict):
        return any(map(is_open, value.values()))
    return value is UNKNOWN or isinstance(value, OpenSpec)


def make_open_spec(described: type, positional: tuple[Any, ...], named: dict[str, Any], write: Callable[[dict[str, Any]], str]) -> OpenSpec:
    """The sketch of ``described(*positional, **named)``."""
    bound = inspect.signature(described.__init__).bind(None, *positional, **named)  # type: ignore[misc]  # a class
    arguments = dict(list(bound.arguments.items())[1:])
    return OpenSpec(described, tuple(arguments.items()), write(arguments))


def _mapped(argument: Any, build: Callable[[OpenSpec], Any]) -> Any:
    """``argument`` with every sketch in it built."""
    if isinstance(argument, OpenSpec):
        return build(argument)
    return tuple(_mapped(entry, build) for entry in argument) if isinstance(argument, tuple | list) else argument


def _inside(argument: Any, nameless: OpenParameter) -> Iterator[OpenParameter]:
    if argument is UNKNOWN:
        yield nameless
    elif isinstance(argument, OpenSpec):
        yield from argument.holes
    elif isinstance(argument, tuple | list | dict):
        for entry in argument.values() if isinstance(argument, dict) else argument:
            yield from _inside(entry, nameless)
