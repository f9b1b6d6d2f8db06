"""The trial that an Optuna objective gets: it has Optuna's interface, and draws each value in secret and independently of others."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import BaseTrial

from privselect._util.validation import format_value
from privselect.integrations.optuna.distributions import from_optuna
from privselect.integrations.optuna.objective import UndrawableError
from privselect.integrations.optuna.unavailable import UNAVAILABLE_IN_TRIAL, unavailable_attribute
from privselect.tuning.distributions import Choice
from privselect.tuning.ledger import SEARCH

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optuna.distributions import BaseDistribution

    from privselect.mechanisms import Mechanism
    from privselect.tuning.distributions import Distribution
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.suggest import Suggest


class PrivateTrial(BaseTrial):
    """One trial. It has no access to other trials, its number is always 0, it has no start time, and reported values are discarded.

    ``mechanism`` is what the trial must run. The same objective runs the search and the final training, in which all values are given.
    """

    def __init__(self, suggest: Suggest, randomness: Randomness, mechanism: Mechanism | None = None, stage: str = SEARCH) -> None:
        self.randomness = randomness  # of this trial only, for trainers that take a generator
        self.has_read_plan = False
        self._mechanism, self._stage = mechanism, stage
        self.relative_params: dict[str, Any] = {}
        self._suggest = suggest
        self._params: dict[str, Any] = {}
        self._distributions: dict[str, BaseDistribution] = {}
        self._user_attrs: dict[str, Any] = {}
        self._system_attrs: dict[str, Any] = {}
        self._constraints: dict[str, float] = {}

    def __repr__(self) -> str:
        return "PrivateTrial(...)"

    def __getattr__(self, name: str) -> Any:
        raise unavailable_attribute(name, UNAVAILABLE_IN_TRIAL, "a private trial")

    # -- what to run ----------------------------------------------------------------------------------------------------------

    @property
    def mechanism(self) -> Any:
        """The mechanism that the trial must run, such as a DPSGD with its noise multiplier and its number of steps."""
        self.has_read_plan = True
        return self._mechanism

    @property
    def stage(self) -> str:
        """The stage: "search" or "final"."""
        self.has_read_plan = True
        return self._stage

    # -- draws ----------------------------------------------------------------------------------------------------------------

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False) -> float:
        """Draw a real number: uniform, uniform in its logarithm, or one of evenly spaced values."""
        return float(self._draw(name, lambda: FloatDistribution(low, high, log=log, step=step)))

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Draw an integer from ``low`` to ``high``, both included."""
        return int(self._draw(name, lambda: IntDistribution(low, high, log=log, step=step)))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """Draw one of the choices, all equally likely."""
        return self._draw(name, lambda: CategoricalDistribution(choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """Draw like ``suggest_float``, under its old name."""
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """Draw like ``suggest_float(..., log=True)``, under its old name."""
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """Draw like ``suggest_float(..., step=q)``, under its old name."""
        return self.suggest_float(name, low, high, step=q)

    def _draw(self, name: str, make: Callable[[], BaseDistribution]) -> Any:
        """Return the value of this name, drawn on its first use."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Optuna warns, for example, if it cuts a range to a multiple of the step
                optuna_distribution = make()
            distribution = from_optuna(optuna_distribution)
            if name not in self._params:
                self._params[name] = self._value(name, distribution, optuna_distribution)
                self._distributions[name] = optuna_distribution
        except (ValueError, TypeError, ArithmeticError) as error:
            raise UndrawableError(f"{format_value(name)} cannot be drawn: {error}") from error
        if self._distributions[name] != optuna_distribution:
            raise UndrawableError(
                f"{format_value(name)} was already drawn from {self._distributions[name]} in this trial, got {optuna_distribution}"
            )
        return self._params[name]

    def _value(self, name: str, distribution: Distribution, optuna_distribution: BaseDistribution) -> Any:
        return _original_option(self._suggest.draw(name, distribution), distribution, optuna_distribution)

    # -- Optuna's interface ---------------------------------------------------------------------------------------------------

    def report(self, value: float, step: int) -> None:
        """Discard an intermediate score, because no decision may depend on it."""

    def should_prune(self) -> bool:
        """Return False: a trial always runs to its end."""
        return False

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep an attribute while the trial runs; the winner's attribute that the study names as ``artifact`` is released."""
        self._user_attrs[key] = value

    def set_system_attr(self, key: str, value: Any) -> None:
        """Keep an attribute while the trial runs."""
        self._system_attrs[key] = value

    def set_constraint(self, key: str, value: float) -> None:
        """Set a constraint; a trial with a constraint above 0 is infeasible and counts as failed."""
        if math.isnan(value):
            raise ValueError("a constraint must be a number, got NaN")
        self._constraints.setdefault(key, float(value))

    @property
    def params(self) -> dict[str, Any]:
        """The values drawn so far."""
        return dict(self._params)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions of the values drawn so far."""
        return dict(self._distributions)

    @property
    def user_attrs(self) -> dict[str, Any]:
        """The user attributes set by the objective."""
        return dict(self._user_attrs)

    @property
    def system_attrs(self) -> dict[str, Any]:
        """The system attributes set by the objective."""
        return dict(self._system_attrs)

    @property
    def constraints(self) -> dict[str, float]:
        """The constraints set by the objective."""
        return dict(self._constraints)

    @property
    def datetime_start(self) -> None:
        """None: the start time of a trial depends on other trials."""
        return

    @property
    def number(self) -> int:
        """0 in every trial: a number would depend on other trials."""
        return 0


def _original_option(value: Any, distribution: Any, optuna_distribution: BaseDistribution) -> Any:
    """Return the objective's own object: a Choice holds tuples instead of lists and Python numbers instead of numpy's."""
    if isinstance(distribution, Choice) and isinstance(optuna_distribution, CategoricalDistribution):
        return next(given for given, option in zip(optuna_distribution.choices, distribution.options, strict=True) if option is value)
    return value
