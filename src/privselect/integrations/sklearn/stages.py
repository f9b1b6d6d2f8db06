"""The estimators of the two stages: cheap search trials, and one final training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.integrations.sklearn.open_noise import EPSILON, noise_parameter
from privselect.integrations.sklearn.pipeline import final_estimator, final_prefix
from privselect.integrations.sklearn.seeds import SEED_PARAMETERS

if TYPE_CHECKING:
    from collections.abc import Iterable

_STEPS, _CHEAPER = "steps", 10  # by default a search trial has a tenth of the steps
_ONLY_WITH_FINAL = ("search_params", "final", "transfer", "learning_rate", "final_noise", "split")


@dataclass(frozen=True, repr=False)
class StageEstimators:
    """The estimator of a search trial and, if a final training follows, that of the training; neither has a candidate's parameters.

    ``noise`` is the parameter that sets the noise of a fit, None if it is unknown. ``cheaper`` holds the parameters that make a search
    trial cheaper.
    """

    trial: Any
    final: Any
    noise: str | None
    cheaper: dict[str, Any]

    def has_open_noise(self, estimator: Any) -> bool:
        """Return whether the noise of this estimator follows from the budget."""
        return self.noise is not None and estimator.get_params(deep=True)[self.noise] is None

    @property
    def open_stages(self) -> bool:
        """Whether the noise of a stage follows from the budget."""
        return any(self.has_open_noise(one) for one in (self.trial, self.final) if one is not None)

    def with_noise(self, trial: float | None, final: float | None) -> StageEstimators:
        """Return the stages with these values for the noise; None keeps what an estimator has."""
        estimators = ((self.trial, trial), (self.final, final))
        search, training = (one if value is None else clone(one).set_params(**{str(self.noise): value}) for one, value in estimators)
        return StageEstimators(search, training, self.noise, self.cheaper)

    def with_fit_delta(self, delta: float, expected_trials: float) -> StageEstimators:
        """Return the stages with the ``delta`` of each fit, for an estimator whose ``epsilon`` is open and which has a ``delta`` too.

        The final training and all search trials together have half of the delta each. Without a final training, the trials have all.
        """
        prefix, mark, name = str(self.noise).rpartition("__")
        parameter = f"{prefix}{mark}delta"
        if name != EPSILON or parameter not in self.trial.get_params(deep=True):
            return self
        share = delta if self.final is None else 0.5 * delta
        estimators = ((self.trial, share / max(expected_trials, 1.0)), (self.final, share))
        search, training = (
            clone(one).set_params(**{parameter: value}) if one is not None and self.has_open_noise(one) else one
            for one, value in estimators
        )
        return StageEstimators(search, training, self.noise, self.cheaper)


def read_stages(search: Any, estimator: Any, searched: Iterable[str]) -> StageEstimators:
    """Return the estimators of the search's stages; ``searched`` are the parameters that candidates set."""
    noise = noise_parameter(estimator, search.noise_parameter)
    noise = None if noise in set(searched) else noise  # each candidate states its own
    if not isinstance(search.refit, bool):
        raise ParameterError(f"`refit` must be False or True, got {format_value(search.refit)}: `scoring` decides which trial wins")
    if not search.refit:
        for name in _ONLY_WITH_FINAL:
            if (given := getattr(search, name)) is not None:
                raise ParameterError(f"`{name}` must be None if refit is False, because no final fit follows, got {format_value(given)}")
        return StageEstimators(estimator, None, noise, {})
    if search.epsilon is None:
        raise ParameterError("`refit` needs a budget for the search and the final training together: pass epsilon=..., such as epsilon=1.0")
    cheaper = _default_cheaper(estimator, searched) if search.search_params is None else _checked_cheaper(search, estimator, searched)
    return StageEstimators(clone(estimator).set_params(**cheaper), estimator, noise, cheaper)


def learning_rate_of(search: Any, estimator: Any, searched: Iterable[str]) -> str | None:
    """Return the searched parameter that is a learning rate: that of the search, or what the estimator states."""
    if search.learning_rate is not None:
        return str(search.learning_rate)
    own = getattr(final_estimator(estimator), "learning_rate_parameter", None)
    name = None if own is None else final_prefix(estimator) + own
    return name if name in set(searched) else None


def _default_cheaper(estimator: Any, searched: Iterable[str]) -> dict[str, Any]:
    """Return a tenth of the steps, rounded up, if the last step of the estimator has a number of steps that is not searched."""
    name = final_prefix(estimator) + _STEPS
    steps = final_estimator(estimator).get_params(deep=False).get(_STEPS)
    if name in set(searched) or isinstance(steps, bool) or not isinstance(steps, Integral):
        return {}
    return {name: -(-int(steps) // _CHEAPER)}


def _checked_cheaper(search: Any, estimator: Any, searched: Iterable[str]) -> dict[str, Any]:
    given = search.search_params
    if not isinstance(given, Mapping):
        raise ParameterError(f"`search_params` must be a dict of parameters such as {{'steps': 60}}, got {format_value(given)}")
    known = estimator.get_params(deep=True)
    for name in given:
        if name not in known:
            raise ParameterError(
                f"`search_params` must name parameters of {type(estimator).__name__}, got {format_value(name)}. "
                f"Its parameters are {', '.join(sorted(known))}"
            )
        if name in set(searched):
            raise ParameterError(f"`search_params` must not hold {name}, which is searched")
        if str(name).rpartition("__")[2] in SEED_PARAMETERS:
            raise ParameterError(f"`search_params` must not hold {name}: each trial gets its own secret seed")
    return dict(given)
