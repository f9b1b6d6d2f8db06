"""The text forms: ``gaussian(sigma=4)``, ``geometric(mean=30, cap=200)``, ``selection(..., ...)``.

One small grammar, read without ``eval``; one registry from names to classes; and writing that loses no digit,
so ``parse(str(thing)) == thing``.

    value   = number | "?" | name | call | weight "*" call | "(" values ")" | "{" number ":" number, ... "}"
    call    = name "(" [value | name "=" value], ... ")"
    number  = ["-"] digits [fraction and exponent] ["/" digits], with the digits 0 to 9

A ``?`` leaves a number open: such a text is read as a :class:`privselect.open_spec.OpenSpec`, for ``plan`` to solve.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import re
from abc import ABC
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from privselect._util.number_literals import OutOfRangeLiteral, LiteralFraction, parse_literal
from privselect._util.validation import check_number, truncate, format_value
from privselect.errors import ParameterError, TextFormError
from privselect.open_spec import UNKNOWN, OpenSpec, is_open, make_open_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect._util.validation import Range

_REGISTRY: dict[str, type[Spec]] = {}
_LONGEST = 200_000  # characters: a law with thousands of weights still fits
_DEEPEST = 40  # nested brackets: far beyond any sensible mechanism, far below Python's recursion limit
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[(){},:=*/+?-]))",
    re.ASCII,  # no digits but 0 to 9
)

D = TypeVar("D", bound="type[Described]")


class Spec(ABC):
    """A frozen dataclass with checked parameters and one text form.

    A field made by :func:`privselect._util.validation.parameter` is checked against its range. Fields marked
    ``positional`` in their metadata are written without their name; a field marked ``variadic`` takes all
    positional arguments as one tuple.
    """

    __slots__ = ()
    text_name: ClassVar[str]

    def __new__(cls, *positional: Any, **named: Any) -> Spec:  # noqa: PYI034 -- a Sketch is no Self
        """A sketch where a number is left open, an object like any other where none is."""
        if is_open(positional) or is_open(named):
            return make_open_spec(cls, positional, named, cls._written_sketch)  # type: ignore[return-value]
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            allowed = field.metadata.get("range")
            value = getattr(self, field.name)
            if allowed is not None and not (value is None and field.default is None):
                object.__setattr__(self, field.name, check_number(field.name, value, allowed))

    def __str__(self) -> str:
        return f"{self.text_name}({', '.join(self._written_arguments())})"

    def __repr__(self) -> str:
        """As Python: what is at its default left out, what the class itself adds first."""
        fields = [(field.name, getattr(self, field.name), field.default) for field in _in_order(self)]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value, default in fields if value != default)})"

    def _written_arguments(self) -> Iterator[str]:
        for field in _in_order(self):
            value = getattr(self, field.name)
            if field.metadata.get("variadic"):
                yield from map(write_value, value)
            elif field.metadata.get("positional"):
                yield write_value(value)
            elif value != field.default:
                yield f"{field.name}={write_value(value)}"

    @classmethod
    def _written_sketch(cls, arguments: dict[str, Any]) -> str:
        fields = [field for field in _in_order(cls) if arguments.get(field.name) is not None]
        written: list[str] = []
        for field in fields:
            value = arguments[field.name]
            if field.metadata.get("variadic"):
                written += map(_write_part, value if isinstance(value, tuple | list) else [value])
            else:
                written.append(write_value(value) if field.metadata.get("positional") else f"{field.name}={write_value(value)}")
        return f"{cls.text_name}({', '.join(written)})"

    @classmethod
    def from_arguments(cls, positional: list[Any], named: dict[str, Any]) -> Spec:
        """Build from what a text form holds; complain in one sentence about missing or surplus parameters."""
        fields = [f for f in _in_order(cls) if f.init]
        places = [f.name for f in fields if f.metadata.get("positional")]
        variadic = next((f.name for f in fields if f.metadata.get("variadic")), None)
        arguments = dict(named)
        if variadic is not None:
            arguments[variadic] = tuple(positional)
        elif len(positional) > len(places):
            raise TextFormError(
                f"`{cls.text_name}` takes {_listed(f.name for f in fields)} by name, got {_told(positional[-1])} without one"
            )
        else:
            for place, value in zip(places, positional, strict=False):
                if place in named:
                    raise TextFormError(f"`{cls.text_name}` got `{place}` twice")
                arguments[place] = value
        known = [f.name for f in fields]
        for name in arguments:
            if name not in known:
                takes = f"it takes {_listed(known)}{_nearest(name, known)}"
                raise TextFormError(f"`{cls.text_name}` has no parameter `{truncate(name)}`; {takes}")
        missing = [
            f.name
            for f in fields
            if f.name not in arguments and f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING
        ]
        if missing:
            raise TextFormError(f"`{cls.text_name}` needs {_listed(missing)}")
        return cls(**arguments)


def register(cls: D) -> D:
    """Class decorator: make the class known to :func:`parse` by its ``text_name``."""
    _REGISTRY[cls.text_name] = cls
    cls.__repr__ = Spec.__repr__  # type: ignore[method-assign]  # the dataclass decorator has put its own there
    return cls


def parse(text: str) -> Any:
    """The mechanism or law of K that a text form describes; a :class:`OpenSpec` of it where a ``?`` leaves a number open."""
    for package in ("counts", "mechanisms", "selection", "noisy_max", "regression"):
        importlib.import_module(f"privselect.{package}")
    if not isinstance(text, str):
        raise TextFormError(f"a text form must be a string, got {type(text).__name__}")
    if len(text) > _LONGEST:
        raise TextFormError(f"a text form must have at most {_LONGEST} characters, got {len(text)}")
    if not text.strip():
        raise TextFormError("the text form is empty; write something like gaussian(sigma=4)")
    reader = _Reader(text)
    value = reader.value()
    reader.finish()
    if not isinstance(value, Spec | OpenSpec):
        raise TextFormError(f"expected something like gaussian(sigma=4), got {_short(text.strip())}")
    return value


def parse_number(text: str) -> Fraction | None:
    """A number in the grammar above, exactly; None where it is beyond every parameter."""
    reader = _Reader(text)
    number = reader.number()
    reader.finish()
    return None if isinstance(number, OutOfRangeLiteral) else Fraction(number)


def parse_parameter(name: str, text: str, allowed: Range) -> float:
    """What was typed for ``name``, in the grammar above and in its range, or one clear sentence that shows it as it was typed."""
    try:
        number = parse_number(text)
    except TextFormError:
        number = None
    try:
        return check_number(name, number, allowed)
    except ParameterError as error:
        said, got, _ = str(error).rpartition(", got ")
        raise ParameterError(f"{said}{got}{format_value(text)}") from None


def write_value(value: object) -> str:
    """A value in the grammar above, with every digit it has."""
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{write_value(k)}: {write_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(write_value, value)) + ")"
    return str(value)


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class Weighted:
    """``weight * thing``, as it stands inside ``mixture(...)``."""

    weight: Fraction
    thing: Spec

    def __str__(self) -> str:
        return f"{self.weight}*{self.thing}"

    def __repr__(self) -> str:
        """The pair that a mixture takes."""
        return f"({self.weight!r}, {self.thing!r})"


class _Reader:
    """Recursive descent over the tokens; every complaint says what was expected and where."""

    def __init__(self, text: str) -> None:
        self.text, self.place, self.depth = text, 0, 0
        self.kind, self.token, self.start = "", "", 0
        self.advance()

    def advance(self) -> None:
        match = _TOKEN.match(self.text, self.place)
        if match is None:
            rest = self.text[self.place :].strip()
            if rest and rest[0].isnumeric():
                raise TextFormError(f"numbers are written with the digits 0 to 9, got {rest[0]!r} in {_short(self.text)}")
            if rest:
                raise TextFormError(f"unexpected {rest[0]!r} in {_short(self.text)}")
            self.kind, self.token, self.start = "end", "", len(self.text)
            return
        self.kind, self.token = str(match.lastgroup), match.group(str(match.lastgroup))
        self.start, self.place = match.start(str(match.lastgroup)), match.end()

    def take(self, mark: str) -> bool:
        if self.kind == "mark" and self.token == mark:
            self.advance()
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.take(mark):
            raise self.instead_of(repr(mark))

    def instead_of(self, expected: str) -> TextFormError:
        found = f"{_short(self.token)} at character {self.start + 1}" if self.kind != "end" else "the end"
        return TextFormError(f"expected {expected} but found {found} in {_short(self.text)}")

    def finish(self) -> None:
        if self.kind != "end":
            raise TextFormError(f"unexpected {_short(self.token)} at character {self.start + 1} in {_short(self.text)}")

    def value(self) -> Any:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise TextFormError(f"a text form may nest at most {_DEEPEST} brackets deep")
        try:
            return self._value()
        finally:
            self.depth -= 1

    def _value(self) -> Any:
        if self.kind == "number" or (self.kind == "mark" and self.token in {"+", "-"}):
            number = self.number()
            if self.take("*"):
                return self.weighted(number)
            return number
        if self.kind == "name":
            name = self.token
            self.advance()
            return self.call(name) if self.take("(") else name
        if self.take("?"):
            return UNKNOWN
        if self.take("("):
            return tuple(self.several(")"))
        if self.take("{"):
            return self.table()
        raise self.instead_of("a value")

    def number(self) -> int | Fraction | OutOfRangeLiteral:
        start = self.start
        negative = self.take("-")
        if not negative:
            self.take("+")
        end, top = self.literal()
        value = None if top is None else -top if negative else top
        if self.take("/"):
            end, bottom = self.literal()
            if bottom == 0:
                raise TextFormError(f"division by zero in {_short(self.text)}")
            value = None if value is None or bottom is None else Fraction(value) / Fraction(bottom)
        text = self.text[start:end]
        if value is None:
            return OutOfRangeLiteral(text)
        return value if isinstance(value, int) else LiteralFraction(value, text)

    def literal(self) -> tuple[int, int | Fraction | None]:
        """Where the literal ends, and its value."""
        token, end = self.token, self.place
        if self.kind != "number":
            raise self.instead_of("a number")
        self.advance()
        return end, parse_literal(token)

    def weighted(self, number: int | Fraction | OutOfRangeLiteral) -> Weighted | tuple[Fraction, OpenSpec]:
        thing = self.value()
        if not isinstance(thing, Spec | OpenSpec):
            raise TextFormError(f"a weight multiplies a mechanism, got {_told(thing)}")
        if isinstance(number, OutOfRangeLiteral):
            raise TextFormError(f"a weight must be in (0, 1], got {_told(number)}")
        weight = Fraction(number) if isinstance(number, int) else number
        return Weighted(weight, thing) if isinstance(thing, Spec) else (weight, thing)

    def several(self, close: str) -> Iterator[Any]:
        while not self.take(close):
            yield self.value()
            if not self.take(","):
                self.need(close)
                return

    def table(self) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        while not self.take("}"):
            key = self.value()
            self.need(":")
            if not isinstance(key, (int, Fraction, OutOfRangeLiteral)) or key in entries:
                raise TextFormError(f"each entry of {{...}} needs its own number before the colon, got {_told(key)}")
            entries[key] = self.value()
            if not self.take(","):
                self.need("}")
                break
        return entries

    def call(self, name: str) -> Spec:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if name not in _REGISTRY:
            raise TextFormError(
                f"unknown mechanism or law {_short(name)}; known are {_listed(sorted(_REGISTRY))}{_nearest(name, list(_REGISTRY))}"
            )
        while not self.take(")"):
            self.argument(name, positional, named)
            if not self.take(","):
                self.need(")")
                break
        try:
            return _REGISTRY[name].from_arguments(positional, named)
        except ParameterError as error:
            said = str(error)
            raise type(error)(said if said.startswith(f"`{name}` ") else f"{name}: {said}") from None

    def argument(self, name: str, positional: list[Any], named: dict[str, Any]) -> None:
        value = self.value()
        if isinstance(value, str) and self.take("="):
            if value in named:
                raise TextFormError(f"`{name}` got `{truncate(value)}` twice")
            named[value] = self.value()
        elif named:
            raise TextFormError(f"`{name}` got {_told(value)} without a name after named parameters")
        else:
            positional.append(value)


def _write_part(part: object) -> str:
    if isinstance(part, tuple | list) and len(part) == 2 and isinstance(part[1], Spec | OpenSpec):
        return f"{write_value(part[0])}*{part[1]}"
    return write_value(part)


def _in_order(described: Any) -> list[dataclasses.Field[Any]]:
    """Fields as they are written: those that only go by name come last."""
    return sorted(dataclasses.fields(described), key=lambda field: field.kw_only is True)


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _told(value: object) -> str:
    return truncate(write_value(value))


def _short(text: str) -> str:
    return repr(truncate(text, 60))
