"""Mechanisms and laws of K with an unknown number: ``gaussian(sigma=?)``, or ``Gaussian(sigma=UNKNOWN)``."""

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
    """Type of :data:`UNKNOWN`."""

    UNKNOWN = "?"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


UNKNOWN: Final[Any] = Unknown.UNKNOWN  # Any: it is passed where a number is expected


@dataclass(frozen=True, slots=True)
class OpenParameter:
    """Parameter of ``owner`` whose value is unknown.

    ``allowed`` is its range, or None if it is not a number with a range. ``leaks`` states whether a larger value leaks more or
    less, as in `privselect._util.validation.parameter`.
    """

    owner: OpenSpec
    parameter: str
    allowed: Range | None
    leaks: str | None


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class OpenSpec:
    """Description ``spec_class(**arguments)`` with an unknown number. Nothing can be computed from it until `fill` is called."""

    spec_class: type
    arguments: tuple[tuple[str, Any], ...]
    text: str

    def fill(self, value: float) -> Any:
        """Return the mechanism or law of K with ``value`` for the unknown number."""
        return self.spec_class(
            **{name: value if argument is UNKNOWN else _map(argument, lambda part: part.fill(value)) for name, argument in self.arguments}
        )

    def without_unknowns(self) -> Any:
        """Return the mechanism or law of K with the default for the unknown parameter."""
        return self.spec_class(
            **{name: _map(argument, OpenSpec.without_unknowns) for name, argument in self.arguments if argument is not UNKNOWN}
        )

    @property
    def open_parameters(self) -> tuple[OpenParameter, ...]:
        """All unknown parameters, including those of inner descriptions."""
        return tuple(self._find_open_parameters())

    def _find_open_parameters(self) -> Iterator[OpenParameter]:
        fields = {field.name: field.metadata for field in dataclasses.fields(self.spec_class)}
        for name, argument in self.arguments:
            if argument is UNKNOWN:
                yield OpenParameter(self, name, fields[name].get("range"), fields[name].get("leaks"))
            else:
                yield from _find_inside(argument, OpenParameter(self, name, None, None))

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"OpenSpec({self.text!r})"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise ParameterError(f"{self.text} has no `{name}` while a number is left open; solve for it with `plan`")


def is_open(value: object) -> bool:
    """Return whether ``value`` is or contains an unknown number."""
    if isinstance(value, tuple | list):
        return any(map(is_open, value))
    if isinstance(value, dict):
        return any(map(is_open, value.values()))
    return value is UNKNOWN or isinstance(value, OpenSpec)


def make_open_spec(
    spec_class: type, positional: tuple[Any, ...], named: dict[str, Any], write: Callable[[dict[str, Any]], str]
) -> OpenSpec:
    """Return ``spec_class(*positional, **named)`` as an `OpenSpec`; ``write`` returns its text form."""
    bound = inspect.signature(spec_class.__init__).bind(None, *positional, **named)  # type: ignore[misc]  # a class
    arguments = dict(list(bound.arguments.items())[1:])
    return OpenSpec(spec_class, tuple(arguments.items()), write(arguments))


def _map(argument: Any, build: Callable[[OpenSpec], Any]) -> Any:
    """Return ``argument`` with ``build`` applied to every OpenSpec in it."""
    if isinstance(argument, OpenSpec):
        return build(argument)
    return tuple(_map(entry, build) for entry in argument) if isinstance(argument, tuple | list) else argument


def _find_inside(argument: Any, unnamed: OpenParameter) -> Iterator[OpenParameter]:
    """Find the unknowns inside an argument; ``unnamed`` stands for each one that is not a parameter, such as an entry of a list."""
    if argument is UNKNOWN:
        yield unnamed
    elif isinstance(argument, OpenSpec):
        yield from argument.open_parameters
    elif isinstance(argument, tuple | list | dict):
        for entry in argument.values() if isinstance(argument, dict) else argument:
            yield from _find_inside(entry, unnamed)
