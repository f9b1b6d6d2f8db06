"""Conversion between Optuna's distributions of hyperparameters and those of privselect."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from privselect._util.random_bits import uniform_below
from privselect._util.validation import POSITIVE, REAL, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.distributions import Choice, Distribution, Integer, LogUniform, Uniform, is_in_range

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from optuna.distributions import BaseDistribution

    from privselect._util.random_bits import Entropy

_LARGEST_INTEGER = 10**15  # as for other integers of a space
_OFF_STEP = 1e-8  # how far a value may be from a step, in steps, as in Optuna


@dataclass(frozen=True)
class EvenSteps(Distribution):
    """``low``, ``low + step`` and so on up to ``high``, all equally likely; integers if the bounds and the step are integers."""

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        for name, allowed in (("low", REAL), ("high", REAL), ("step", POSITIVE)):
            check_number(name, getattr(self, name), allowed)
        _check_order(self.low, self.high)
        check_number("(high - low) / step", self.count - 1, integer_range(0, _LARGEST_INTEGER))

    @property
    def count(self) -> int:
        """The number of values."""
        return round((Fraction(self.high) - Fraction(self.low)) / Fraction(self.step)) + 1

    def draw(self, entropy: Entropy) -> float:
        """Draw exactly uniformly."""
        return self._value_at(uniform_below(self.count, entropy))

    def as_dict(self) -> dict[str, Any]:
        """Return the bounds and the step."""
        return {"steps": [self.low, self.high, self.step]}

    def contains(self, value: Any) -> bool:
        """Return whether the value is on a step, up to rounding; like Optuna, accept 0.3 for three steps of 0.1."""
        if not is_in_range(value, REAL):
            return False
        index = self._index_of(value)
        return abs(index - round(index)) < _OFF_STEP and 0 <= round(index) < self.count

    def normalize(self, value: Any) -> float:
        """Return the value of the nearest step, as it would be drawn."""
        return self._value_at(round(self._index_of(value)))

    @property
    def allowed(self) -> str:
        """The first and the last value, and the step."""
        return f"in [{self.low!r}, {self.high!r}] in steps of {self.step!r}"

    def _value_at(self, index: int) -> float:
        return min(max(index * self.step + self.low, self.low), self.high)

    def _index_of(self, value: Any) -> Fraction:
        return (Fraction(float(value)) - Fraction(self.low)) / Fraction(self.step)


@dataclass(frozen=True)
class LogInteger(Distribution):
    """An integer on a log scale: the probability of ``k`` is proportional to ``log((k + 1/2) / (k - 1/2))``, as in Optuna."""

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            check_number(name, getattr(self, name), integer_range(1, _LARGEST_INTEGER))
        _check_order(self.low, self.high)

    def draw(self, entropy: Entropy) -> int:
        """Draw one of 2^53 evenly spaced logarithms, all equally likely, and round."""
        value = LogUniform(self.low - 0.5, self.high + 0.5).draw(entropy)
        return min(max(round(value), self.low), self.high)

    def as_dict(self) -> dict[str, Any]:
        """Return the bounds."""
        return {"log_integer": [self.low, self.high]}

    def contains(self, value: Any) -> bool:
        """Return whether the value is an integer within the bounds."""
        return is_in_range(value, integer_range(self.low, self.high))

    def normalize(self, value: Any) -> int:
        """Return the integer."""
        return int(value)

    @property
    def allowed(self) -> str:
        """The range of the integer."""
        return str(integer_range(self.low, self.high))


def from_optuna(distribution: BaseDistribution) -> Distribution:
    """Return the distribution by which Optuna's RandomSampler draws, as one of a plain space if possible."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(distribution.choices)
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise ParameterError(f"a hyperparameter must be a float, an int or categorical, got {format_value(distribution)}")
    low, high, step = distribution.low, distribution.high, distribution.step
    if isinstance(distribution, IntDistribution):
        if distribution.log:
            return LogInteger(distribution.low, distribution.high)
        return Integer(distribution.low, distribution.high) if step == 1 else EvenSteps(low, high, distribution.step)
    if distribution.log:
        return LogUniform(low, high)
    return Uniform(low, high) if step is None else EvenSteps(low, high, step)


def to_optuna(fields: Mapping[str, Any]) -> BaseDistribution:
    """Return Optuna's distribution for the JSON form of a distribution, as in a release."""
    kind = next(kind for kind in _OPTUNA_KINDS if kind in fields)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna warns of options that some storages cannot hold
        return _OPTUNA_KINDS[kind](lists_to_tuples(fields[kind]))


def lists_to_tuples(value: Any) -> Any:
    """Convert the lists of JSON to the tuples of a space, at every depth."""
    return tuple(lists_to_tuples(part) for part in value) if isinstance(value, list | tuple) else value


def _check_order(low: float, high: float) -> None:
    if low > high:
        raise ParameterError(f"`low` must be at most `high`, got {format_value(low)} and {format_value(high)}")


def _steps(fields: Any) -> BaseDistribution:
    low, high, step = fields
    return IntDistribution(low, high, step=step) if isinstance(step, int) else FloatDistribution(low, high, step=step)


_OPTUNA_KINDS: dict[str, Callable[[Any], BaseDistribution]] = {
    "uniform": lambda bounds: FloatDistribution(bounds[0], bounds[1]),
    "log_uniform": lambda bounds: FloatDistribution(bounds[0], bounds[1], log=True),
    "integer": lambda bounds: IntDistribution(bounds[0], bounds[1]),
    "log_integer": lambda bounds: IntDistribution(bounds[0], bounds[1], log=True),
    "steps": _steps,
    "choice": CategoricalDistribution,
}
