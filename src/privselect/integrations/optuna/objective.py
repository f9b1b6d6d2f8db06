"""An Optuna objective in the form that the tuner runs. This module does not import Optuna."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError, PrivselectError
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from privselect.integrations.optuna.trial import PrivateTrial
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Suggest

# Messages of plan violations: fixed texts that depend on no record.
SEVERAL_VALUES = "the objective returned several values, but only one objective has a single winner: return one value"
INVALID_DISTRIBUTION = (
    "the objective requests a hyperparameter that cannot be drawn: each name needs one distribution with a finite range and step, and "
    "options that are text, finite numbers, true, false, None or lists of these"
)

# Notes for the certificate.
_GENERATORS = (
    "the global generators of Python, numpy and torch were set from each trial's own randomness; a fixed seed inside the objective would "
    "repeat the noise in every trial, and is not covered; noise that torch draws on a GPU comes from a seed of 64 bits, which can be found "
    "by search from a released model"
)
_FAILED_TRIALS = (
    "values given to report() are discarded; a trial that stops itself, or sets a constraint above 0, counts as failed, and the values by "
    "which it does so are declared to be as private as the score"
)


class UnavailableError(PrivselectError, AttributeError):
    """An attribute that Optuna has, but a private study or its trial does not have."""


class UndrawableError(ParameterError):
    """A hyperparameter that cannot be drawn."""


def unavailable_attribute(name: str, reasons: Mapping[str, str], owner: str) -> AttributeError:
    """Return the error for a missing attribute, with the reason if it is an attribute of Optuna."""
    if name in reasons:
        return UnavailableError(f"`{name}` is not available in {owner}: {reasons[name]}")
    return AttributeError(f"{owner} has no attribute {name!r}")


@plan_id("optuna_objective")
@dataclass(frozen=True)
class OptunaObjective:
    """Run the Optuna objective ``runs`` on a trial; ``sign`` turns its value into a score that is maximised."""

    runs: Callable[[Any], Any]
    sign: int
    artifact: str | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the certificate, including those of the objective itself."""
        return (_GENERATORS, _FAILED_TRIALS, *getattr(self.runs, "notes", ()))

    @property
    def mechanism(self) -> Any:
        """The mechanism that the objective states, if any."""
        return getattr(self.runs, "mechanism", None)

    @property
    def mechanism_of(self) -> Any:
        """The mechanism that the objective states for each candidate, if any."""
        return getattr(self.runs, "mechanism_of", None)

    def __call__(self, suggest: Suggest, _data: Any, randomness: Randomness) -> tuple[float, Any]:
        """Run one trial; the objective holds its data itself."""
        from privselect.integrations.optuna.trial import PrivateTrial

        trial = PrivateTrial(suggest, randomness)
        with seeded_globals(randomness):
            returned = self._run(trial)
        if any(value > 0 for value in trial.constraints.values()):
            raise ParameterError("the trial is infeasible")
        return self.sign * _single_value(returned), None if self.artifact is None else trial.user_attrs[self.artifact]

    def _run(self, trial: PrivateTrial) -> Any:
        """Run the objective; an error of the objective itself ends the run, because every trial would fail at full privacy cost."""
        try:
            return self.runs(trial)
        except UndrawableError as error:
            raise PlanViolation(INVALID_DISTRIBUTION, str(error)) from None
        except UnavailableError as error:
            raise PlanViolation(str(error)) from None


def _single_value(returned: Any) -> float:
    """Return the objective's value: like Optuna, accept a number or a list of one number."""
    if isinstance(returned, Sequence) and not isinstance(returned, str):
        if len(returned) != 1:
            raise PlanViolation(SEVERAL_VALUES)
        returned = returned[0]
    return float(returned)
