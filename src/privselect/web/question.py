"""Parse a planner question: its text forms, its one unknown and the work it takes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privselect._util.validation import NON_NEGATIVE, Range, check_number, format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.open_spec import OpenSpec
from privselect.planning.open_problem import OpenProblem, read_count, read_mechanism, read_problem
from privselect.selection.selection import selection_of
from privselect.web.limits import MAX_STEPS, MAX_TRIALS, MIN_DELTA
from privselect.web.schemas import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.web.schemas import Question

_NUMBER_FIELDS = ("epsilon", "delta")  # messages about them begin with their name


@contextmanager
def blame_field(field: str | None) -> Iterator[None]:
    """Turn errors of the package into refusals that blame this field, or the field that the message names."""
    try:
        yield
    except RefusedError:
        raise
    except PrivselectError as error:
        message = str(error)
        named = next((name for name in _NUMBER_FIELDS if message.startswith(f"`{name}` ")), None)
        raise RefusedError(message, field or named) from None


@dataclass(frozen=True, slots=True)
class SolvedQuestion:
    """A question whose unknown is replaced by its answer."""

    mechanism: Mechanism
    count: Count | None
    epsilon: float
    delta: float

    @property
    def selection(self) -> Mechanism:
        """The selection of the best of K trials, or one trial alone."""
        return selection_of(self.mechanism, self.count)


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A mechanism, a law of K (None: one trial), epsilon and delta, with exactly one open number, named ``unknown``.

    An open epsilon or delta is None. ``problem`` is set if the unknown belongs to the mechanism or to the law of K.
    """

    mechanism: Mechanism | OpenSpec
    count: Count | OpenSpec | None
    epsilon: float | None
    delta: float | None
    unknown: str
    problem: OpenProblem | None

    def solve_with(self, value: float) -> SolvedQuestion:
        """Return the question with ``value`` for the unknown."""
        mechanism, count, epsilon, delta = self.mechanism, self.count, self.epsilon, self.delta
        with blame_field("value"):
            if self.problem is not None:
                mechanism, count = self.problem.parts(value)
                check_work(mechanism, count)
            elif epsilon is None:
                epsilon = check_number("epsilon", value, NON_NEGATIVE)
            else:
                delta = check_number("delta", value, Range(MIN_DELTA, 1.0))
        return SolvedQuestion(mechanism, count, epsilon, delta)  # type: ignore[arg-type]  # nothing is open


def parse_question(question: Question) -> ParsedQuestion:
    """Parse a question whose numbers are already checked. A refusal names the field to blame."""
    with blame_field("mechanism"):
        mechanism = read_mechanism(question.mechanism)
    with blame_field("count"):
        count = None if question.count is None else read_count(question.count)
    open_specs = {name: part for name, part in (("mechanism", mechanism), ("count", count)) if isinstance(part, OpenSpec)}
    in_texts = [unknown.parameter for part in open_specs.values() for unknown in part.open_parameters]
    unknowns = [*in_texts, *(name for name in _NUMBER_FIELDS if getattr(question, name) is None)]
    if len(unknowns) != 1:
        found = f"{len(unknowns)}: {', '.join(unknowns)}" if unknowns else "none"
        blamed = next(reversed(open_specs), "delta" if unknowns else None)
        raise RefusedError(f"exactly one number must be written as ?, got {format_value(found)[1:-1]}", blamed)
    problem = None
    with blame_field("mechanism" if isinstance(mechanism, OpenSpec) else "count"):
        if open_specs:
            problem = read_problem(mechanism, count)
            check_work(*problem.parts(problem.search_range().start))
        else:
            check_work(mechanism, count)  # type: ignore[arg-type]  # nothing is open
    return ParsedQuestion(mechanism, count, question.epsilon, question.delta, unknowns[0], problem)


def parse_closed_mechanism(text: str) -> Mechanism:
    """Parse a mechanism without unknowns."""
    with blame_field("mechanism"):
        mechanism = read_mechanism(text)
        if isinstance(mechanism, OpenSpec):
            raise ParameterError(f"`mechanism` must have no ? for the design of a law of K, got {format_value(mechanism)}")
        check_work(mechanism, None)
    return mechanism


def check_work(mechanism: Mechanism, count: Count | None) -> None:
    """Refuse mechanisms with too many steps and laws of K with too many trials."""
    with blame_field("mechanism"):
        steps = sum(times for _, times in mechanism.composition_steps())
        if steps > MAX_STEPS:
            raise ParameterError(f"`steps` must be at most {MAX_STEPS} on this page, in total, got {format_value(steps)}")
    with blame_field("count"):
        if count is not None and count.expected() > MAX_TRIALS:
            name = next((name for name in ("n", "k") if hasattr(count, name)), "mean")
            trials = format_value(count.expected())
            raise ParameterError(f"`{name}` must be at most {MAX_TRIALS} trials on average on this page, got {trials}")
