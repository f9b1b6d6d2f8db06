"""Parse a planner question: its text forms, its one unknown and the work it takes."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from privselect._util.validation import NON_NEGATIVE, Range, check_number, format_value
from privselect.errors import ParameterError, PrivselectError
from privselect.open_spec import OpenSpec
from privselect.planning.open_problem import OpenProblem, problem_of
from privselect.planning.search_range import FastOptions
from privselect.planning.solve import Budget
from privselect.planning.split import apply_split, read_split
from privselect.planning.stages import OpenStages, read_count, read_final, read_mechanism, read_stages
from privselect.web.limits import ACCURACY, MAX_STEPS, MAX_TRIALS, MIN_DELTA
from privselect.web.schemas import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from privselect.counts import Count
    from privselect.mechanisms import Mechanism
    from privselect.selection.two_stages import Stages
    from privselect.web.schemas import Question

_NUMBER_FIELDS = ("epsilon", "delta")  # these may be open
_NAMED_FIELDS = (*_NUMBER_FIELDS, "visible", "subsample", "final", "final_noise")  # messages about them begin with their name


@contextmanager
def blame_field(field: str | None) -> Iterator[None]:
    """Turn errors of the package into refusals that blame this field, or the field that the message names."""
    try:
        yield
    except RefusedError:
        raise
    except PrivselectError as error:
        message = str(error)
        named = next((name for name in _NAMED_FIELDS if message.startswith(f"`{name}` ")), None)
        raise RefusedError(message, field or named) from None


@dataclass(frozen=True, slots=True)
class SolvedQuestion:
    """A question whose unknown is replaced by its answer."""

    stages: Stages
    epsilon: float
    delta: float

    @property
    def whole(self) -> Mechanism:
        """Everything that is released, as one mechanism."""
        return self.stages.whole


@dataclass(frozen=True, slots=True)
class ParsedQuestion:
    """A search, perhaps a final training, epsilon and delta, with exactly one open number, named ``unknown``.

    An open epsilon or delta is None. ``problem`` is set if the unknown belongs to a mechanism or to the law of K. With a
    ``final_noise``, the noise of the final training follows from the budget: it is ``final_value`` in ``stages`` and open in ``asked``.
    """

    asked: OpenStages
    stages: OpenStages
    epsilon: float | None
    delta: float | None
    unknown: str
    problem: OpenProblem | None
    final_noise: float | None = None
    final_value: float | None = None

    def solve_with(self, value: float) -> SolvedQuestion:
        """Return the question with ``value`` for the unknown."""
        stages, epsilon, delta = self.stages, self.epsilon, self.delta
        with blame_field("value"):
            if self.problem is not None:
                stages = self.problem.fill(value)
                check_work(stages)
            elif epsilon is None:
                epsilon = check_number("epsilon", value, NON_NEGATIVE)
            else:
                delta = check_number("delta", value, Range(MIN_DELTA, 1.0))
            return SolvedQuestion(stages.closed(), epsilon, delta)  # type: ignore[arg-type]  # nothing is open

    @property
    def budget(self) -> Budget:
        """The budget at the accuracy of the page; an open number in it is 0."""
        return Budget(float(self.epsilon or 0.0), float(self.delta or 0.0), FastOptions(ACCURACY))


def parse_question(question: Question, final_value: float | None = None) -> ParsedQuestion:
    """Parse a question whose numbers are already checked. A refusal names the field to blame.

    ``final_value`` is the noise of the final training if it was solved before.
    """
    asked = _read(question)
    ruled = question.final_noise is not None
    fields = {"mechanism": asked.mechanism, "count": asked.count} | ({} if ruled else {"final": asked.final})
    open_specs = {name: part for name, part in fields.items() if isinstance(part, OpenSpec)}
    in_texts = [unknown.parameter for part in open_specs.values() for unknown in part.open_parameters]
    unknowns = [*in_texts, *(name for name in _NUMBER_FIELDS if getattr(question, name) is None)]
    if len(unknowns) != 1:
        found = f"{len(unknowns)}: {', '.join(unknowns)}" if unknowns else "none"
        blamed = next(reversed(open_specs), "delta" if unknowns else None)
        raise RefusedError(f"exactly one number must be written as ?, got {format_value(found)[1:-1]}", blamed)
    parsed = ParsedQuestion(asked, asked, question.epsilon, question.delta, unknowns[0], None, question.final_noise)
    if ruled:
        parsed = _with_split(parsed, final_value)
    if not open_specs:
        check_work(parsed.stages)
        with blame_field("final"):
            parsed.stages.check_relations()
        return parsed
    with blame_field(next(iter(open_specs))):
        problem = problem_of(parsed.stages)
        example = problem.fill(problem.search_range().start)
        check_work(example)
    with blame_field("final"):
        example.check_relations()
    return replace(parsed, problem=problem)


def _read(question: Question) -> OpenStages:
    """Return the stages of a question; each text form is read by itself, so an error blames its field."""
    with blame_field("mechanism"):
        read_mechanism(question.mechanism)
    with blame_field("count"):
        count = None if question.count is None else read_count(question.count)
    with blame_field("final"):
        final = None if question.final is None else read_final(question.final)
    with blame_field("visible" if question.visible is not None else None):
        return read_stages(question.mechanism, count, final, visible=question.visible, subsample=question.subsample)


def _with_split(parsed: ParsedQuestion, final_value: float | None) -> ParsedQuestion:
    """Return the question with the noise of the final training, which the rule takes from the budget."""
    final = parsed.asked.final
    with blame_field("final_noise"):
        factor = read_split(parsed.final_noise, None, parsed.asked)
        if factor is None or not isinstance(final, OpenSpec) or None in (parsed.epsilon, parsed.delta):
            raise ParameterError("`final_noise` needs an open noise in the search and in the final training, and a given budget")
    with blame_field("final"):
        example = problem_of(OpenStages(final))
        check_work(example.fill(example.search_range().start))
        if final_value is None:
            found = apply_split(final, factor, parsed.budget)
            return replace(parsed, stages=replace(parsed.asked, final=found.mechanism), final_value=found.value)
        filled = example.fill(final_value).closed().mechanism
    return replace(parsed, stages=replace(parsed.asked, final=filled), final_value=final_value)


def parse_closed_mechanism(text: str) -> Mechanism:
    """Parse a mechanism without unknowns."""
    with blame_field("mechanism"):
        mechanism = read_mechanism(text)
        if isinstance(mechanism, OpenSpec):
            raise ParameterError(f"`mechanism` must have no ? for the design of a law of K, got {format_value(mechanism)}")
        check_work(OpenStages(mechanism))
    return mechanism


def check_work(stages: OpenStages) -> None:
    """Refuse mechanisms with too many steps and searches with too many trials. Nothing in ``stages`` may be open."""
    closed = stages.closed()
    with blame_field("mechanism"):
        steps = _count_steps(closed.mechanism)
        _check_steps(steps)
    with blame_field("final"):
        if closed.final is not None:
            _check_steps(_count_steps(closed.final))
    with blame_field("visible"):
        if closed.visible is not None and closed.visible * steps > MAX_STEPS:
            most = MAX_STEPS // steps
            raise ParameterError(
                f"`visible` must be at most {most} trials of {steps} steps on this page, got {format_value(closed.visible)}"
            )
    with blame_field("count"):
        _check_trials(closed.count)


def _count_steps(mechanism: Mechanism) -> int:
    return sum(times for _, times in mechanism.composition_steps())


def _check_steps(steps: int) -> None:
    if steps > MAX_STEPS:
        raise ParameterError(f"`steps` must be at most {MAX_STEPS} on this page, in total, got {format_value(steps)}")


def _check_trials(count: Count | None) -> None:
    if count is not None and count.expected() > MAX_TRIALS:
        name = next((name for name in ("n", "k") if hasattr(count, name)), "mean")
        trials = format_value(count.expected())
        raise ParameterError(f"`{name}` must be at most {MAX_TRIALS} trials on average on this page, got {trials}")
