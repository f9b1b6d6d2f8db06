"""Draw hyperparameters one by one, by name, as a function of earlier draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.tuning.distributions import Choice, Distribution, Integer, LogUniform, Uniform
from privselect.tuning.plan_violation import PlanViolation
from privselect.tuning.randomness import Stream

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from privselect._util.random_bits import Entropy

# Keys of a candidate that the objective draws itself: where it draws from, and what is fixed.
STREAM, FIXED, COMPLETE = "stream", "fixed", "complete"

# Messages of plan violations: fixed texts that depend on no record.
OUTSIDE_RANGE = "a default fixes a hyperparameter to a value that the objective's distribution does not contain"
NOT_SEARCHED = "the objective requests a hyperparameter in the final training that the winner did not draw in the search"


class Suggest:
    """The argument of a define-by-run space: each hyperparameter is drawn once by its name, and the draws are the candidate.

    Names in ``fixed`` are not drawn: they get the stated value, which the distribution must contain. ``complete`` says that no other
    name may be drawn and that values may lie outside the search's ranges, as in a final training after a transfer. ``in_trial`` says
    that an objective draws: names are any text, and a mistake is a plan violation, since the trial would fail in silence otherwise.
    """

    __slots__ = ("_complete", "_entropy", "_fixed", "_in_trial", "distributions", "drawn")

    def __init__(self, entropy: Entropy, *, fixed: Mapping[str, Any] | None = None, complete: bool = False, in_trial: bool = False) -> None:
        self._entropy, self._in_trial = entropy, in_trial
        self._fixed, self._complete = dict(fixed or {}), complete
        self.drawn: dict[str, Any] = {}
        self.distributions: dict[str, Distribution] = {}

    @classmethod
    def of_candidate(cls, candidate: Mapping[str, Any]) -> Suggest:
        """Return what an objective that draws its own candidate gets; see :class:`DefineByRunSpace`."""
        stream = Stream(bytes.fromhex(candidate[STREAM]))
        return cls(stream, fixed=candidate.get(FIXED), complete=bool(candidate.get(COMPLETE)), in_trial=True)

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
        if not (self._in_trial and isinstance(name, str) and name):
            check_name(name)
        if name in self.drawn:
            raise ParameterError(f"a space must draw each name once, got {format_value(name)} twice")
        self.drawn[name] = value = self._value(name, distribution)
        self.distributions[name] = distribution
        return value

    def record(self, name: str, value: Any, distribution: Distribution) -> None:
        """Record a value that was chosen elsewhere, such as by a sampler of Optuna."""
        self.drawn[name], self.distributions[name] = value, distribution

    def _value(self, name: str, distribution: Distribution) -> Any:
        if name not in self._fixed:
            if self._complete:
                raise self._mistake(NOT_SEARCHED, f"the candidate has no value for {format_value(name)}")
            return distribution.draw(self._entropy)
        value = self._fixed[name]
        if distribution.contains(value):
            return distribution.normalize(value)
        if self._complete and not isinstance(distribution, Choice):
            return value  # the transfer of a learning rate may leave the range of the search
        raise self._mistake(OUTSIDE_RANGE, f"`{name}` of the space must be {distribution.allowed}, got {format_value(value)}")

    def _mistake(self, fixed_text: str, details: str) -> BaseException:
        return PlanViolation(fixed_text, details) if self._in_trial else ParameterError(details)


def check_name(name: object) -> None:
    """Refuse a name of a hyperparameter that is not an identifier."""
    if not isinstance(name, str) or not name.isidentifier():
        raise ParameterError(f"a hyperparameter's name must be an identifier such as learning_rate, got {format_value(name)}")
