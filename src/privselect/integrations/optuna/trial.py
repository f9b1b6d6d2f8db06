"""What a stock objective is handed: it looks like Optuna's trial, and every value is drawn in secret, independently of all others."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import BaseTrial

from privselect._util.validation import format_value
from privselect.integrations.optuna.distributions import law_of
from privselect.integrations.optuna.unsupported import OF_TRIAL, NoLawError, withheld
from privselect.tuning.space import Choice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from optuna.distributions import BaseDistribution

    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Suggest


class PrivateTrial(BaseTrial):
    """One trial. It knows of no other, has no number but 0 and no clock, and what is reported to it goes nowhere."""

    def __init__(self, suggest: Suggest, randomness: Randomness) -> None:
        self.randomness = randomness  # of this trial alone: a trainer that takes a generator gets one here
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
        raise withheld(name, OF_TRIAL, "a private trial")

    # -- the draws ------------------------------------------------------------------------------------------------------------

    def suggest_float(self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False) -> float:
        """A real number, uniform or uniform in its logarithm, or one of evenly spaced ones."""
        return float(self._drawn(name, lambda: FloatDistribution(low, high, log=log, step=step)))

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """A whole number, both ends included."""
        return int(self._drawn(name, lambda: IntDistribution(low, high, log=log, step=step)))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        """One of the choices, each as likely as any other."""
        return self._drawn(name, lambda: CategoricalDistribution(choices))

    def suggest_uniform(self, name: str, low: float, high: float) -> float:
        """The old name of ``suggest_float``."""
        return self.suggest_float(name, low, high)

    def suggest_loguniform(self, name: str, low: float, high: float) -> float:
        """The old name of ``suggest_float(..., log=True)``."""
        return self.suggest_float(name, low, high, log=True)

    def suggest_discrete_uniform(self, name: str, low: float, high: float, q: float) -> float:
        """The old name of ``suggest_float(..., step=q)``."""
        return self.suggest_float(name, low, high, step=q)

    def _drawn(self, name: str, described: Callable[[], BaseDistribution]) -> Any:
        """The value of this name, drawn where it is asked for the first time."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # Optuna's, such as that a range is cut to a multiple of its step
                distribution = described()
            law = law_of(distribution)
            if name not in self._params:
                self._params[name] = _as_given(self._suggest.draw(name, law), law, distribution)
                self._distributions[name] = distribution
        except (ValueError, TypeError, ArithmeticError) as error:
            raise NoLawError(f"{format_value(name)} cannot be drawn: {error}") from error
        if self._distributions[name] != distribution:
            raise NoLawError(f"{format_value(name)} was drawn by another law in this trial, {self._distributions[name]}, got {distribution}")
        return self._params[name]

    # -- what Optuna would look at --------------------------------------------------------------------------------------------

    def report(self, value: float, step: int) -> None:
        """Goes nowhere: an intermediate score is looked at by nobody."""

    def should_prune(self) -> bool:
        """Never: a trial runs to its end."""
        return False

    def set_user_attr(self, key: str, value: Any) -> None:
        """Kept as long as the trial runs; of the winner, the one that the study names as ``artifact`` is released."""
        self._user_attrs[key] = value

    def set_system_attr(self, key: str, value: Any) -> None:
        """Kept as long as the trial runs."""
        self._system_attrs[key] = value

    def set_constraint(self, key: str, value: float) -> None:
        """A trial with a constraint above 0 is infeasible, and counts as failed."""
        if math.isnan(value):
            raise ValueError("a constraint must be a number, got NaN")
        self._constraints.setdefault(key, float(value))

    @property
    def params(self) -> dict[str, Any]:
        """What was drawn so far."""
        return dict(self._params)

    @property
    def distributions(self) -> dict[str, BaseDistribution]:
        """By which distributions."""
        return dict(self._distributions)

    @property
    def user_attrs(self) -> dict[str, Any]:
        """As the objective has set them."""
        return dict(self._user_attrs)

    @property
    def system_attrs(self) -> dict[str, Any]:
        """As the objective has set them."""
        return dict(self._system_attrs)

    @property
    def constraints(self) -> dict[str, float]:
        """As the objective has set them."""
        return dict(self._constraints)

    @property
    def datetime_start(self) -> None:
        """None: when a trial began tells of the others."""
        return

    @property
    def number(self) -> int:
        """0 in every trial: a number would tell of the others."""
        return 0


def _as_given(value: Any, law: Any, distribution: BaseDistribution) -> Any:
    """The objective's own object: a law has tuples for lists and plain numbers for those of numpy."""
    if isinstance(law, Choice) and isinstance(distribution, CategoricalDistribution):
        return next(given for given, option in zip(distribution.choices, law.options, strict=True) if option is value)
    return value
