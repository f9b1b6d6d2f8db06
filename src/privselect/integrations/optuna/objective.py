"""An Optuna objective in the form that the tuner runs. This module does not import Optuna."""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError
from privselect.integrations.optuna.unavailable import UnavailableError
from privselect.tuning.ledger import FINAL
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import seeded_globals
from privselect.tuning.trial_mechanism import states_mechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.optuna.trial import PrivateTrial
    from privselect.mechanisms import Mechanism
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.suggest import Suggest

# Messages of plan violations: fixed texts that depend on no record.
SEVERAL_VALUES = "the objective returned several values, but only one objective has a single winner: return one value"
INVALID_DISTRIBUTION = (
    "the objective requests a hyperparameter that cannot be drawn: each name needs one distribution with a finite range and step, and "
    "options that are text, finite numbers, true, false, None or lists of these"
)
PLAN_NOT_READ = (
    "the objective does not read trial.mechanism, which says what it must run, such as trial.mechanism.noise_multiplier, but its noise was "
    "solved for or differs between search and final training"
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


class UndrawableError(ParameterError):
    """A hyperparameter that cannot be drawn."""


@plan_id("optuna_objective")
@dataclass(frozen=True)
class OptunaObjective:
    """Run the Optuna objective ``runs`` on a trial; ``sign`` turns its value into a score that is maximised."""

    runs: Callable[[Any], Any]
    sign: int
    artifact: str | None = None
    trains: bool = False  # whether a final training follows, so that only its artifact is kept
    must_read: bool = False  # whether the objective cannot know what to run without reading it from its trial

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

    @property
    def final_mechanism_of(self) -> Any:
        """The mechanism that the objective states for the final training of each candidate, if any."""
        return getattr(self.runs, "final_mechanism_of", None)

    @property
    def mechanism_claimed(self) -> bool | None:
        """True if the objective neither states a mechanism nor reads the one it should run; None if the tuner can decide."""
        if isinstance(claimed := getattr(self.runs, "mechanism_claimed", None), bool):
            return claimed
        return None if states_mechanism(self.runs) or reads_plan(self.runs) else True

    def __call__(self, suggest: Suggest, _data: Any, randomness: Randomness, mechanism: Mechanism, stage: str) -> tuple[float | None, Any]:
        """Run one trial; the objective holds its data itself."""
        trial = self._trial(suggest, randomness, mechanism, stage)
        with seeded_globals(randomness):
            returned = self._run(trial)
        if self.must_read and not trial.has_read_plan and not states_mechanism(self.runs):
            raise PlanViolation(PLAN_NOT_READ)
        if stage == FINAL:
            return None, trial.user_attrs[str(self.artifact)]
        if any(value > 0 for value in trial.constraints.values()):
            raise ParameterError("the trial is infeasible")
        return self.sign * _single_value(returned), None if self.artifact is None or self.trains else trial.user_attrs[self.artifact]

    def _trial(self, suggest: Suggest, randomness: Randomness, mechanism: Mechanism, stage: str) -> PrivateTrial:
        from privselect.integrations.optuna.trial import PrivateTrial

        return PrivateTrial(suggest, randomness, mechanism, stage)

    def _run(self, trial: PrivateTrial) -> Any:
        """Run the objective; an error of the objective itself ends the run, because every trial would fail at full privacy cost."""
        try:
            return self.runs(trial)
        except UndrawableError as error:
            raise PlanViolation(INVALID_DISTRIBUTION, str(error)) from None
        except UnavailableError as error:
            raise PlanViolation(str(error)) from None


def reads_plan(objective: Any) -> bool:
    """Return whether the code of an objective reads an attribute ``mechanism`` or ``stage``, as of its trial."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    function = inspect.unwrap(objective)
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    return code is not None and _reads_attribute(code)


def _reads_attribute(code: CodeType) -> bool:
    names = {"mechanism", "stage"}
    if any(step.opname in {"LOAD_ATTR", "LOAD_METHOD"} and step.argval in names for step in dis.get_instructions(code)):
        return True
    return any(_reads_attribute(inner) for inner in code.co_consts if isinstance(inner, CodeType))


def _single_value(returned: Any) -> float:
    """Return the objective's value: like Optuna, accept a number or a list of one number."""
    if isinstance(returned, Sequence) and not isinstance(returned, str):
        if len(returned) != 1:
            raise PlanViolation(SEVERAL_VALUES)
        returned = returned[0]
    return float(returned)
