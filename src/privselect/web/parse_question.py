"""What was asked: four fields with one ``?`` among them, read, checked and bounded."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from privselect._util.validation import NON_NEGATIVE, Range, check_number, format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.open_spec import OpenSpec
from privselect.planning.open_problem import Question, question, read_count, read_mechanism, together
from privselect.text_forms import parse_parameter
from privselect.web.limits import LEAST_DELTA, MOST_STEPS, MOST_TRIALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism

OPEN = "?"
_FIELDS = ("epsilon", "delta")  # whose messages begin with their name
_DELTAS = Range(LEAST_DELTA, 1.0)


class RefusedError(PrivselectError):
    """A question that is not answered, and the field that is to blame, where it is one."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field


@contextmanager
def about(field: str | None) -> Iterator[None]:
    """Refusals in here are about this field."""
    try:
        yield
    except RefusedError:
        raise
    except PrivselectError as error:
        message = str(error)
        raise RefusedError(message, field or next((name for name in _FIELDS if message.startswith(f"`{name}` ")), None)) from None


@dataclass(frozen=True, slots=True)
class Settled:
    """A question with its answer put in: nothing is open."""

    mechanism: Mechanism
    count: Count | None
    epsilon: float
    delta: float

    @property
    def whole(self) -> Mechanism:
        """The winner of so many trials, or one trial alone."""
        return together(self.mechanism, self.count)


@dataclass(frozen=True, slots=True)
class Asked:
    """A mechanism, a law of K (None: one trial), epsilon and delta; one number in them is open, and ``unknown`` is its name."""

    mechanism: Mechanism | OpenSpec
    count: Count | OpenSpec | None
    epsilon: float | None
    delta: float | None
    unknown: str
    open: Question | None  # where the unknown is a number of the mechanism or of the law

    def settled(self, value: float) -> Settled:
        """With ``value`` in place of the unknown."""
        with about("value"):
            mechanism, count = (self.mechanism, self.count) if self.open is None else self.open.parts(value)
            check_work(mechanism, count)  # type: ignore[arg-type]  # nothing is open any more
            epsilon = check_number("epsilon", value if self.epsilon is None else self.epsilon, NON_NEGATIVE)
            delta = check_number("delta", value if self.delta is None else self.delta, _DELTAS)
        return Settled(mechanism, count, epsilon, delta)  # type: ignore[arg-type]


def read_asked(fields: Mapping[str, Any]) -> Asked:
    """The question that the four fields ask; refused with the field that is to blame."""
    with about("mechanism"):
        mechanism = read_mechanism(fields["mechanism"])
    with about("count"):
        count = None if fields["count"] is None else read_count(fields["count"])
    epsilon, delta = _number(fields, "epsilon", NON_NEGATIVE), _number(fields, "delta", _DELTAS)
    in_texts = [hole.parameter for part in (mechanism, count) if isinstance(part, OpenSpec) for hole in part.holes]
    unknown = [*in_texts, *(name for name, value in (("epsilon", epsilon), ("delta", delta)) if value is None)]
    if len(unknown) != 1:
        found = f"{len(unknown)}: {', '.join(unknown)}" if unknown else "none"
        crowded = [name for name, part in (("mechanism", mechanism), ("count", count)) if isinstance(part, OpenSpec)]
        to_blame = crowded[-1] if crowded else "delta" if unknown else None
        raise RefusedError(f"exactly one number must be written as ?, got {format_value(found)[1:-1]}", to_blame)
    asked = None
    with about("mechanism" if isinstance(mechanism, OpenSpec) else "count"):
        if in_texts:
            asked = question(mechanism, count)
            check_work(*asked.parts(asked.axis().start))
        else:
            check_work(mechanism, count)  # type: ignore[arg-type]  # nothing is open
    return Asked(mechanism, count, epsilon, delta, unknown[0], asked)


def read_closed(fields: Mapping[str, Any]) -> Mechanism:
    """The mechanism of a question about the law of K."""
    with about("mechanism"):
        mechanism = read_mechanism(fields["mechanism"])
        if isinstance(mechanism, OpenSpec):
            raise ParameterError(f"no number of the mechanism may be open while a law of K is designed, got {format_value(mechanism)}")
        check_work(mechanism, None)
    return mechanism


def read_field(fields: Mapping[str, Any], name: str, allowed: Range) -> float:
    """One number, given as such or as typed."""
    with about(name):
        given = fields[name]
        return parse_parameter(name, given, allowed) if isinstance(given, str) else check_number(name, given, allowed)


def check_work(mechanism: Mechanism, count: Count | None) -> None:
    """Refuse what would take long: so many steps, so many trials."""
    with about("mechanism"):
        steps = sum(times for _, times in mechanism.as_parts())
        if steps > MOST_STEPS:
            raise ParameterError(f"`steps` must be at most {MOST_STEPS} here, all of a trial together, got {format_value(steps)}")
    with about("count"):
        if count is not None and count.expected() > MOST_TRIALS:
            name = next((name for name in ("n", "k") if hasattr(count, name)), "mean")
            raise ParameterError(f"`{name}` must be at most {MOST_TRIALS} trials on average here, got {format_value(count.expected())}")


def _number(fields: Mapping[str, Any], name: str, allowed: Range) -> float | None:
    given = fields[name]
    return None if isinstance(given, str) and given.strip() == OPEN else read_field(fields, name, allowed)
