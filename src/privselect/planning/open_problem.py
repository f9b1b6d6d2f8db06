"""What is asked: a mechanism and a law of K with exactly one number left open between them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from privselect._util.validation import format_value
from privselect.counts.base import Count
from privselect.errors import ParameterError, TextFormError
from privselect.mechanisms.base import Mechanism
from privselect.open_spec import OpenParameter, OpenSpec
from privselect.planning.search.search_range import Axis, axis_of
from privselect.selection import Selection
from privselect.text_forms import parse

Parts = tuple[Mechanism, Count | None]
_FINEST = 1e-6  # of a logarithm: how near to the end of what is allowed a search may come


@dataclass(frozen=True, slots=True)
class Question:
    """A mechanism and a law of K (None: one trial), one of them a sketch."""

    mechanism: Mechanism | OpenSpec
    count: Count | OpenSpec | None
    hole: OpenParameter

    def parts(self, value: float) -> Parts:
        """Both, with ``value`` in place of the unknown."""
        return _filled(self.mechanism, value), _filled(self.count, value)

    def whole(self, value: float) -> Mechanism:
        """The winner of that many trials, or the mechanism alone, with ``value`` in place of the unknown."""
        return together(*self.parts(value))

    def axis(self) -> Axis:
        """Where the unknown may be looked for: what its own range and the other parameters allow."""
        axis = axis_of(self.hole)
        start = next((value for value in (axis.start, axis.safest, axis.last) if self._refuses(value) is None), None)
        if start is None:
            self.parts(axis.start)  # refuses: another parameter is out of its range
            start = axis.start
        return replace(axis, start=start, safest=self._end(axis, start, axis.safest), last=self._end(axis, start, axis.last))

    def _end(self, axis: Axis, start: float, end: float) -> float:
        """``end``, or as far towards it as the law or mechanism can be."""
        inside, outside = axis.place(start), axis.place(end)
        if self._refuses(end) is None:
            return end
        while abs(outside - inside) > _FINEST:
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if self._refuses(axis.value(middle)) is None else (inside, middle)
        return axis.value(inside)

    def _refuses(self, value: float) -> ParameterError | None:
        try:
            self.parts(value)
        except ParameterError as error:
            return error
        return None

    def without(self) -> Parts:
        """Both, with the unknown left out, where it may be: without a cap."""
        return _left_out(self.mechanism), _left_out(self.count)


def question(mechanism: object, count: object = None) -> Question:
    """The question that two descriptions ask, each an object, a sketch or a text; refused unless exactly one number is open."""
    trial, law = read_mechanism(mechanism), None if count is None else read_count(count)
    holes = [hole for part in (trial, law) if isinstance(part, OpenSpec) for hole in part.holes]
    if len(holes) != 1:
        asked = str(trial) if law is None else f"{trial} and {law}"
        found = "none" if not holes else f"{len(holes)}"
        raise ParameterError(f"exactly one number must be left open, as ? or UNKNOWN, got {found} in {format_value(asked)}")
    hole = holes[0]
    if hole.allowed is None:
        wanted = "a single number with a name, such as sigma, steps or mean"
        raise ParameterError(f"only {wanted}, can be solved for, got {format_value(str(hole.owner))}")
    return Question(trial, law, hole)


def read_mechanism(given: object) -> Mechanism | OpenSpec:
    """A mechanism, a sketch of one, or its text."""
    read: Mechanism | OpenSpec = _read(given, Mechanism, "`mechanism` must be what one trial leaks, such as gaussian(sigma=4)")
    return read


def read_count(given: object) -> Count | OpenSpec:
    """A law of K, a sketch of one, or its text."""
    read: Count | OpenSpec = _read(given, Count, "`count` must be a law of K, such as geometric(mean=30)")
    return read


def together(mechanism: Mechanism, count: Count | None) -> Mechanism:
    """The winner of K trials, or the mechanism alone."""
    return mechanism if count is None else Selection(mechanism, count)


def _read(given: object, kind: type, wanted: str) -> Any:
    described = parse(given) if isinstance(given, str) else given
    if isinstance(described, kind) or (isinstance(described, OpenSpec) and issubclass(described.described, kind)):
        return described
    raise (TextFormError if isinstance(given, str) else ParameterError)(f"{wanted}, got {format_value(described)}")


def _filled(part: Any, value: float) -> Any:
    return part.fill(value) if isinstance(part, OpenSpec) else part


def _left_out(part: Any) -> Any:
    return part.emptied() if isinstance(part, OpenSpec) else part
