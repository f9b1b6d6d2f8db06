"""A plan with one open number, and the range in which the number is searched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privselect._util.validation import format_value
from privselect.errors import ParameterError
from privselect.planning.search_range import initial_range
from privselect.planning.stages import read_stages

if TYPE_CHECKING:
    from privselect.mechanisms.base import Mechanism
    from privselect.open_spec import OpenParameter
    from privselect.planning.search_range import SearchRange
    from privselect.planning.stages import OpenStages

_FINEST = 1e-6  # of a logarithm: accuracy of the bounds of a search range


@dataclass(frozen=True, slots=True)
class OpenProblem:
    """A search and a final training of which exactly one number, ``unknown``, is open."""

    stages: OpenStages
    unknown: OpenParameter

    @property
    def stage(self) -> str:
        """The stage of the open number: "search" or "final"."""
        return "final" if self.stages.open_in_final else "search"

    def fill(self, value: float | None) -> OpenStages:
        """Return the stages with ``value`` for the open number (None: its default, such as no cap)."""
        return self.stages.fill(value)

    def whole(self, value: float | None) -> Mechanism:
        """Return everything that is released with ``value`` for the open number, as one mechanism."""
        return self.fill(value).closed().whole

    def search_range(self) -> SearchRange:
        """Return the values that the parameter's own range and the other parameters allow."""
        initial = initial_range(self.unknown)
        start = next((value for value in (initial.start, initial.safest, initial.riskiest) if self.is_allowed(value)), None)
        if start is None:
            self.fill(initial.start)  # raises the error: another parameter is out of its range
            start = initial.start
        self.fill(start).check_relations()
        safest, riskiest = (self._allowed_bound(initial, start, bound) for bound in (initial.safest, initial.riskiest))
        return replace(initial, start=start, safest=safest, riskiest=riskiest)

    def _allowed_bound(self, initial: SearchRange, start: float, bound: float) -> float:
        """Return ``bound`` if it is allowed, else the allowed value nearest to it, by bisection from ``start``."""
        inside, outside = initial.to_log(start), initial.to_log(bound)
        if self.is_allowed(bound):
            return bound
        while abs(outside - inside) > _FINEST:
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if self.is_allowed(initial.from_log(middle)) else (inside, middle)
        return initial.from_log(inside)

    def is_allowed(self, value: float) -> bool:
        """Return whether the mechanisms and the law of K accept this value."""
        try:
            self.fill(value)
        except ParameterError:
            return False
        return True


def read_problem(
    mechanism: object, count: object = None, final: object = None, *, visible: object = None, subsample: object = None
) -> OpenProblem:
    """Return the problem that specifications or text forms describe; exactly one number must be open."""
    return problem_of(read_stages(mechanism, count, final, visible=visible, subsample=subsample))


def problem_of(stages: OpenStages) -> OpenProblem:
    """Return the stages as a problem; exactly one of their numbers must be open, and it must have a name."""
    unknowns = (*stages.open_in_search, *stages.open_in_final)
    if len(unknowns) != 1:
        found = "none" if not unknowns else f"{len(unknowns)}"
        raise ParameterError(f"exactly one number must be left open, as ? or UNKNOWN, got {found} in {format_value(stages.describe())}")
    unknown = unknowns[0]
    if unknown.allowed is None:
        owner = format_value(str(unknown.owner))
        raise ParameterError(f"only a single number with a name, such as sigma, steps or mean, can be solved for, got {owner}")
    return OpenProblem(stages, unknown)
