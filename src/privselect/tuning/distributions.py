"""The distribution of one hyperparameter, with an exact sampler and a test whether a value is possible."""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from privselect._util.random_bits import uniform_below
from privselect._util.validation import POSITIVE, REAL, Range, check_fraction, check_number, format_value, integer_range
from privselect.errors import ParameterError

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy

MAX_LISTED = 1000  # values of a distribution, or candidates of a space, that are listed one by one
_FLOAT_BITS = 53
_WEIGHT = re.compile(r"[0-9]{1,100}(/[0-9]{1,100}|\.[0-9]{1,100})?")
_MAX_OPTIONS = 10_000


class Distribution(ABC):
    """The distribution of one hyperparameter."""

    @abstractmethod
    def draw(self, entropy: Entropy) -> Any:
        """Draw one value."""

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Return the distribution for JSON, with every number in full, because it is hashed."""

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """Return every value with its exact probability, or None if there are infinitely or too many values."""
        return None

    def contains(self, value: Any) -> bool:
        """Return whether the value can be drawn."""
        listed = self.listed()
        if listed is None:
            raise ParameterError(f"a {type(self).__name__} must define `contains` before a default can fix its value, got none")
        return bool(_same_options(value, [option for _, option in listed]))

    def normalize(self, value: Any) -> Any:
        """Return a value that the distribution contains in the form in which it would be drawn."""
        return value

    @property
    def allowed(self) -> str:
        """What a value must be, for error messages."""
        return f"a value of {self!r}"


class _Interval(Distribution):
    """A distribution on the numbers from ``low`` to ``high``, which must be in the range ``valid``."""

    kind: ClassVar[str]  # the name in plan files
    valid: ClassVar[Range]
    low: Any
    high: Any

    def __post_init__(self) -> None:
        for bound in ("low", "high"):
            object.__setattr__(self, bound, check_number(bound, getattr(self, bound), self.valid))
        if self.low > self.high:
            raise ParameterError(f"`low` must be at most `high`, got {self.low!r} and {self.high!r}")

    def as_dict(self) -> dict[str, Any]:
        """Return the bounds."""
        return {self.kind: [self.low, self.high]}

    def contains(self, value: Any) -> bool:
        """Return whether the value is a number of this kind within the bounds."""
        return is_in_range(value, self._range)

    def normalize(self, value: Any) -> Any:
        """Return the number as a float, or as an int for a distribution on integers."""
        return check_number("value", value, self._range)

    @property
    def allowed(self) -> str:
        """The range of the number."""
        return str(self._range) if self._range.integer else f"in [{self.low!r}, {self.high!r}]"

    @property
    def _range(self) -> Range:
        return Range(self.low, self.high, high_open=False)


@dataclass(frozen=True)
class Uniform(_Interval):
    """A real number, uniform between ``low`` and ``high``."""

    kind = "uniform"
    valid = REAL
    low: float
    high: float

    def draw(self, entropy: Entropy) -> float:
        """Draw one of 2^53 evenly spaced values, all equally likely."""
        share = entropy.getrandbits(_FLOAT_BITS) / (2**_FLOAT_BITS - 1)
        return float(min(max(self.low * (1.0 - share) + self.high * share, self.low), self.high))


@dataclass(frozen=True)
class LogUniform(Uniform):
    """A positive number whose logarithm is uniform."""

    kind = "log_uniform"
    valid = POSITIVE

    def draw(self, entropy: Entropy) -> float:
        """Draw the logarithm uniformly."""
        log = Uniform(math.log(self.low), math.log(self.high)).draw(entropy)
        return min(max(math.exp(log), self.low), self.high)


@dataclass(frozen=True)
class Integer(_Interval):
    """An integer, uniform from ``low`` to ``high``, both included."""

    kind = "integer"
    valid = integer_range(-(10**15), 10**15)
    low: int
    high: int

    def draw(self, entropy: Entropy) -> int:
        """Draw exactly uniformly."""
        return self.low + uniform_below(self.high - self.low + 1, entropy)

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """Return every integer with its probability, unless there are too many."""
        count = self.high - self.low + 1
        return [(Fraction(1, count), self.low + i) for i in range(count)] if count <= MAX_LISTED else None

    @property
    def _range(self) -> Range:
        return integer_range(self.low, self.high)


@dataclass(init=False, repr=False, unsafe_hash=True)
class Choice(Distribution):
    """One of several options, with exact rational weights, equal by default. Weights need not sum to 1."""

    options: tuple[Any, ...]
    weights: tuple[Fraction, ...]

    def __init__(self, options: Sequence[Any], weights: Sequence[Any] | None = None) -> None:
        if isinstance(options, str) or not isinstance(options, Sequence) or not 1 <= len(options) <= _MAX_OPTIONS:
            raise ParameterError(f"`options` must be a list of 1 to {_MAX_OPTIONS} values, got {format_value(options)}")
        options = [check_option(option) for option in options]
        if weights is None:
            weights = [1] * len(options)
        elif isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != len(options):
            raise ParameterError(f"`weights` must be a list of {len(options)} weights, one per option, got {format_value(weights)}")
        exact = [_check_weight(weight) for weight in weights]
        total = sum(exact, Fraction(0))
        self.options = tuple(options)
        self.weights = tuple(weight / total for weight in exact)
        unit = math.lcm(*(weight.denominator for weight in self.weights))
        self._unit, self._integer_weights = unit, [int(weight * unit) for weight in self.weights]

    def __repr__(self) -> str:
        return f"Choice({list(self.options)!r}, weights={[str(weight) for weight in self.weights]!r})"

    def draw(self, entropy: Entropy) -> Any:
        """Draw exactly by the weights."""
        point = uniform_below(self._unit, entropy)
        for option, weight in zip(self.options, self._integer_weights, strict=True):
            point -= weight
            if point < 0:
                return option
        raise AssertionError("the weights sum to the unit")  # pragma: no cover

    def as_dict(self) -> dict[str, Any]:
        """Return the options and their weights as fractions."""
        return {"choice": list(self.options), "weights": [str(weight) for weight in self.weights]}

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """Return the options with their weights, unless there are too many."""
        return list(zip(self.weights, self.options, strict=True)) if len(self.options) <= MAX_LISTED else None

    def contains(self, value: Any) -> bool:
        """Return whether the value is one of the options."""
        return bool(_same_options(value, self.options))

    def normalize(self, value: Any) -> Any:
        """Return the option itself, one of the same type if there are several equal ones."""
        options = _same_options(value, self.options)
        return next((option for option in options if type(option) is type(value)), options[0])

    @property
    def allowed(self) -> str:
        """The options."""
        return f"one of {format_value(list(self.options))}"


def is_in_range(value: Any, allowed: Range) -> bool:
    """Return whether the value is a number in this range."""
    try:
        check_number("value", value, allowed)
    except ParameterError:
        return False
    return True


def check_option(option: Any) -> Any:
    """Return an immutable option that JSON can write; lists, such as layer sizes, become tuples."""
    if isinstance(option, list | tuple):
        return tuple(check_option(part) for part in option)
    if type(option).__module__ == "numpy" and getattr(option, "ndim", None) == 0:
        option = option.item()
    if option is None or isinstance(option, bool | int | str) or (isinstance(option, float) and math.isfinite(option)):
        return option
    raise ParameterError(f"an option must be text, a finite number, true, false, None, or a list of these, got {format_value(option)}")


def _same_options(value: Any, options: Sequence[Any]) -> list[Any]:
    """Return the options that equal the value; true and false are not numbers."""
    try:
        given = check_option(value)
    except ParameterError:
        return []
    return [option for option in options if given == option and isinstance(given, bool) == isinstance(option, bool)]


def _check_weight(weight: Any) -> Fraction:
    if isinstance(weight, str):
        try:
            weight = Fraction(weight if _WEIGHT.fullmatch(weight) else "")
        except (ValueError, ZeroDivisionError):
            raise ParameterError(f"a weight must be a positive number or fraction such as 1/3, got {format_value(weight)}") from None
    exact = check_fraction("weight", weight)
    if exact <= 0:
        raise ParameterError(f"a weight must be positive, got {format_value(weight)}")
    return exact


# -- plan files ----------------------------------------------------------------------------------------------------------------


def read_distribution(name: str, fields: Any) -> Distribution:
    """Return a distribution from its form in plan files, such as ``{ log_uniform = [0.01, 1] }``."""
    if isinstance(fields, Mapping):
        kinds = [kind for kind in _KINDS if kind in fields]
        if len(kinds) == 1 and set(fields) <= {kinds[0], *(("weights",) if kinds[0] == "choice" else ())}:
            try:
                return _KINDS[kinds[0]](*_arguments(kinds[0], fields))
            except ParameterError as error:
                raise ParameterError(f"`{name}` of the space: {error}") from None
    raise ParameterError(
        f"`{name}` of the space must be one of {{ uniform = [low, high] }}, {{ log_uniform = [low, high] }}, {{ integer = [low, high] }}, "
        f"{{ choice = [...], weights = [...] }}, got {format_value(fields)}"
    )


_KINDS: dict[str, Callable[..., Distribution]] = {kind.kind: kind for kind in (Uniform, LogUniform, Integer)} | {"choice": Choice}


def _arguments(kind: str, fields: Mapping[str, Any]) -> tuple[Any, Any]:
    if kind == "choice":
        return fields["choice"], fields.get("weights")
    bounds = fields[kind]
    if not isinstance(bounds, Sequence) or isinstance(bounds, str) or len(bounds) != 2:
        raise ParameterError(f"`{kind}` must be [low, high], got {format_value(bounds)}")
    return bounds[0], bounds[1]
