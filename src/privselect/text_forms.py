"""The text forms: ``gaussian(sigma=4)``, ``geometric(mean=30, cap=200)``, ``selection(..., ...)``.

A small grammar parsed without ``eval``, a registry from names to classes, and a writer that keeps every digit:
``parse(str(spec)) == spec``.

    value   = number | "?" | name | call | weight "*" call | "(" values ")" | "{" number ":" number, ... "}"
    call    = name "(" [value | name "=" value], ... ")"
    number  = ["-"] digits [fraction and exponent] ["/" digits], with the digits 0 to 9

A ``?`` is an unknown number. A text with one is parsed to a :class:`privselect.open_spec.OpenSpec`; `plan` solves for the number.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import re
from abc import ABC
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from privselect._util.number_literals import LiteralFraction, OutOfRangeLiteral, parse_literal
from privselect._util.validation import check_number, format_value, truncate
from privselect.errors import ParameterError, TextFormError
from privselect.open_spec import UNKNOWN, OpenSpec, is_open, make_open_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect._util.validation import Range

_REGISTRY: dict[str, type[Spec]] = {}
_MAX_CHARACTERS = 200_000  # enough for a law of K with thousands of weights
_MAX_DEPTH = 40  # of nested brackets: far below Python's recursion limit
_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_]\w*)|(?P<mark>[(){},:=*/+?-]))",
    re.ASCII,  # no digits but 0 to 9
)

D = TypeVar("D", bound="type[Spec]")
S = TypeVar("S", bound="Spec")


class Spec(ABC):
    """Frozen dataclass with checked parameters and one text form: a mechanism, a law of K or a noise.

    A field declared with :func:`privselect._util.validation.parameter` is checked against its range. A field with
    ``positional`` in its metadata is written without its name. A field with ``variadic`` takes all positional arguments as one tuple.
    """

    __slots__ = ()
    text_name: ClassVar[str]

    def __new__(cls, *positional: Any, **named: Any) -> Spec:  # noqa: PYI034 -- an OpenSpec is not a Self
        """Return an OpenSpec if a number is unknown, otherwise an object of this class."""
        if is_open(positional) or is_open(named):
            return make_open_spec(cls, positional, named, cls._open_text_form)  # type: ignore[return-value]
        return object.__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            allowed = field.metadata.get("range")
            value = getattr(self, field.name)
            if allowed is not None and not (value is None and field.default is None):
                object.__setattr__(self, field.name, check_number(field.name, value, allowed))

    def __str__(self) -> str:
        return f"{self.text_name}({', '.join(self._argument_texts())})"

    def __repr__(self) -> str:
        """Return the Python expression, without parameters at their default."""
        fields = [(field.name, getattr(self, field.name), field.default) for field in _in_order(self)]
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value, default in fields if value != default)})"

    def _argument_texts(self) -> Iterator[str]:
        for field in _in_order(self):
            value = getattr(self, field.name)
            if field.metadata.get("variadic"):
                yield from map(write_value, value)
            elif field.metadata.get("positional"):
                yield write_value(value)
            elif value != field.default:
                yield f"{field.name}={write_value(value)}"

    @classmethod
    def _open_text_form(cls, arguments: dict[str, Any]) -> str:
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
        """Create the object from the arguments of a text form; raise TextFormError for a missing or unknown parameter."""
        fields = [f for f in _in_order(cls) if f.init]
        places = [f.name for f in fields if f.metadata.get("positional")]
        variadic = next((f.name for f in fields if f.metadata.get("variadic")), None)
        arguments = dict(named)
        if variadic is not None:
            arguments[variadic] = tuple(positional)
        elif len(positional) > len(places):
            raise TextFormError(
                f"`{cls.text_name}` takes {_listed(f.name for f in fields)} by name, got {_quote(positional[-1])} without one"
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
    """Register a class for :func:`parse` by its ``text_name`` (class decorator)."""
    _REGISTRY[cls.text_name] = cls
    cls.__repr__ = Spec.__repr__  # type: ignore[method-assign]  # replaces the one of the dataclass decorator
    return cls


def parse(text: str) -> Any:
    """Parse a text form such as ``gaussian(sigma=4)`` into a mechanism, law of K or noise; into an OpenSpec if it contains ``?``."""
    for package in ("counts", "mechanisms", "selection", "noisy_max", "regression"):
        importlib.import_module(f"privselect.{package}")
    if not isinstance(text, str):
        raise TextFormError(f"a text form must be a string, got {type(text).__name__}")
    if len(text) > _MAX_CHARACTERS:
        raise TextFormError(f"a text form must have at most {_MAX_CHARACTERS} characters, got {len(text)}")
    if not text.strip():
        raise TextFormError("the text form is empty; write something like gaussian(sigma=4)")
    parser = _Parser(text)
    value = parser.value()
    parser.finish()
    if not isinstance(value, Spec | OpenSpec):
        raise TextFormError(f"expected something like gaussian(sigma=4), got {_short(text.strip())}")
    return value


def read_spec(given: object, kind: type[S], requirement: str) -> S | OpenSpec:
    """Return a spec of class ``kind``, possibly with open parameters, from an object or its text form.

    Anything else raises an error that starts with ``requirement``, such as "`count` must be a law of K".
    """
    spec = parse(given) if isinstance(given, str) else given
    if isinstance(spec, kind) or (isinstance(spec, OpenSpec) and issubclass(spec.spec_class, kind)):
        return spec
    raise (TextFormError if isinstance(given, str) else ParameterError)(f"{requirement}, got {format_value(spec)}")


def parse_number(text: str) -> Fraction | None:
    """Parse a number exactly; return None if it is outside every parameter's range."""
    parser = _Parser(text)
    number = parser.number()
    parser.finish()
    return None if isinstance(number, OutOfRangeLiteral) else Fraction(number)


def parse_parameter(name: str, text: str, allowed: Range) -> float:
    """Parse the text typed for parameter ``name`` and check its range; an error message shows the text as typed."""
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
    """Write a value in the grammar, with all its digits."""
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
class WeightedSpec:
    """Part ``weight * spec`` of a ``mixture(...)``."""

    weight: Fraction
    spec: Spec

    def __str__(self) -> str:
        return f"{self.weight}*{self.spec}"

    def __repr__(self) -> str:
        """Return the pair (weight, spec), which a mixture accepts."""
        return f"({self.weight!r}, {self.spec!r})"


class _Parser:
    """Recursive-descent parser; every error states what was expected and where."""

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

    def expect(self, mark: str) -> None:
        if not self.take(mark):
            raise self.unexpected(repr(mark))

    def unexpected(self, expected: str) -> TextFormError:
        found = f"{_short(self.token)} at character {self.start + 1}" if self.kind != "end" else "the end"
        return TextFormError(f"expected {expected} but found {found} in {_short(self.text)}")

    def finish(self) -> None:
        if self.kind != "end":
            raise TextFormError(f"unexpected {_short(self.token)} at character {self.start + 1} in {_short(self.text)}")

    def value(self) -> Any:
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise TextFormError(f"a text form may nest at most {_MAX_DEPTH} brackets deep")
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
            return tuple(self.values_until(")"))
        if self.take("{"):
            return self.mapping()
        raise self.unexpected("a value")

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
        """Return the position after the literal, and its value."""
        token, end = self.token, self.place
        if self.kind != "number":
            raise self.unexpected("a number")
        self.advance()
        return end, parse_literal(token)

    def weighted(self, number: int | Fraction | OutOfRangeLiteral) -> WeightedSpec | tuple[Fraction, OpenSpec]:
        spec = self.value()
        if not isinstance(spec, Spec | OpenSpec):
            raise TextFormError(f"a weight multiplies a mechanism, got {_quote(spec)}")
        if isinstance(number, OutOfRangeLiteral):
            raise TextFormError(f"a weight must be in (0, 1], got {_quote(number)}")
        weight = Fraction(number) if isinstance(number, int) else number
        return WeightedSpec(weight, spec) if isinstance(spec, Spec) else (weight, spec)

    def values_until(self, close: str) -> Iterator[Any]:
        while not self.take(close):
            yield self.value()
            if not self.take(","):
                self.expect(close)
                return

    def mapping(self) -> dict[Any, Any]:
        entries: dict[Any, Any] = {}
        while not self.take("}"):
            key = self.value()
            self.expect(":")
            if not isinstance(key, (int, Fraction, OutOfRangeLiteral)) or key in entries:
                raise TextFormError(f"each entry of {{...}} needs its own number before the colon, got {_quote(key)}")
            entries[key] = self.value()
            if not self.take(","):
                self.expect("}")
                break
        return entries

    def call(self, name: str) -> Spec:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        if name not in _REGISTRY:
            raise TextFormError(
                f"unknown mechanism or law of K {_short(name)}; known are {_listed(sorted(_REGISTRY))}{_nearest(name, list(_REGISTRY))}"
            )
        while not self.take(")"):
            self.argument(name, positional, named)
            if not self.take(","):
                self.expect(")")
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
            raise TextFormError(f"`{name}` got {_quote(value)} without a name after named parameters")
        else:
            positional.append(value)


def _write_part(part: object) -> str:
    if isinstance(part, tuple | list) and len(part) == 2 and isinstance(part[1], Spec | OpenSpec):
        return f"{write_value(part[0])}*{part[1]}"
    return write_value(part)


def _in_order(spec: Any) -> list[dataclasses.Field[Any]]:
    """Return the fields in the order of the text form: keyword-only fields come last."""
    return sorted(dataclasses.fields(spec), key=lambda field: field.kw_only is True)


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _nearest(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f" (did you mean `{close[0]}`?)" if close else ""


def _quote(value: object) -> str:
    return truncate(write_value(value))


def _short(text: str) -> str:
    return repr(truncate(text, 60))
