"""A stock objective of Optuna as the tuner runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect.errors import ParameterError
from privselect.integrations.optuna.unsupported import NO_LAW, SEVERAL, NoLawError, WithheldError
from privselect.tuning.plan_ids import plan_id
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import seeded_globals

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.integrations.optuna.trial import PrivateTrial
    from privselect.tuning.randomness import Randomness
    from privselect.tuning.space import Suggest

_GENERATORS = (
    "the generators of Python, numpy and torch that belong to the process were set from each trial's own randomness; a seed that is fixed "
    "inside the objective would repeat the noise in every trial, and is not covered; noise that torch draws on a GPU comes from a seed of "
    "64 bits, which can be found by search from a released model"
)
_ENDED = (
    "what Optuna's trial is told by report() goes nowhere; a trial that ends itself, or sets a constraint above 0, counts as failed, and "
    "that by which it does so is declared to be as private as the score"
)


@plan_id("optuna_objective")
@dataclass(frozen=True)
class OptunaObjective:
    """Calls the objective that it ``runs`` with a trial; ``sign`` makes of its value a score of which the greatest wins."""

    runs: Callable[[Any], Any]
    sign: int
    artifact: str | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """For the certificate; with those of the objective itself, where it has some."""
        return (_GENERATORS, _ENDED, *getattr(self.runs, "notes", ()))

    @property
    def mechanism(self) -> Any:
        """What the objective says of itself."""
        return getattr(self.runs, "mechanism", None)

    @property
    def mechanism_of(self) -> Any:
        """What the objective says of each candidate."""
        return getattr(self.runs, "mechanism_of", None)

    def __call__(self, suggest: Suggest, _data: Any, randomness: Randomness) -> tuple[float, Any]:
        """One trial; the objective holds its data itself."""
        from privselect.integrations.optuna.trial import PrivateTrial

        trial = PrivateTrial(suggest, randomness)
        with seeded_globals(randomness):
            returned = self._returned(trial)
        if any(value > 0 for value in trial.constraints.values()):
            raise ParameterError("the trial is infeasible")
        return self.sign * _number(returned), None if self.artifact is None else trial.user_attrs[self.artifact]

    def _returned(self, trial: PrivateTrial) -> Any:
        """What is wrong with the objective itself, and not with one trial, gives the run up: else the fallback would be paid in full."""
        try:
            return self.runs(trial)
        except NoLawError as error:
            raise PlanViolation(NO_LAW, str(error)) from None
        except WithheldError as error:
            raise PlanViolation(str(error)) from None


def _number(returned: Any) -> float:
    """As Optuna reads it: anything that is a number, or one in a list."""
    if isinstance(returned, Sequence) and not isinstance(returned, str):
        if len(returned) != 1:
            raise PlanViolation(SEVERAL)
        returned = returned[0]
    return float(returned)
