"""The search space: a distribution of candidates, fixed before the data is accessed.

Every trial draws its candidate from this distribution, independently and with replacement. Trying each point of a grid once, or
choosing the next candidate by earlier scores, would be another mechanism.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, cast

from privselect._util.random_bits import uniform_below
from privselect._util.validation import POSITIVE, REAL, Range, check_fraction, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.plan_ids import name_in_plan

if TYPE_CHECKING:
    from privselect._util.random_bits import Entropy
    from privselect.tuning.randomness import Stream

Candidate: TypeAlias = dict[str, Any]
_FLOAT_BITS = 53
_WEIGHT = re.compile(r"[0-9]{1,100}(/[0-9]{1,100}|\.[0-9]{1,100})?")
_MAX_OPTIONS = 10_000
_MAX_LISTED = 1000  # candidates of a finite space that are listed one by one


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


class _Interval(Distribution):
    """A distribution on the numbers from ``low`` to ``high``, which must be in the range ``allowed``."""

    kind: ClassVar[str]  # the name in plan files
    allowed: ClassVar[Range]
    low: Any
    high: Any

    def __post_init__(self) -> None:
        for bound in ("low", "high"):
            object.__setattr__(self, bound, check_number(bound, getattr(self, bound), self.allowed))
        if self.low > self.high:
            raise ParameterError(f"`low` must be at most `high`, got {self.low!r} and {self.high!r}")

    def as_dict(self) -> dict[str, Any]:
        """Return the bounds."""
        return {self.kind: [self.low, self.high]}


@dataclass(frozen=True)
class Uniform(_Interval):
    """A real number, uniform between ``low`` and ``high``."""

    kind = "uniform"
    allowed = REAL
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
    allowed = POSITIVE

    def draw(self, entropy: Entropy) -> float:
        """Draw the logarithm uniformly."""
        log = Uniform(math.log(self.low), math.log(self.high)).draw(entropy)
        return min(max(math.exp(log), self.low), self.high)


@dataclass(frozen=True)
class Integer(_Interval):
    """An integer, uniform from ``low`` to ``high``, both included."""

    kind = "integer"
    allowed = integer_range(-(10**15), 10**15)
    low: int
    high: int

    def draw(self, entropy: Entropy) -> int:
        """Draw exactly uniformly."""
        return self.low + uniform_below(self.high - self.low + 1, entropy)

    def listed(self) -> list[tuple[Fraction, Any]] | None:
        """Return every integer with its probability, unless there are too many."""
        count = self.high - self.low + 1
        return [(Fraction(1, count), self.low + i) for i in range(count)] if count <= _MAX_LISTED else None


@dataclass(init=False, repr=False, unsafe_hash=True)
class Choice(Distribution):
    """One of several options, with exact rational weights, equal by default. Weights need not sum to 1."""

    options: tuple[Any, ...]
    weights: tuple[Fraction, ...]

    def __init__(self, options: Sequence[Any], weights: Sequence[Any] | None = None) -> None:
        if isinstance(options, str) or not isinstance(options, Sequence) or not 1 <= len(options) <= _MAX_OPTIONS:
            raise ParameterError(f"`options` must be a list of 1 to {_MAX_OPTIONS} values, got {format_value(options)}")
        options = [_check_option(option) for option in options]
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
        return list(zip(self.weights, self.options, strict=True)) if len(self.options) <= _MAX_LISTED else None


class Suggest:
    """The argument of a define-by-run space: each hyperparameter is drawn once by its name, and the draws are the candidate."""

    __slots__ = ("_any_name", "_entropy", "distributions", "drawn")

    def __init__(self, entropy: Entropy, *, any_name: bool = False) -> None:
        self._entropy, self._any_name = entropy, any_name
        self.drawn: Candidate = {}
        self.distributions: dict[str, Distribution] = {}

    def __repr__(self) -> str:
        return "Suggest(...)"

    def uniform(self, name: str, low: float, high: float) -> float:
        """Draw a real number."""
        return float(self.draw(name, Uniform(low, high)))

    def log_uniform(self, name: str, low: float, high: float) -> float:
        """Draw a positive number, uniform in its logarithm."""
        return float(self.draw(name, LogUniform(low, high)))

    def integer(self, name: str, low: int, high: int) -> int:
        """Draw an integer, both bounds included."""
        return int(self.draw(name, Integer(low, high)))

    def choice(self, name: str, options: Sequence[Any], weights: Sequence[Any] | None = None) -> Any:
        """Draw one of several options."""
        return self.draw(name, Choice(options, weights))

    def draw(self, name: str, distribution: Distribution) -> Any:
        """Draw one value of any distribution."""
        if not (self._any_name and isinstance(name, str) and name):
            _check_name(name)
        if name in self.drawn:
            raise ParameterError(f"a space must draw each name once, got {format_value(name)} twice")
        self.drawn[name] = value = distribution.draw(self._entropy)
        self.distributions[name] = distribution
        return value


class Space:
    """Named hyperparameters with their distributions, or a function of a :class:`Suggest` if a draw depends on other draws."""

    def __init__(self, distributions: Mapping[str, Distribution] | Callable[[Suggest], Any]) -> None:
        if isinstance(distributions, Mapping):
            for name, distribution in distributions.items():
                _check_name(name)
                if not isinstance(distribution, Distribution):
                    raise ParameterError(
                        f"`{name}` of the space must be Uniform, LogUniform, Integer or Choice, got {format_value(distribution)}"
                    )
            if not distributions:
                raise ParameterError("`space` must have at least one hyperparameter, got none")
            self.distributions: dict[str, Distribution] | None = dict(distributions)
            self._function: Callable[[Suggest], Any] | None = None
        elif callable(distributions):
            self.distributions, self._function = None, distributions
        else:
            raise ParameterError(f"`space` must be a dict of distributions or a function of `suggest`, got {format_value(distributions)}")

    def __repr__(self) -> str:
        return f"Space({self._function if self.distributions is None else self.distributions!r})"

    def draw(self, entropy: Entropy) -> Candidate:
        """Draw one candidate."""
        suggest = Suggest(entropy)
        if self._function is not None:
            self._function(suggest)
        for name, distribution in (self.distributions or {}).items():
            suggest.draw(name, distribution)
        return suggest.drawn

    def as_dict(self) -> Any:
        """Return the distributions, or the name of the function, for JSON."""
        if self.distributions is None:
            return {"function": name_in_plan(self._function)}
        return {name: distribution.as_dict() for name, distribution in self.distributions.items()}

    def listed(self) -> list[tuple[Fraction, Candidate]] | None:
        """Return the :meth:`finite_part` of every candidate with its exact probability, or None if unknown or too many."""
        columns = {name: distribution.listed() for name, distribution in (self.distributions or {}).items()}
        finite = {name: column for name, column in columns.items() if column is not None}
        if self.distributions is None or math.prod(len(column) for column in finite.values()) > _MAX_LISTED:
            return None
        weights = (math.prod((weight for weight, _ in row), start=Fraction(1)) for row in product(*finite.values()))
        values = (dict(zip(finite, (value for _, value in row), strict=True)) for row in product(*finite.values()))
        return list(zip(weights, values, strict=True))

    def finite_part(self, candidate: Candidate) -> Candidate:
        """Return the candidate without the hyperparameters that have infinitely many values, or too many to list."""
        return {name: candidate[name] for name, distribution in (self.distributions or {}).items() if distribution.listed() is not None}


class DefineByRunSpace(Space):
    """A space that only the objective knows: it gets a :class:`Suggest` and draws from it while it runs.

    The user declares that no range was computed from the records. A :class:`Space` is safer: it is fixed before the data is accessed.
    """

    def __init__(self, name: str) -> None:
        self.distributions, self._function, self._name = None, None, name

    def __repr__(self) -> str:
        return f"DefineByRunSpace({self._name!r})"

    def draw(self, entropy: Entropy) -> Candidate:
        """Return the key of the stream from which the objective will draw."""
        return {"stream": cast("Stream", entropy).key.hex()}

    def as_dict(self) -> Any:
        """Return the name of the space for JSON."""
        return {"suggested": self._name}


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


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError(f"a hyperparameter's name must be an identifier such as learning_rate, got {format_value(name)}")


def _check_option(option: Any) -> Any:
    """Return an immutable option that JSON can write; lists, such as layer sizes, become tuples."""
    if isinstance(option, list | tuple):
        return tuple(_check_option(part) for part in option)
    if type(option).__module__ == "numpy" and getattr(option, "ndim", None) == 0:
        option = option.item()
    if option is None or isinstance(option, bool | int | str) or (isinstance(option, float) and math.isfinite(option)):
        return option
    raise ParameterError(f"an option must be text, a finite number, true, false, None, or a list of these, got {format_value(option)}")


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
