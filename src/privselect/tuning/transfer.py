"""Transfer rules: which candidate the final training uses, as a public function of the winner's candidate."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.validation import POSITIVE, check_number, format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.mechanisms import DPSGD, Mechanism
from privselect.tuning.plan_ids import name_in_plan
from privselect.tuning.release import to_json_bytes
from privselect.tuning.trial_mechanism import mechanism_for

if TYPE_CHECKING:
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.trial_mechanism import MechanismOf

SAME, NOISE = "same", "noise"
LEARNING_RATE = "learning_rate"  # the name of the hyperparameter unless another is given


@dataclass(frozen=True)
class Transfer:
    """A transfer rule: its name in the plan, the function of the candidate, and whether its result must be in the space."""

    name: str
    function: Callable[[Candidate], Any]
    note: str  # what the rule does, for the certificate
    inside: bool = True

    def apply(self, candidate: Candidate) -> Candidate:
        """Return the candidate of the final training; raise a ParameterError for a rule that fails or returns no candidate."""
        try:
            first, second = (self.function(copy.deepcopy(candidate)) for _ in range(2))
        except (KeyboardInterrupt, PrivselectError):
            raise
        except BaseException as error:  # includes SystemExit, whose text Python would print
            raise ParameterError(
                f"`transfer` must be a function that succeeds, got {type(error).__name__}: {error} for {format_value(candidate)}"
            ) from error
        try:
            same = to_json_bytes(first) == to_json_bytes(second)
        except Exception as error:
            raise ParameterError(
                f"`transfer` must return a candidate that can be written as JSON, got {type(error).__name__}: {error} "
                f"for {format_value(candidate)}"
            ) from error
        if not same:
            raise ParameterError(
                f"`transfer` must be a function of the candidate alone, got two different results for {format_value(candidate)}"
            )
        if not isinstance(first, Mapping) or set(first) != set(candidate):
            raise ParameterError(
                f"`transfer` must return a dict with the hyperparameters {', '.join(candidate)}, got {format_value(first)}"
            )
        return {name: first[name] for name in candidate}

    def fault(self, candidate: Candidate, space: Space) -> str | None:
        """Return why the rule fails for a candidate of the space, or None."""
        try:
            transferred = self.apply(candidate)
        except PrivselectError as error:
            return str(error)
        outside = space.fault(transferred) if self.inside else None
        return None if outside is None else f"`transfer` must return a candidate of the space: {outside}"


def transfer_name(given: Any, learning_rate: Any) -> str:
    """Return the name of a rule in the plan: "same", "noise(learning_rate)" or the name of a function."""
    if learning_rate is not None and given != NOISE:
        raise ParameterError(f"`learning_rate` is for the transfer rule 'noise' only, got {format_value(learning_rate)}")
    if given == SAME:
        return SAME
    if given == NOISE:
        name = LEARNING_RATE if learning_rate is None else learning_rate
        if not isinstance(name, str) or not name:
            raise ParameterError(f"`learning_rate` must be the name of a hyperparameter, got {format_value(learning_rate)}")
        return f"{NOISE}({name})"
    if callable(given):
        return name_in_plan(given)
    raise ParameterError(f"`transfer` must be 'same', 'noise' or a function of the candidate, got {format_value(given)}")


def read_transfer(given: Any, learning_rate: Any, search: Mechanism | MechanismOf, final: Mechanism) -> Transfer:
    """Return the rule "same", "noise" or a function of the candidate; ``search`` is the mechanism of training in the search."""
    name = transfer_name(given, learning_rate)
    if given == SAME:
        return Transfer(name, dict, "the winner's candidate")
    if given == NOISE:
        if isinstance(search, Mechanism):
            _check_dpsgd(search)
        rule = SameAccumulatedNoise(LEARNING_RATE if learning_rate is None else learning_rate, search, _check_dpsgd(final))
        # The factor takes the learning rate out of the range that was chosen for the search.
        return Transfer(name, rule, f"the winner's candidate, with {rule.description}", inside=False)
    return Transfer(name, given, f"the winner's candidate, transferred by {name}")


@dataclass(frozen=True)
class SameAccumulatedNoise:
    """Multiply the learning rate so that the noise of all steps together is the same in both stages.

    DP-SGD divides the noisy sum of gradients by the expected size of a batch, ``q n``. After T steps with noise multiplier s, clipping
    norm C and learning rate a, the accumulated noise has standard deviation ``a C s sqrt(T) / (q n)``. With the same C and n in both
    stages it is equal if the learning rate is multiplied by ``(s1 sqrt(T1) / q1) / (s2 sqrt(T2) / q2)``; 1 is the search, 2 the final
    training. This is a heuristic for accuracy; the privacy cost does not depend on it.
    """

    learning_rate: str
    search: Mechanism | MechanismOf
    final: DPSGD

    def __call__(self, candidate: Candidate) -> Candidate:
        """Return the candidate with its learning rate multiplied."""
        if self.learning_rate not in candidate:
            raise ParameterError(
                f"the transfer rule 'noise' needs a hyperparameter {format_value(self.learning_rate)}, got {', '.join(candidate)}; "
                "name the learning rate with learning_rate=..."
            )
        rate = check_number(self.learning_rate, candidate[self.learning_rate], POSITIVE)
        search = _check_dpsgd(mechanism_for(self.search, candidate) if callable(self.search) else self.search)
        return {**candidate, self.learning_rate: rate * self.factor(search)}

    def factor(self, search: DPSGD) -> float:
        """Return the factor of the learning rate after a search with this mechanism."""
        return _noise_per_rate(search) / _noise_per_rate(self.final)

    @property
    def description(self) -> str:
        """The rule in words."""
        if not isinstance(self.search, DPSGD):
            return f"{self.learning_rate} multiplied so that the accumulated noise stays the same"
        return f"{self.learning_rate} multiplied by {self.factor(self.search):.6g}, so that the accumulated noise stays the same"


def _noise_per_rate(training: DPSGD) -> float:
    return training.noise_multiplier * math.sqrt(training.steps) / training.sampling_probability


def _check_dpsgd(mechanism: Mechanism) -> DPSGD:
    if not isinstance(mechanism, DPSGD):
        raise ParameterError(f"the transfer rule 'noise' needs a dpsgd(...) in both stages, got {format_value(str(mechanism))}")
    return mechanism
