"""Checks of candidates: that each one leaks at most what is declared, and that it can be transferred to the final training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from privselect._util.validation import format_value
from privselect.errors import AbortedError, ParameterError, PrivselectError
from privselect.tuning.isolation import suppress_output
from privselect.tuning.randomness import Stream, derive_key
from privselect.tuning.release import to_json_bytes
from privselect.tuning.space import DefineByRunSpace
from privselect.tuning.trial_mechanism import leaks_at_most, mechanism_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from privselect.tuning.run_spec import FinalTraining
    from privselect.tuning.runner import RunDraws
    from privselect.tuning.space import Candidate, Space
    from privselect.tuning.trial_mechanism import TrialMechanism

_VALIDATION_DRAWS = 200  # candidates drawn to check a space before K is drawn
NO_WINNER = -1  # in place of a slot: the candidate of the final training that is made without a winner
FinalCandidates: TypeAlias = "dict[int, Candidate]"  # of the final training, by the slot of the winner
_NOT_DETERMINED = "the mechanism of a candidate could not be determined"


@dataclass(frozen=True, repr=False)
class CandidateChecks:
    """The checks of a run's candidates. A text that is shown after K was drawn names no candidate, because that could reveal K."""

    space: Space
    trial: TrialMechanism
    final: FinalTraining | None

    @property
    def any_mechanism(self) -> bool:
        """Whether the mechanism of each candidate is checked in a search trial."""
        return self.trial.mechanism_of is not None or self.trial.mixture_of is not None

    @property
    def any_before_data(self) -> bool:
        """Whether candidates are checked before the data is accessed; a define-by-run candidate is only known in its trial."""
        return not isinstance(self.space, DefineByRunSpace) and (self.any_mechanism or self.final is not None)

    # -- before K is drawn ----------------------------------------------------------------------------------------------------

    def validate_space(self) -> None:
        """Draw candidates unrelated to those of the run, so errors in the space, the mechanisms and the transfer are found early."""
        keys = [derive_key(bytes(32), "look", number) for number in range(_VALIDATION_DRAWS)]
        candidates = [self._draw_for_validation(key) for key in keys]
        # A space that keeps a state, such as a walk over a grid, or has its own generator, draws another candidate the second time.
        if candidates != [self._draw_for_validation(key) for key in reversed(keys)][::-1]:
            raise ParameterError("`space` must take all its randomness from `suggest`: the same randomness gave different candidates")
        for candidate in () if isinstance(self.space, DefineByRunSpace) else candidates:
            self._refuse(self._named("mechanism_of", self._search_fault, candidate))
            if self.final is not None:
                self._refuse(self.final.transfer.fault(candidate, self.space))
                self._refuse(self._named("final_mechanism_of", self._final_fault, self.final.transfer.apply(candidate)))

    def _draw_for_validation(self, key: bytes) -> Candidate:
        try:
            candidate = self.space.draw(Stream(key))
            to_json_bytes(candidate)
        except PrivselectError:
            raise
        except Exception as error:
            raise ParameterError(
                f"`space` must draw candidates that can be written as JSON, got {type(error).__name__}: {error}"
            ) from error
        return candidate

    def _named(self, name: str, check: Callable[[Candidate], str | None], candidate: Candidate) -> str | None:
        try:
            return check(candidate)
        except PrivselectError:
            raise
        except Exception as error:
            raise ParameterError(
                f"`{name}` must return the mechanism of every candidate, got {type(error).__name__}: {error} for {format_value(candidate)}"
            ) from error

    def _refuse(self, fault: str | None) -> None:
        if fault is not None:
            raise ParameterError(fault)

    # -- after K is drawn -----------------------------------------------------------------------------------------------------

    def check_run(self, draws: RunDraws, trials: int) -> FinalCandidates:
        """Check every candidate of a run before the data is accessed and return those of the final training.

        The transfer rule is not called again, so what it returns cannot depend on a trial. Nothing that a function of the user prints
        is shown, because the number of its calls reveals K.
        """
        if not self.any_before_data:
            return {}
        with suppress_output():
            if self.final is None:
                for slot in range(trials):
                    self.check_drawn(draws.candidate(slot))
                return {}
            found = {slot: self.check_drawn(draws.candidate(slot)) for slot in range(trials)}
            return {**found, NO_WINNER: self.transferred(draws.unused_candidate())}

    def check_drawn(self, candidate: Candidate) -> Candidate:
        """Return the candidate of the final training, the same one if there is none.

        Stop the run at a candidate that may leak more than declared or that cannot be transferred.
        """
        fault = self.safe_search_fault(candidate)
        if fault is not None:
            raise AbortedError(f"{fault}; nothing is released") from None
        return candidate if self.final is None else self.transferred(candidate)

    def transferred(self, candidate: Candidate) -> Candidate:
        """Return the candidate of the final training; stop the run if there is none or it may leak more than declared."""
        if self.final is None:
            raise ParameterError("`final` must be given for a transfer, got none")
        not_transferred = f"the transfer rule {self.final.transfer.name!r} does not apply to a candidate"
        try:
            fault = None if self.final.transfer.fault(candidate, self.space) is None else not_transferred
            transferred = candidate if fault else self.final.transfer.apply(candidate)
        except Exception:  # noqa: BLE001 - from the user's function, which has changed its mind
            fault = not_transferred
        if fault is None and not isinstance(self.space, DefineByRunSpace):
            fault = self.safe_final_fault(transferred)
        if fault is not None:
            raise AbortedError(f"{fault}; nothing is released") from None
        return transferred

    def safe_search_fault(self, candidate: Candidate) -> str | None:
        """Return why a search trial of a candidate may leak more than declared, or None."""
        return _safely(self._search_fault, candidate)

    def safe_final_fault(self, candidate: Candidate) -> str | None:
        """Return why the final training of a candidate may leak more than declared, or None."""
        return _safely(self._final_fault, candidate)

    def _search_fault(self, candidate: Candidate) -> str | None:
        mixture_of, mechanism_of = self.trial.mixture_of, self.trial.mechanism_of
        if mixture_of is not None:
            mechanism = mechanism_for(mixture_of, candidate)
            if not leaks_at_most(mechanism, mechanism_for(mixture_of, self.space.finite_part(candidate))):
                return "the mechanism of a candidate may leak more than the one accounted for; pass a mechanism that covers all candidates"
        if mechanism_of is not None and not leaks_at_most(mechanism_for(mechanism_of, candidate), self.trial.mechanism):
            declared = format_value(str(self.trial.mechanism))
            return f"a candidate of the space runs a mechanism that may leak more than the declared {declared}"
        return None

    def _final_fault(self, candidate: Candidate) -> str | None:
        if self.final is None or self.final.mechanism_of is None:
            return None
        if leaks_at_most(mechanism_for(self.final.mechanism_of, candidate), self.final.mechanism):
            return None
        declared = format_value(str(self.final.mechanism))
        return f"a candidate of the space runs a final training that may leak more than the declared {declared}"


def _safely(check: Callable[[Candidate], str | None], candidate: Candidate) -> str | None:
    try:
        return check(candidate)
    except Exception:  # noqa: BLE001 - from the user's function
        return _NOT_DETERMINED
