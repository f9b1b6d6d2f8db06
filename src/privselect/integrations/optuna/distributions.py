"""Optuna's distributions as laws of candidates, and back."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from privselect._util.random_bits import uniform_below
from privselect._util.validation import POSITIVE, REAL, check_number, format_value, integer_range
from privselect.errors import ParameterError
from privselect.tuning.space import Choice, Distribution, Integer, LogUniform, Uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from optuna.distributions import BaseDistribution

    from privselect._util.random_bits import Entropy

_MOST = 10**15  # as for other whole numbers of a space


@dataclass(frozen=True)
class Steps(Distribution):
    """``low``, ``low + step`` and so on up to ``high``, each as likely as any other; of whole numbers, whole numbers."""

    low: float
    high: float
    step: float

    def __post_init__(self) -> None:
        for name, allowed in (("low", REAL), ("high", REAL), ("step", POSITIVE)):
            check_number(name, getattr(self, name), allowed)
        if self.low > self.high:
            raise ParameterError(f"`low` must be at most `high`, got {format_value(self.low)} and {format_value(self.high)}")
        check_number("(high - low) / step", self.count - 1, integer_range(0, _MOST))

    @property
    def count(self) -> int:
        """How many values there are."""
        return round((Fraction(self.high) - Fraction(self.low)) / Fraction(self.step)) + 1

    def draw(self, entropy: Entropy) -> float:
        """Exactly uniform."""
        return min(max(uniform_below(self.count, entropy) * self.step + self.low, self.low), self.high)

    def as_dict(self) -> dict[str, Any]:
        """The two ends and the step."""
        return {"steps": [self.low, self.high, self.step]}


@dataclass(frozen=True)
class LogInteger(Distribution):
    """A whole number on a log scale: ``k`` by the share of the logarithm from ``k - 1/2`` to ``k + 1/2``, as Optuna has it."""

    low: int
    high: int

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            check_number(name, getattr(self, name), integer_range(1, _MOST))
        if self.low > self.high:
            raise ParameterError(f"`low` must be at most `high`, got {format_value(self.low)} and {format_value(self.high)}")

    def draw(self, entropy: Entropy) -> int:
        """By 2^53 evenly spaced logarithms, each as likely as any other."""
        between = LogUniform(self.low - 0.5, self.high + 0.5).draw(entropy)
        return min(max(round(between), self.low), self.high)

    def as_dict(self) -> dict[str, Any]:
        """The two ends."""
        return {"log_integer": [self.low, self.high]}


def law_of(distribution: BaseDistribution) -> Distribution:
    """The law by which Optuna's RandomSampler draws, as a plain space has it wherever it has one."""
    if isinstance(distribution, CategoricalDistribution):
        return Choice(distribution.choices)
    if not isinstance(distribution, FloatDistribution | IntDistribution):
        raise ParameterError(f"a hyperparameter must be a float, an int or categorical, got {format_value(distribution)}")
    low, high, step = distribution.low, distribution.high, distribution.step
    if isinstance(distribution, IntDistribution):
        if distribution.log:
            return LogInteger(distribution.low, distribution.high)
        return Integer(distribution.low, distribution.high) if step == 1 else Steps(low, high, distribution.step)
    if distribution.log:
        return LogUniform(low, high)
    return Uniform(low, high) if step is None else Steps(low, high, step)


def distribution_of(plain: Mapping[str, Any]) -> BaseDistribution:
    """Of a law as a release tells it, for those who read Optuna's."""
    kind = next(kind for kind in _KINDS if kind in plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna's word on options that some storages cannot hold
        return _KINDS[kind](as_tuples(plain[kind]))


def as_tuples(value: Any) -> Any:
    """What JSON has as lists, as a space had it."""
    return tuple(as_tuples(part) for part in value) if isinstance(value, list | tuple) else value


def _steps(ends: Any) -> BaseDistribution:
    low, high, step = ends
    return IntDistribution(low, high, step=step) if isinstance(step, int) else FloatDistribution(low, high, step=step)


_KINDS: dict[str, Callable[[Any], BaseDistribution]] = {
    "uniform": lambda ends: FloatDistribution(ends[0], ends[1]),
    "log_uniform": lambda ends: FloatDistribution(ends[0], ends[1], log=True),
    "integer": lambda ends: IntDistribution(ends[0], ends[1]),
    "log_integer": lambda ends: IntDistribution(ends[0], ends[1], log=True),
    "steps": _steps,
    "choice": CategoricalDistribution,
}
