"""The search space: a law of candidates that is fixed before the data is touched.

Every trial draws its candidate anew from this law, independently and with replacement: trying a grid once each, or letting one
trial's score choose the next candidate, is another mechanism.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from privselect._util.random_bits import uniform_below
from privselect._util.validation import POSITIVE, REAL, check_fraction, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.plan_ids import name_in_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect._util.random_bits import Entropy
    from privselect.tuning.randomness.key_derivation import Stream

Candidate: TypeAlias = dict[str, Any]
_FLOAT_BITS = 53
_WEIGHT = re.compile(r"[0-9]{1,100}(/[0-9]{1,100}|\.[0-9]{1,100})?")
_MOST = 10**15
_MOST_OPTIONS = 10_000
_MOST_LISTED = 1000  # candidates of a finite space that are listed one by one


class Distribution(ABC):
    """The law of one hyperparameter."""

    @abstractmethod
    def draw(self, entropy: Entropy) -> Any:
        """One value."""

    @abstractmethod
    def plain(self) -> dict[str, Any]:
        """As JSON has it, every number written in full: this is hashed."""

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """Every value with its exact probability, where there are finitely many and few; None elsewhere."""
        return None


@dataclass(frozen=True)
class Uniform(Distribution):
    """A real number between two others."""

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_ends(self, POSITIVE if isinstance(self, LogUniform) else REAL)

    def draw(self, entropy: Entropy) -> float:
        """One of 2^53 evenly spaced values, each as likely as any other."""
        share = entropy.getrandbits(_FLOAT_BITS) / (2**_FLOAT_BITS - 1)
        return float(min(max(self.low * (1.0 - share) + self.high * share, self.low), self.high))

    def plain(self) -> dict[str, Any]:
        """The two ends."""
        return {"uniform": [self.low, self.high]}


@dataclass(frozen=True)
class LogUniform(Uniform):
    """A positive number whose logarithm is uniform."""

    def draw(self, entropy: Entropy) -> float:
        """As for uniform, in the logarithm."""
        log = Uniform(math.log(self.low), math.log(self.high)).draw(entropy)
        return min(max(math.exp(log), self.low), self.high)

    def plain(self) -> dict[str, Any]:
        """The two ends."""
        return {"log_uniform": [self.low, self.high]}


@dataclass(frozen=True)
class Integer(Distribution):
    """A whole number from ``low`` to ``high``, both included."""

    low: int
    high: int

    def __post_init__(self) -> None:
        _check_ends(self, integer_range(-_MOST, _MOST))

    def draw(self, entropy: Entropy) -> int:
        """Exactly uniform."""
        return self.low + uniform_below(self.high - self.low + 1, entropy)

    def plain(self) -> dict[str, Any]:
        """The two ends."""
        return {"integer": [self.low, self.high]}

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """Each as likely as any other."""
        count = self.high - self.low + 1
        return [(Fraction(1, count), self.low + i) for i in range(count)] if count <= _MOST_LISTED else None


class Choice(Distribution):
    """One of several options, by exact rational weights; equal ones by default. Weights need not sum to 1."""

    def __init__(self, options: Sequence[Any], weights: Sequence[Any] | None = None) -> None:
        if isinstance(options, str) or not isinstance(options, Sequence) or not 1 <= len(options) <= _MOST_OPTIONS:
            raise ParameterError(f"`options` must be a list of 1 to {_MOST_OPTIONS} values, got {format_value(options)}")
        options = [_option(option) for option in options]
        if weights is None:
            weights = [1] * len(options)
        elif isinstance(weights, str) or not isinstance(weights, Sequence) or len(weights) != len(options):
            raise ParameterError(f"`weights` must be a list of {len(options)} weights, one for each option, got {format_value(weights)}")
        exact = [_weight(weight) for weight in weights]
        total = sum(exact, Fraction(0))
        self.options = tuple(options)
        self.weights = tuple(weight / total for weight in exact)
        unit = math.lcm(*(weight.denominator for weight in self.weights))
        self._unit, self._whole = unit, [int(weight * unit) for weight in self.weights]

    def __repr__(self) -> str:
        return f"Choice({list(self.options)!r}, weights={[str(weight) for weight in self.weights]!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choice) and (self.options, self.weights) == (other.options, other.weights)

    def __hash__(self) -> int:
        return hash((self.options, self.weights))

    def draw(self, entropy: Entropy) -> Any:
        """Exactly by the weights."""
        point = uniform_below(self._unit, entropy)
        for option, weight in zip(self.options, self._whole, strict=True):
            point -= weight
            if point < 0:
                return option
        raise AssertionError("the weights sum to the unit")  # pragma: no cover

    def plain(self) -> dict[str, Any]:
        """The options and their weights, as fractions."""
        return {"choice": list(self.options), "weights": [str(weight) for weight in self.weights]}

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """The options."""
        return list(zip(self.weights, self.options, strict=True)) if len(self.options) <= _MOST_LISTED else None


class Suggest:
    """What a define-by-run space asks: each name once, and the draws are the candidate."""

    __slots__ = ("_any_name", "_entropy", "drawn", "laws")

    def __init__(self, entropy: Entropy, *, any_name: bool = False) -> None:
        self._entropy, self._any_name = entropy, any_name
        self.drawn: Candidate = {}
        self.laws: dict[str, Distribution] = {}

    def __repr__(self) -> str:
        return "Suggest(...)"

    def uniform(self, name: str, low: float, high: float) -> float:
        """A real number."""
        return float(self.draw(name, Uniform(low, high)))

    def log_uniform(self, name: str, low: float, high: float) -> float:
        """A positive number, uniform in its logarithm."""
        return float(self.draw(name, LogUniform(low, high)))

    def integer(self, name: str, low: int, high: int) -> int:
        """A whole number, both ends included."""
        return int(self.draw(name, Integer(low, high)))

    def choice(self, name: str, options: Sequence[Any], weights: Sequence[Any] | None = None) -> Any:
        """One of several options."""
        return self.draw(name, Choice(options, weights))

    def draw(self, name: str, distribution: Distribution) -> Any:
        """One value of any distribution."""
        if not (self._any_name and isinstance(name, str) and name):
            _check_name(name)
        if name in self.drawn:
            raise ParameterError(f"a space draws each name once, got {format_value(name)} twice")
        self.drawn[name] = value = distribution.draw(self._entropy)
        self.laws[name] = distribution
        return value


class Space:
    """Named hyperparameters with their laws, or a function of a :class:`Suggest` for what depends on other draws."""

    def __init__(self, laws: Mapping[str, Distribution] | Callable[[Suggest], Any]) -> None:
        if isinstance(laws, Mapping):
            for name, law in laws.items():
                _check_name(name)
                if not isinstance(law, Distribution):
                    raise ParameterError(
                        f"`{name}` of the space must be Uniform, LogUniform, Integer or Choice, got {format_value(law)}",
                    )
            if not laws:
                raise ParameterError("`space` must have at least one hyperparameter, got none")
            self.laws: dict[str, Distribution] | None = dict(laws)
            self._function: Callable[[Suggest], Any] | None = None
        elif callable(laws):
            self.laws, self._function = None, laws
        else:
            raise ParameterError(f"`space` must be a table of distributions or a function of `suggest`, got {format_value(laws)}")

    def __repr__(self) -> str:
        return f"Space({self._function if self.laws is None else self.laws!r})"

    def draw(self, entropy: Entropy) -> Candidate:
        """One candidate."""
        suggest = Suggest(entropy)
        if self._function is not None:
            self._function(suggest)
        for name, law in (self.laws or {}).items():
            suggest.draw(name, law)
        return suggest.drawn

    def plain(self) -> Any:
        """As JSON has it: the laws, or the name of the function."""
        if self.laws is None:
            return {"function": name_in_plan(self._function)}
        return {name: law.plain() for name, law in self.laws.items()}

    def listed(self) -> list[tuple[Fraction, Candidate]] | None:
        """What :meth:`finite_part` leaves of every candidate, with its exact probability; None where these are not known, or too many."""
        columns = {name: law.listed() for name, law in (self.laws or {}).items()}
        finite = {name: column for name, column in columns.items() if column is not None}
        if self.laws is None or math.prod(len(column) for column in finite.values()) > _MOST_LISTED:
            return None
        return list(_combined(list(finite), list(finite.values())))

    def finite_part(self, candidate: Candidate) -> Candidate:
        """The candidate without the hyperparameters that have infinitely many values, or too many to list."""
        return {name: candidate[name] for name, law in (self.laws or {}).items() if law.listed() is not None}


class Suggested(Space):
    """A space that the objective alone knows: it is handed a :class:`Suggest`, and asks for values while it runs.

    That what it asks for was not computed from the records is the user's to declare; a :class:`Space` is fixed before they are touched.
    """

    def __init__(self, name: str) -> None:
        self.laws, self._function, self._name = None, None, name

    def __repr__(self) -> str:
        return f"Suggested({self._name!r})"

    def draw(self, entropy: Entropy) -> Candidate:
        """Where the draws come from: what they are shows in the trial."""
        return {"stream": cast("Stream", entropy).key.hex()}

    def plain(self) -> Any:
        """As JSON has it."""
        return {"suggested": self._name}


def read_distribution(name: str, fields: Any) -> Distribution:
    """A distribution as plan files write it, such as ``{ log_uniform = [0.01, 1] }``."""
    if isinstance(fields, Mapping):
        kinds = [kind for kind in _KINDS if kind in fields]
        if len(kinds) == 1 and set(fields) <= {kinds[0], *(("weights",) if kinds[0] == "choice" else ())}:
            try:
                return _KINDS[kinds[0]](fields)
            except ParameterError as error:
                raise ParameterError(f"`{name}` of the space: {error}") from None
    raise ParameterError(
        f"`{name}` of the space must be one of {', '.join(_EXAMPLES)}, got {format_value(fields)}",
    )


_EXAMPLES = (
    "{ uniform = [low, high] }",
    "{ log_uniform = [low, high] }",
    "{ integer = [low, high] }",
    "{ choice = [...], weights = [...] }",
)


def _two(kind: str, fields: Mapping[str, Any]) -> tuple[Any, Any]:
    ends = fields[kind]
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        raise ParameterError(f"`{kind}` must be [low, high], got {format_value(ends)}")
    return ends[0], ends[1]


_KINDS: dict[str, Callable[[Mapping[str, Any]], Distribution]] = {
    "uniform": lambda fields: Uniform(*_two("uniform", fields)),
    "log_uniform": lambda fields: LogUniform(*_two("log_uniform", fields)),
    "integer": lambda fields: Integer(*_two("integer", fields)),
    "choice": lambda fields: Choice(fields["choice"], fields.get("weights")),
}


def _combined(names: list[str], columns: list[list[tuple[Fraction, Any]]]) -> Iterator[tuple[Fraction, Candidate]]:
    for row in product(*columns):
        weight = math.prod((weight for weight, _ in row), start=Fraction(1))
        yield weight, {name: value for name, (_, value) in zip(names, row, strict=True)}


def _check_ends(law: Any, allowed: Any) -> None:
    for end in ("low", "high"):
        object.__setattr__(law, end, check_number(end, getattr(law, end), allowed))
    if law.low > law.high:
        raise ParameterError(f"`low` must be at most `high`, got {law.low!r} and {law.high!r}")


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError(f"a hyperparameter's name must be an identifier such as learning_rate, got {format_value(name)}")


def _option(option: Any) -> Any:
    """What JSON can write, and nobody can change; lists, such as sizes of layers, become tuples."""
    if isinstance(option, list | tuple):
        return tuple(_option(part) for part in option)
    if type(option).__module__ == "numpy" and getattr(option, "ndim", None) == 0:
        option = option.item()
    if option is None or isinstance(option, bool | int | str) or (isinstance(option, float) and math.isfinite(option)):
        return option
    raise ParameterError(f"an option must be text, a finite number, true, false, None, or a list of these, got {format_value(option)}")


def _weight(weight: Any) -> Fraction:
    if isinstance(weight, str):
        try:
            weight = Fraction(weight if _WEIGHT.fullmatch(weight) else "")
        except (ValueError, ZeroDivisionError):
            raise ParameterError(f"a weight must be a positive number or fraction such as 1/3, got {format_value(weight)}") from None
    exact = check_fraction("weight", weight)
    if exact <= 0:
        raise ParameterError(f"a weight must be positive, got {format_value(weight)}")
    return exact
