"""A trial of a visible search: Optuna's sampler suggests, its pruner sees reported values, and the ledger records each suggestion."""

from __future__ import annotations

import contextlib
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from optuna import TrialPruned
from optuna.distributions import FloatDistribution, IntDistribution

from privselect.integrations.optuna.objective import OptunaObjective
from privselect.integrations.optuna.trial import PrivateTrial
from privselect.integrations.optuna.unavailable import UNAVAILABLE_IN_TRIAL
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.suggest import OUTSIDE_RANGE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import optuna
    from optuna.distributions import BaseDistribution

    from privselect.mechanisms import Mechanism
    from privselect.tuning.distributions import Distribution
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Candidate
    from privselect.tuning.suggest import Suggest

COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"

_VISIBLE = (
    "Optuna chose the parameters of each trial from earlier results; values given to report(), user attributes, and pruning by them are "
    "shown, and declared to be covered by the mechanism of a trial, as every iterate of DP-SGD is; a pruned trial counts in full"
)
SAMPLER_FAILED, PRUNER_FAILED = "the sampler of the Optuna study raised {error}", "the pruner of the Optuna study raised {error}"
_BEFORE = "trials that the Optuna study held before the search, and its sampler and pruner, are declared not to depend on the records"


@dataclass
class Current:
    """The trial that runs at the moment, and what is known about it besides its result; ``study`` is the Optuna study."""

    study: optuna.Study | None = None
    trial: optuna.Trial | None = None  # None while a trial of a killed process is finished
    record: Callable[[Candidate], object] | None = None  # writes what was suggested so far to the ledger
    suggest: Suggest | None = None
    state: str = FAILED
    intermediate: dict[int, float] = field(default_factory=dict)

    def begin(self, trial: optuna.Trial | None, record: Callable[[Candidate], object] | None) -> None:
        """Forget the last trial."""
        self.trial, self.record, self.suggest, self.state, self.intermediate = trial, record, None, FAILED, {}

    def facts(self) -> dict[str, Any]:
        """Return what is known about the trial besides its result, for the ledger."""
        known = {} if self.suggest is None else self.suggest.distributions
        return {
            "state": self.state,
            "distributions": {name: distribution.as_dict() for name, distribution in known.items()},
            "intermediate": {str(step): value for step, value in self.intermediate.items() if math.isfinite(value)},
        }


@plan_id("optuna_visible_objective")
@dataclass(frozen=True)
class VisibleObjective(OptunaObjective):
    """Run an Optuna objective on the trials of a visible search, and then on the final training."""

    current: Current = field(default_factory=Current)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate."""
        generators, _, *own = super().notes
        return (generators, _VISIBLE, _BEFORE, *own)

    def __call__(self, suggest: Suggest, _data: Any, randomness: Randomness, mechanism: Mechanism, stage: str) -> tuple[float | None, Any]:
        """Run one trial, and remember how it ended."""
        self.current.suggest = suggest
        try:
            returned = super().__call__(suggest, _data, randomness, mechanism, stage)
        except TrialPruned:
            self.current.state = PRUNED
            raise
        self.current.state = COMPLETE
        return returned

    def _trial(self, suggest: Suggest, randomness: Randomness, mechanism: Mechanism, stage: str) -> PrivateTrial:
        return VisibleTrial(suggest, randomness, (mechanism, stage), self.current, self.artifact)


class VisibleTrial(PrivateTrial):
    """One trial of a visible search, connected to a trial of Optuna."""

    def __init__(
        self, suggest: Suggest, randomness: Randomness, told: tuple[Mechanism, str], current: Current, artifact: str | None
    ) -> None:
        super().__init__(suggest, randomness, *told)
        self._current, self._optuna_trial, self._artifact = current, current.trial, artifact

    def __getattr__(self, name: str) -> Any:
        stock, current = self.__dict__.get("_optuna_trial"), self.__dict__.get("_current")
        if name == "study" and current is not None and current.study is not None:
            return current.study  # also in the final training: every trial is shown
        return getattr(stock, name) if stock is not None and name in UNAVAILABLE_IN_TRIAL else super().__getattr__(name)

    def _value(self, name: str, distribution: Distribution, optuna_distribution: BaseDistribution) -> Any:
        if self._optuna_trial is None:
            value = super()._value(name, distribution, optuna_distribution)
        else:
            with _explained(SAMPLER_FAILED):
                value = _ask(self._optuna_trial, name, optuna_distribution)
            if not distribution.contains(value):
                raise PlanViolation(OUTSIDE_RANGE, f"{name} must be {distribution.allowed}, got {value!r}")
            self._suggest.record(name, distribution.normalize(value), distribution)
        if self._current.record is not None:
            self._current.record(self._suggest.drawn)  # before the objective uses the value
        return value

    def report(self, value: float, step: int) -> None:
        """Pass an intermediate value to Optuna's pruner."""
        if self._optuna_trial is not None:
            self._optuna_trial.report(value, step)
        self._current.intermediate[int(step)] = float(value)

    def should_prune(self) -> bool:
        """Ask Optuna's pruner. A trial that was interrupted and is run again runs to its end."""
        if self._optuna_trial is None:
            return False
        with _explained(PRUNER_FAILED):
            return self._optuna_trial.should_prune()

    def set_user_attr(self, key: str, value: Any) -> None:
        """Keep an attribute, and pass it to the Optuna study unless it is the artifact or cannot be written as JSON."""
        super().set_user_attr(key, value)
        if self._optuna_trial is None or key == self._artifact:
            return
        with contextlib.suppress(TypeError, ValueError):
            json.dumps(value)
            self._optuna_trial.set_user_attr(key, value)

    def set_constraint(self, key: str, value: float) -> None:
        """Set a constraint; a trial with a constraint above 0 counts as failed."""
        super().set_constraint(key, value)
        if self._optuna_trial is not None:
            self._optuna_trial.set_constraint(key, value)

    @property
    def datetime_start(self) -> Any:
        """The start of the trial, which everyone may see."""
        return None if self._optuna_trial is None else self._optuna_trial.datetime_start

    @property
    def number(self) -> int:
        """The number of the trial in the Optuna study; 0 in the final training."""
        return 0 if self._optuna_trial is None else self._optuna_trial.number


@contextlib.contextmanager
def _explained(message: str) -> Iterator[None]:
    """End the run with the reason if Optuna fails: otherwise all trials would fail at full cost, without a reason.

    Samplers and pruners see what everyone may see. Errors of a storage may contain its password, so only their type is shown.
    """
    try:
        yield
    except Exception as error:  # noqa: BLE001 - of any sampler or pruner
        text = f": {error}" if isinstance(error, ImportError | ValueError) else ""
        raise PlanViolation(message.format(error=f"{type(error).__name__}{text}")) from None


def _ask(trial: optuna.Trial, name: str, distribution: BaseDistribution) -> Any:
    if isinstance(distribution, FloatDistribution):
        return trial.suggest_float(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
    return trial.suggest_categorical(name, distribution.choices)  # type: ignore[attr-defined]  # the third kind that there is
